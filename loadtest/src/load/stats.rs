//! What an executor reports of each second: how late bodies began, ended and were durable, as counts of values. A few
//! lines for each second and group replace two lines for each body, so that a run of hours does not fill a disk and
//! reading it does not disturb the run.

use crate::{limits::STATS_READ_BYTES, run_dir::lines::now_us};
use campanile_schema::record::AttemptState;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// Lateness in microseconds -> how often.
pub type Values = BTreeMap<u64, u64>;
/// Second in which the instant was due -> lateness. Seconds since 1970 UTC.
pub type BySecond = BTreeMap<i64, Values>;

/// A line of `stats-executor-*.jsonl`: what happened to one group within one second,
/// since the line before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatsLine {
    /// Second of the wall clock, since 1970 UTC.
    pub second: i64,
    pub group: String,
    /// First attempts received, by the second in which they were due.
    pub start: BySecond,
    /// First attempts that ended.
    pub end: BySecond,
    /// First attempts whose result the node called durable.
    pub durable: BySecond,
    /// All attempts that began, repeated ones too.
    pub attempts: u64,
    /// When the first of them began, microseconds since 1970 UTC.
    pub first_us: Option<i64>,
    /// Attempts that ended, by outcome.
    pub outcomes: BTreeMap<String, u64>,
}

/// Three significant digits: as fine as the histograms that it ends up in.
fn rounded(late_us: i64) -> u64 {
    let value = late_us.max(1).unsigned_abs();
    let shift = (64 - value.leading_zeros()).saturating_sub(11);
    (value >> shift) << shift
}

/// Where one body stands in the counts.
#[derive(Clone, Debug)]
pub struct Body {
    group: String,
    /// When it was due, microseconds since 1970 UTC; None: unknown, or not a first attempt.
    due_us: Option<i64>,
}

struct State {
    file: File,
    second: i64,
    groups: Vec<StatsLine>,
    /// Results that no node has called durable yet, by run and token.
    waiting: HashMap<(u64, u64), Body>,
    error: Option<io::Error>,
}

/// Counts bodies and writes the counts down. For many threads.
pub struct Stats(Mutex<State>);

#[derive(Clone, Copy)]
enum BodyMoment {
    Start,
    End,
    Durable,
}

impl Stats {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (groups, waiting) = (Vec::new(), HashMap::new());
        Ok(Self(Mutex::new(State { file, second: 0, groups, waiting, error: None })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while holding it leaves counts that are at worst one short.
        self.0.lock()
    }

    /// A body begins. `due_us`: of a first attempt.
    pub fn start(&self, group: &str, due_us: Option<i64>, now_us: i64) -> Body {
        let body = Body { group: group.to_owned(), due_us };
        let mut state = self.state();
        state.count(&body, BodyMoment::Start, now_us);
        body
    }

    /// It ended; its result is on its way.
    pub fn end(&self, body: Body, run: u64, token: u64, outcome: AttemptState, now_us: i64) {
        let mut state = self.state();
        state.count(&body, BodyMoment::End, now_us);
        *state.line(&body.group).outcomes.entry(outcome.to_string()).or_default() += 1;
        state.waiting.insert((run, token), body);
    }

    /// The node called its result durable.
    pub fn durable(&self, run: u64, token: u64, now_us: i64) {
        let mut state = self.state();
        if let Some(body) = state.waiting.remove(&(run, token)) {
            state.count(&body, BodyMoment::Durable, now_us);
        }
    }

    /// Writes what was counted since the last call. Called several times a second: a killed process takes the rest with it.
    pub fn tick(&self, now_us: i64) {
        let mut state = self.state();
        state.turn(now_us);
        state.write();
    }

    /// Writes the rest; the first error of all writes, if there was one.
    pub fn close(&self) -> io::Result<()> {
        let mut state = self.state();
        state.turn(now_us());
        state.write();
        state.error.take().map_or(Ok(()), Err)
    }
}

impl State {
    fn line(&mut self, group: &str) -> &mut StatsLine {
        // A list: there are few, and a map's entry would need an owned name for each body.
        let known = self.groups.iter().position(|line| line.group == group);
        let at = known.unwrap_or_else(|| {
            self.groups.push(StatsLine { group: group.to_owned(), ..StatsLine::default() });
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }

    fn count(&mut self, body: &Body, what: BodyMoment, now_us: i64) {
        self.turn(now_us);
        let line = self.line(&body.group);
        if matches!(what, BodyMoment::Start) {
            line.attempts += 1;
            line.first_us.get_or_insert(now_us);
        }
        let Some(due_us) = body.due_us else { return };
        let seconds = match what {
            BodyMoment::Start => &mut line.start,
            BodyMoment::End => &mut line.end,
            BodyMoment::Durable => &mut line.durable,
        };
        let values = seconds.entry(due_us.div_euclid(1_000_000)).or_default();
        *values.entry(rounded(now_us - due_us)).or_default() += 1;
    }

    /// What was counted so far belongs to the second that is over.
    fn turn(&mut self, now_us: i64) {
        let second = now_us.div_euclid(1_000_000);
        if second > self.second {
            self.write();
            self.second = second;
        }
    }

    fn write(&mut self) {
        let mut text = Vec::new();
        for mut line in std::mem::take(&mut self.groups) {
            line.second = self.second;
            // Writing to memory fails only where serde cannot write the type, which a test would see.
            if serde_json::to_writer(&mut text, &line).is_ok() {
                text.push(b'\n');
            }
        }
        if let Err(error) = self.file.write_all(&text) {
            self.error.get_or_insert(error);
        }
    }
}

/// Reads what is new in a file of such lines.
#[derive(Debug)]
pub struct Tail {
    file: File,
    at: u64,
}

impl Tail {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, at: 0 })
    }

