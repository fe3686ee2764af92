//! `campanile store restore`: a data directory from an archive.

use super::{
    archives::{now_ms, open, reading, show},
    failure::{Failure, of_store},
    output::Format,
};
use campanile_actors::at_rest::Since;
use campanile_archive::{
    Report,
    restore::{Restored, Restoring, into_directory},
};
use std::{fmt, path::PathBuf};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The archive; `-` = standard input
    archive: PathBuf,
    /// Directory to make: an empty one, or one that does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// What becomes of instants after the backup, which may have fired there. Without it the system is restored paused
    #[arg(long, value_enum)]
    since: Option<From>,
    /// Number of shards, a power of two; by default as many as the node had
    #[arg(long, value_name = "COUNT")]
    shards: Option<u16>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum From {
    /// They are misfires: each job's misfirePolicy decides, as after an outage
    Backup,
    /// They are skipped, and the ledger says RESTORED
    Now,
}

/// What is told of it.
#[derive(serde::Serialize)]
struct RestoreReport {
    archive: Report,
    restored: Restored,
    paused: bool,
    #[serde(skip)]
    dir: PathBuf,
}

pub(super) fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let since = match args.since {
        Some(From::Backup) => Since::Backup,
        Some(From::Now) => Since::Now,
        None => Since::Undecided,
    };
    let how = Restoring { since, now_ms: now_ms(), shards: args.shards };
    let reading = reading(&args.archive, "restoring");
    let done = open(&args.archive, &reading).and_then(|reader| into_directory(reader, &args.data, how));
    let (archive, restored) = done.map_err(|e| of_store(&e))?;
    drop(reading);
    show(&RestoreReport { archive, restored, paused: since == Since::Undecided, dir: args.data.clone() }, format)
}

impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.archive)?;
        writeln!(f, "restored   into {}", self.dir.display())?;
        if self.restored.to_confirm > 0 {
            let count = self.restored.to_confirm;
            writeln!(
                f,
                "confirm    {count} runs of jobs that are not idempotent may have run after the backup: they wait in \
                 NEEDS_CONFIRMATION, see `campanile run confirm --help`"
            )?;
        }
        if self.restored.skipped > 0 {
            writeln!(
                f,
                "skipped    {} stretches of instants since the backup (reason RESTORED)",
                self.restored.skipped
            )?;
        }
        if self.paused {
            writeln!(
                f,
                "paused     nothing fires: the old node may have fired after the backup, and nobody said what is to become of that"
            )?;
            writeln!(
                f,
                "           start the node and `campanile system resume`: instants since the backup are SKIPPED (SYSTEM_PAUSED);"
            )?;
            write!(
                f,
                "           or restore into another directory with --since backup (misfire policies decide) or --since now"
            )?;
        } else {
            write!(f, "next       campanile server --data {}", self.dir.display())?;
        }
        Ok(())
    }
}
