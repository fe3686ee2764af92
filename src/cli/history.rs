//! `campanile history ...`: days of ended runs in a directory of files, written from a node and read without one.

use super::{
    archives::now_ms,
    failure::{Failure, of_store},
    output::{self, Column, Format},
    remote::Remote,
};
use campanile_archive::days::{
    self, ArchiveDirectory, Day, DayFile, DayKeeper, DayPart, DaySink, DayStream, WrittenDay,
};
use campanile_ports::StoreError;
use campanile_schema::{operations::rows, record::RunRecord, time::Timestamp};
use campanile_store::{
    archive::LogOf,
    embedded::{EmbeddedOptions, EmbeddedStore},
};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Closed days of ended runs, with attempts and logs, into files of a directory: of the running node that --server names, or with
    /// --data of a stopped one. What is there already is left as it is
    Archive(ArchiveArgs),
    /// Days in a directory of them
    List { dir: PathBuf },
    /// Read every file of a directory to its end. Exit code 1: one is damaged or cut off
    Verify { dir: PathBuf },
}

#[derive(clap::Args)]
pub(super) struct ArchiveArgs {
    /// Directory of the files; made when missing
    dir: PathBuf,
    /// Directory of a stopped node instead of a running one
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// From this day (UTC) on, such as 2026-02-01 [default: the first]
    #[arg(long, value_name = "DAY")]
    from: Option<Day>,
    /// Up to this day, which is included [default: the last that is closed]
    #[arg(long, value_name = "DAY")]
    to: Option<Day>,
}

const KEPT: &[Column] = &[
    Column::text("DAY", "day"),
    Column::number("NEW RUNS", "runs"),
    Column::number("HAD", "known"),
    Column::number("BYTES", "bytes").minor(1),
    Column::text("FILE", "file"),
    Column::text("ERROR", "error"),
];
const DAYS: &[Column] = &[
    Column::text("DAY", "day"),
    Column::number("PART", "part"),
    Column::number("RUNS", "runs"),
    Column::number("LOG PIECES", "logPieces").minor(3),
    Column::number("BYTES", "bytes").minor(1),
    Column::time("WRITTEN", "writtenAt").minor(2),
    Column::text("FILE", "file"),
    Column::text("ERROR", "error"),
];

pub(super) fn run(
    command: Command,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: Format,
) -> Result<(), Failure> {
    match command {
        Command::Archive(args) => archive(&args, remote, format),
        Command::List { dir } => shown(&dir, format, |part| {
            let file = DayFile::open(&part.path)?;
            let totals = file.totals()?;
            Ok(json!({
                "runs": totals.rows, "logPieces": totals.logs, "bytes": file.bytes, "writtenAt": Timestamp(file.head.at_ms),
            }))
        }),
        Command::Verify { dir } => shown(&dir, format, verified),
    }
}

fn archive(
    args: &ArchiveArgs,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: Format,
) -> Result<(), Failure> {
    let directory = ArchiveDirectory::at(&args.dir);
    let (kept, done) = match &args.data {
        Some(data) => from_directory(data, directory, args),
        None => from_node(&remote()?, directory, args)?,
    }
    .map_err(|e| of_store(&e))?;
    output::list(format, &json!({"items": kept}), KEPT)?;
    let written = kept.iter().filter(|kept| kept.file.is_some()).count();
    eprintln!("{written} of {} days had something new", kept.len());
    done.map_err(|e| of_store(&e))?;
    match kept.iter().filter(|kept| kept.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::here(format!("{failed} of {} days could not be archived", kept.len()))),
    }
}

/// What became of days, and whether the last of them was told to its end.
type Archived = Result<(Vec<WrittenDay>, Result<(), StoreError>), StoreError>;

fn ended(keeper: DayKeeper, done: Result<(), StoreError>) -> (Vec<WrittenDay>, Result<(), StoreError>) {
    (if done.is_ok() { keeper.end() } else { keeper.give_up() }, done)
}

fn from_directory(data: &Path, directory: ArchiveDirectory, args: &ArchiveArgs) -> Archived {
    if !data.join("FORMAT").exists() {
        return Err(StoreError::Refused(format!("{}: there is no store here (no file FORMAT)", data.display())));
    }
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(data))?;
    store.catch_up()?;
    let now = now_ms();
    let time = days::closed(args.from, args.to, now);
    let mut keeper = DayKeeper::new(directory, store.format().clone(), now)?;
    let done = store.ended(time.start, time.end).and_then(|runs| days::feed(runs, &mut keeper));
    Ok(ended(keeper, done))
}

fn from_node(remote: &Remote, directory: ArchiveDirectory, args: &ArchiveArgs) -> Result<Archived, Failure> {
    let query = [("from", args.from.map(|day| day.to_string())), ("to", args.to.map(|day| day.to_string()))];
    let (name, answer) = remote.stream(rows::STORE_HISTORY.path(), &query)?;
    let keep = || {
        let mut stream = DayStream::open(answer, name)?;
        let mut keeper = DayKeeper::new(directory, stream.head().store.clone(), stream.head().at_ms)?;
        let done = stream.read(&mut keeper).map(drop);
        Ok(ended(keeper, done))
    };
    Ok(keep())
}

/// Every file with what `look` says of it. Exit code 1 when it cannot say it of all.
fn shown(dir: &Path, format: Format, look: impl Fn(&DayPart) -> Result<Value, StoreError>) -> Result<(), Failure> {
    let parts = ArchiveDirectory::at(dir).parts().map_err(|e| of_store(&e))?;
    let mut items = Vec::with_capacity(parts.len());
    let mut failed = 0;
    for part in &parts {
        let mut item = look(part).unwrap_or_else(|error| {
            failed += 1;
            json!({"error": error.to_string()})
        });
        item["day"] = json!(part.day);
        item["part"] = json!(part.part);
        item["file"] = json!(part.path.display().to_string());
        items.push(item);
    }
    output::list(format, &json!({"items": items}), DAYS)?;
    if failed == 0 { Ok(()) } else { Err(Failure::here(format!("{failed} of {} files are damaged", parts.len()))) }
}

/// What is read goes nowhere.
struct Nowhere;

impl DaySink for Nowhere {
    fn rows(&mut self, _: Vec<RunRecord>) -> Result<(), StoreError> {
        Ok(())
    }
    fn logs(&mut self, _: Vec<LogOf>) -> Result<(), StoreError> {
        Ok(())
    }
}

fn verified(part: &DayPart) -> Result<Value, StoreError> {
    let name = part.path.display().to_string();
    let file = File::open(&part.path).map_err(|e| StoreError::Unavailable(format!("{name}: cannot be read: {e}")))?;
    let mut stream = DayStream::open(BufReader::with_capacity(1 << 20, file), name.as_str())?;
    let head = stream.head().clone();
    if (head.from_ms, head.to_ms) != (part.day.begin_ms(), part.day.end_ms()) {
        return Err(StoreError::Corrupt(format!("{name}: has the day {}: it was renamed", Day::of_ms(head.from_ms))));
    }
    let totals = stream.read(&mut Nowhere)?;
    Ok(json!({
        "runs": totals.rows, "logPieces": totals.logs, "bytes": stream.bytes(), "writtenAt": Timestamp(head.at_ms),
    }))
}