    /// All whole lines since the last call.
    pub fn read(&mut self) -> io::Result<Vec<StatsLine>> {
        let mut lines = Vec::new();
        loop {
            self.file.seek(SeekFrom::Start(self.at))?;
            let mut text = Vec::new();
            Read::by_ref(&mut self.file).take(STATS_READ_BYTES as u64).read_to_end(&mut text)?;
            let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { return Ok(lines) };
            self.at += end as u64 + 1;
            // A torn line is one of a killed executor, whose last moment is lost.
            lines.extend(text[..end].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bodies_are_counted_in_the_second_in_which_things_happen_by_the_second_in_which_they_were_due() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats-executor-1.jsonl");
        let stats = Stats::open(&path).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        let (due, second) = (Some(10_900_000), 1_000_000);
        let body = stats.start("a", due, 10_901_000);
        let again = stats.start("a", None, 11_000_500);
        assert_eq!(tail.read().unwrap().len(), 1, "the second is over");
        stats.tick(11_050_000);
        let told = &tail.read().unwrap()[0];
        assert_eq!(
            (told.attempts, told.first_us),
            (1, Some(11_000_500)),
            "a killed process loses only what came after the last tick"
        );
        stats.end(body, 1, 5, AttemptState::Failed, 11_100_000);
        stats.durable(1, 5, 12_900_000);
        stats.end(again, 1, 6, AttemptState::Success, 12_950_000);
        stats.durable(9, 9, 12_950_000);
        stats.tick(13 * second);
        let lines = tail.read().unwrap();
        assert_eq!(lines.iter().map(|l| (l.second, l.attempts)).collect::<Vec<_>>(), [(11, 0), (12, 0)]);
        assert_eq!(lines[0].end[&10], Values::from([(rounded(200_000), 1)]));
        assert_eq!(lines[1].durable[&10], Values::from([(rounded(2_000_000), 1)]));
        assert_eq!((lines[0].outcomes["FAILED"], lines[1].outcomes["SUCCESS"]), (1, 1));
        assert!(tail.read().unwrap().is_empty());
        assert!(stats.close().is_ok());
    }

    #[test]
    fn rounding_keeps_three_digits() {
        for value in [1, 999, 1_024, 123_456, 600_000_000] {
            let kept = rounded(value) as f64;
            assert!((kept - value as f64).abs() / value as f64 <= 0.001, "{value} {kept}");
        }
        assert_eq!(rounded(-5), 1);
    }
}
