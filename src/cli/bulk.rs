//! `campanile job create --bulk FILE`: a job a line, some calls of a thousand lines each, however long the file is.

use super::{
    change::DryRun,
    failure::Failure,
    output::{self, Format},
    planned,
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_schema::{error::ErrorCode, limits::BULK_LINE_BYTES, operations::rows};
use campanile_serve::api::Problem;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
    time::{Duration, Instant},
};

/// Lines of one call: its answers fit what the node lets wait while a call is still being sent.
const CALL_LINES: usize = 1_000;
/// Bytes of one call, about.
const CALL_BYTES: usize = 4 << 20;
/// Lines that an overloaded node refused are sent again so long, without one more being taken.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before that, when the node names none.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Number in the file, from 1, and text.
type Lines = Vec<(u64, String)>;

struct Bulk<'a> {
    remote: &'a Remote,
    format: Format,
    key: Option<String>,
    created: u64,
    refused: u64,
    /// The first line that was refused, and why.
    first: Option<(u64, Problem)>,
    progress: Progress,
}

pub(super) fn create(file: &Path, key: Option<String>, remote: &Remote, format: Format) -> Result<(), Failure> {
    if format == Format::Yaml {
        return Err(Failure::usage("--bulk answers with a line for each line: -o table or -o json"));
    }
    let unreadable = |error| Failure::usage(format!("{}: {error}", file.display()));
    let mut input = opened(file)?;
    // Lines of JSON are answers, and come by themselves.
    let progress = match format {
        Format::Table | Format::Yaml => Progress::new("creating", Unit::Things("jobs"), None),
        Format::Json => Progress::hidden(),
    };
    let mut bulk = Bulk { remote, format, key, created: 0, refused: 0, first: None, progress };
    let mut number = 0;
    loop {
        let lines = some_lines(&mut input, &mut number).map_err(unreadable)?;
        if lines.is_empty() {
            return bulk.end();
        }
        bulk.send(lines).map_err(|failure| {
            let message = format!("{} ({} jobs before it were created)", failure.message, bulk.created);
            Failure { message, ..failure }
        })?;
    }
}

fn opened(file: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// What the node says of each line, without making anything. Names that stand twice in the file are found only when it is done.
pub(super) fn plan(file: &Path, remote: &Remote) -> Result<(), Failure> {
    let mut input = opened(file)?;
    let judging = Progress::new("judging", Unit::Things("jobs"), None);
    let (mut number, mut fine, mut refused) = (0, 0u64, 0u64);
    loop {
        let lines = some_lines(&mut input, &mut number)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        if lines.is_empty() {
            break;
        }
        let spec =
            |line: &str| campanile_serve::api::parse_json(line.as_bytes()).map_err(|e| Failure::usage(e.message));
        let count = lines.len() as u64;
        let together: Result<Vec<Value>, Failure> = lines.iter().map(|(_, line)| spec(line)).collect();
        if together.and_then(|specs| planned::judged(remote, specs)).is_ok() {
            fine += count;
            judging.add(count);
            continue;
        }
        // Which of them it is shows one by one.
        for (number, line) in &lines {
            match spec(line).and_then(|spec| planned::judged(remote, vec![spec])) {
                Ok(_) => fine += 1,
                Err(failure) if failure.code == ErrorCode::NotReady.exit_code() => return Err(failure),
                Err(failure) => {
                    judging.say(&format!("line {number}: {}", failure.message));
                    refused += 1;
                }
            }
            judging.add(1);
        }
    }
    drop(judging);
    DryRun::told(&format!("create {fine} jobs"))?;
    if refused == 0 { Ok(()) } else { Err(Failure::usage(format!("{refused} lines would be refused"))) }
}

/// The lines of the next call that are not blank.
fn some_lines(mut input: impl BufRead, number: &mut u64) -> std::io::Result<Lines> {
    let (mut lines, mut bytes) = (Lines::new(), 0);
    while lines.len() < CALL_LINES && bytes < CALL_BYTES {
        let mut line = String::new();
        // Over its limit it is refused, but not read into memory whole.
        if input.by_ref().take(BULK_LINE_BYTES as u64 + 2).read_line(&mut line)? == 0 {
            break;
        }
        *number += 1;
        if line.len() > BULK_LINE_BYTES && !line.ends_with('\n') {
            let told = format!("line {number} has more than {BULK_LINE_BYTES} bytes");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, told));
        }
        if *number == 1 && campanile_security::text::unmarked(&line).len() < line.len() {
            line = campanile_security::text::unmarked(&line).to_owned();
        }
        if !line.trim().is_empty() {
            bytes += line.len();
            lines.push((*number, line.trim_end().to_owned()));
        }
    }
    Ok(lines)
}

impl Bulk<'_> {
    /// One call; what an overloaded node did not take is sent again after a while. With a key the whole call is: the numbers of
    /// its lines belong to the key, and what was made is only answered once more.
    fn send(&mut self, mut lines: Lines) -> Result<(), Failure> {
        let key = self.key.as_ref().map(|key| format!("{key}/{}", lines[0].0));
        let mut answered: BTreeMap<u64, Value> = BTreeMap::new();
        let mut progressed = Instant::now();
        loop {
            let text: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
            let answers = self.remote.post_lines(rows::JOB_CREATE_LINES.path(), text, key.as_deref())?;
            let (mut left, mut pause) = (Lines::new(), RETRY_PAUSE);
            for (mut answer, (number, line)) in answers.into_iter().zip(&lines) {
                answer["line"] = json!(number);
                let overloaded = answer["error"]["code"] == ErrorCode::Overloaded.as_str();
                if overloaded && progressed.elapsed() < PATIENCE {
                    left.push((*number, line.clone()));
                    let seconds = answer["error"]["retryAfterSec"].as_f64().unwrap_or_default().clamp(0.0, 60.0);
                    pause = pause.max(Duration::from_secs_f64(seconds));
                } else if answered.insert(*number, answer).is_none() {
                    progressed = Instant::now();
                }
            }
            if left.is_empty() {
                break;
            }
            if key.is_none() {
                lines = left;
            }
            std::thread::sleep(pause);
        }
        answered.into_values().for_each(|answer| self.tell(&answer));
        Ok(())
    }

    fn tell(&mut self, answer: &Value) {
        if self.format == Format::Json {
            output::text(&format!("{answer}\n"));
        }
        match serde_json::from_value::<Problem>(answer["error"].clone()) {
            Err(_) => {
                self.created += 1;
                self.progress.add(1);
            }
            Ok(problem) => {
                let number = answer["line"].as_u64().unwrap_or_default();
                if self.format == Format::Table {
                    self.progress.say(&format!("line {number}: {}: {}", problem.code, problem.detail));
                }
                self.refused += 1;
                self.progress.name(format!("creating, {} refused", self.refused));
                self.first.get_or_insert((number, problem));
            }
        }
    }

    fn end(self) -> Result<(), Failure> {
        let Self { format, created, refused, first, progress, .. } = self;
        drop(progress);
        if format == Format::Table {
            output::text(&format!("{created} jobs created\n"));
        }
        let Some((number, problem)) = first else { return Ok(()) };
        let failure = Failure::from(problem.into_error());
        let message = format!("{refused} lines were refused; the first is line {number}: {}", failure.message);
        Err(Failure { message, ..failure })
    }
}
