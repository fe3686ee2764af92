//! `campanile store backup`: an archive of a running node, or of a stopped one's directory.
//!
//! What is written is read on its way. A file gets its name when it is whole and on the disk; before, it is `NAME.partial`.

use super::{
    archives::now_ms,
    failure::{Failure, of_store},
    output::{self, Format},
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_archive::directory;
use campanile_ports::{StoreError, private};
use campanile_schema::{operations::rows, time::Timestamp};
use campanile_store::archive::{ArchiveReader, Head, Totals};
use serde_json::json;
use std::{
    fs,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

#[derive(clap::Args)]
pub(super) struct Args {
    /// File to write; `-` = standard output
    archive: PathBuf,
    /// Directory of a stopped node instead of a running one
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(super) fn run(
    args: &Args,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: Format,
) -> Result<(), Failure> {
    if args.archive == Path::new("-") {
        let report = write(args, remote, &mut io::stdout().lock())?;
        eprintln!("{report}");
        return Ok(());
    }
    let named = |e: io::Error, path: &Path| Failure::here(format!("{}: {e}", path.display()));
    if args.archive.exists() {
        return Err(Failure::usage(format!("{}: exists; name a file that does not", args.archive.display())));
    }
    let partial = with_suffix(&args.archive, ".partial");
    // Definitions may hold what is nobody else's business.
    let file = private::options().create(true).truncate(true).open(&partial);
    let file = file.map_err(|e| named(e, &partial))?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let report = write(args, remote, &mut out).and_then(|report| {
        out.flush().and_then(|()| file.sync_all()).map_err(|e| named(e, &partial))?;
        Ok(report)
    });
    drop(out);
    let report = match report {
        Ok(report) => report,
        Err(why) => {
            // It is of no use to anybody.
            let _ = fs::remove_file(&partial);
            return Err(why);
        }
    };
    // Fails where the name was taken meanwhile, and takes nobody's file.
    fs::hard_link(&partial, &args.archive)
        .and_then(|()| fs::remove_file(&partial))
        .and_then(|()| private::sync_name(&args.archive))
        .map_err(|e| named(e, &args.archive))?;
    match format {
        Format::Table => output::text(&format!("{}: {report}\n", args.archive.display())),
        Format::Json | Format::Yaml => output::one(format, &report.value())?,
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What is told of a backup.
struct BackupReport {
    head: Head,
    totals: Totals,
    bytes: u64,
}

impl BackupReport {
    fn value(&self) -> serde_json::Value {
        json!({
            "cutAt": Timestamp(self.head.at_ms), "bytes": self.bytes, "snapshots": self.totals.snapshots,
            "historyRows": self.totals.rows, "logPieces": self.totals.logs, "journalBatches": self.totals.batches,
        })
    }
}

impl std::fmt::Display for BackupReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { snapshots, batches, rows, logs } = self.totals;
        write!(
            f,
            "{} bytes, whole: everything acknowledged before {} ({snapshots} snapshots, {batches} batches of the journal, \
             {rows} rows of history, {logs} pieces of logs)",
            self.bytes,
            Timestamp(self.head.at_ms)
        )
    }
}

fn write(
    args: &Args,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    out: &mut dyn Write,
) -> Result<BackupReport, Failure> {
    match &args.data {
        Some(dir) => {
            let read = |input| copy(input, dir.display().to_string(), out);
            directory::with_bytes(dir, now_ms(), read).map_err(|e| of_store(&e))
        }
        None => {
            let (name, answer) = remote()?.stream(rows::STORE_BACKUP.path(), &[])?;
            copy(answer, name, out).map_err(|e| of_store(&e))
        }
    }
}

/// Copies an archive, and reads it meanwhile.
fn copy(input: impl Read, name: String, out: &mut dyn Write) -> Result<BackupReport, StoreError> {
    let copying = Progress::new(format!("backup of {name}"), Unit::Bytes, None);
    let mut reader = ArchiveReader::open(Copying { input: copying.counting(input), out }, name)?;
    while reader.record()?.is_some() {}
    Ok(BackupReport { head: reader.head().clone(), totals: reader.totals(), bytes: reader.bytes() })
}

/// What is read of `input` is written to `out`.
struct Copying<'a, R> {
    input: R,
    out: &'a mut dyn Write,
}

impl<R: Read> Read for Copying<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.out.write_all(&buffer[..got])?;
        Ok(got)
    }
}
