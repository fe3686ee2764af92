//! `campanile store ...`: what a node keeps: checked, backed up, restored, shown.

use super::{
    archives::{now_ms, open, reading, show},
    failure::{Failure, of_store},
    output::Format,
    progress::{Progress, Unit},
    remote::{Connection, Remote},
    store_backup, store_migrate, store_restore,
};
use campanile_archive::{Image, Report, Sink, directory, dump};
use campanile_ports::{Row, StoreError};
use campanile_schema::ids::RunId;
use campanile_store::embedded::check;
use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Read everything in a data directory and say what is damaged; changes nothing. Exit code 1: damaged
    Check { dir: PathBuf },
    /// Write everything into one archive: of the running node that --server names, or with --data of a stopped one
    Backup(store_backup::Args),
    /// Make an archive a data directory again
    Restore(store_restore::Args),
    /// Move a stopped node's directory into the CQL store of a cluster that no node has used yet; goes on after a kill
    Migrate(store_migrate::Args),
    /// Read an archive to its end and say what it holds. Exit code 1: it is damaged or cut off
    Verify {
        /// The archive; `-` = standard input
        archive: PathBuf,
    },
    /// Definitions, tenants, runs and ledgers as lines of JSON, of an archive or of a stopped node's directory
    Dump {
        /// An archive (`-` = standard input) or a data directory
        path: PathBuf,
    },
}

pub(super) fn run(command: Command, connection: &Connection, format: Format) -> Result<(), Failure> {
    match command {
        Command::Check { dir } => check(&dir, format),
        Command::Backup(args) => store_backup::run(&args, || Remote::new(connection), format),
        Command::Restore(args) => store_restore::run(&args, format),
        Command::Migrate(args) => store_migrate::run(args, format),
        Command::Verify { archive } => verify(&archive, format),
        Command::Dump { path } => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let done = if path.is_dir() {
                let _reading = Progress::new(format!("dumping {}", path.display()), Unit::Time, None);
                directory::with_reader(&path, now_ms(), |reader| dump::lines(reader, &mut out))
            } else {
                let reading = reading(&path, "dumping");
                open(&path, &reading).and_then(|reader| dump::lines(reader, &mut out))
            };
            // A closed pipe ends the output, not the command.
            let _ = out.flush();
            done.map_err(|e| of_store(&e))
        }
    }
}

fn check(dir: &Path, format: Format) -> Result<(), Failure> {
    let checking = Progress::new(format!("checking {}", dir.display()), Unit::Time, None);
    let report = check::check(dir).map_err(|error| Failure::usage(error.to_string()))?;
    drop(checking);
    show(&report, format)?;
    if report.is_whole() { Ok(()) } else { Err(Failure::here(format!("{} is damaged", dir.display()))) }
}

/// Rows and logs are looked at, and go nowhere.
struct Nowhere;

impl Sink for Nowhere {
    fn rows(&mut self, _: Vec<(u64, Row)>) -> Result<(), StoreError> {
        Ok(())
    }
    fn log(&mut self, _: RunId, _: u32, _: Vec<u8>) -> Result<(), StoreError> {
        Ok(())
    }
}

fn verify(archive: &Path, format: Format) -> Result<(), Failure> {
    let reading = reading(archive, "verifying");
    let image = open(archive, &reading).and_then(|reader| Image::read(reader, &mut Nowhere));
    let report = image.and_then(|image| Report::of(&image)).map_err(|e| of_store(&e))?;
    drop(reading);
    show(&report, format)
}
