//! An archive becomes a directory that a node can serve.

use super::{
    image::{Image, Sink},
    report::Report,
};
use campanile_actors::at_rest::{Loaded, Since};
use campanile_ports::{Position, Row, Snapshots, StoreError, ViewBatch, Views};
use campanile_schema::ids::{Epoch, RunId};
use campanile_store::{
    archive::reader::ArchiveReader,
    embedded::{EmbeddedOptions, restore::NewDirectory},
};
use std::{future::Future, io::Read, path::Path};
use tokio::runtime::Runtime;

/// Number of the first snapshot of each shard.
const SNAPSHOT: u64 = 1;

/// How it is restored.
#[derive(Clone, Copy, Debug)]
pub struct Restoring {
    pub since: Since,
    /// The clock, ms since 1970.
    pub now_ms: i64,
    /// None = as many as the store had.
    pub shards: Option<u16>,
}

/// Restores into an empty directory. On an error the directory is left empty, or marked so that nobody opens it.
pub fn into_directory<R: Read>(
    reader: ArchiveReader<R>,
    dir: &Path,
    how: Restoring,
) -> Result<(Report, Restored), StoreError> {
    let head = reader.head().clone();
    let mut options = EmbeddedOptions::new(dir);
    options.shards = how.shards.unwrap_or(head.store.shards);
    let new = NewDirectory::begin(options, &head.store, head.cut)?;
    let epoch = Epoch(new.opened.session.0);
    let target = Target { snapshots: &*new.store, views: &*new.store, epoch, position: head.cut };
    let filled = target.fill(reader, new.opened.format.shards, how).and_then(|filled| {
        wait(campanile_ports::LocalViews::flush(&*new.store))?;
        Ok(filled)
    });
    match filled {
        Ok(filled) => new.finish().map(|()| filled),
        Err(error) => {
            new.give_up();
            Err(error)
        }
    }
}

/// What a restore did besides copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Restored {
    /// Runs that wait for a person, because their bodies may have run after the backup.
    pub to_confirm: u64,
    /// Stretches of instants that were closed as skipped.
    pub skipped: u64,
}

/// Where an archive goes.
pub struct Target<'a> {
    pub snapshots: &'a dyn Snapshots,
    pub views: &'a dyn Views,
    pub epoch: Epoch,
    /// Where replay is to begin.
    pub position: Position,
}

impl Target<'_> {
    /// Reads the archive to its end, and writes everything.
    pub fn fill<R: Read>(
        &self,
        reader: ArchiveReader<R>,
        shards: u16,
        how: Restoring,
    ) -> Result<(Report, Restored), StoreError> {
        let runtime = runtime()?;
        let mut sink = IntoViews { views: self.views, runtime: &runtime, position: self.position };
        let image = Image::read(reader, &mut sink)?;
        let report = Report::of(&image)?;
        let mut restored = Restored::default();
        let mut applied = Vec::new();
        for mut shard in Loaded::reshard(image.shards, shards) {
            let before = waiting_for_people(&shard)?;
            let rows = shard.restore(how.since, how.now_ms, self.epoch)?;
            restored.to_confirm += waiting_for_people(&shard)? - before;
            restored.skipped += rows.len() as u64;
            sink.rows(rows)?;
            runtime.block_on(shard.write(self.snapshots, SNAPSHOT, self.epoch, self.position))?;
            applied.push((shard.id, shard.state().seq));
            #[cfg(feature = "faults")]
            campanile_ports::faults::point("restore");
        }
        let batch = ViewBatch { rows: Vec::new(), applied, position: self.position };
        runtime.block_on(self.views.apply(batch))?;
        Ok((report, restored))
    }
}

fn waiting_for_people(shard: &Loaded) -> Result<u64, StoreError> {
    use campanile_schema::record::RunState;
    let mut count = 0;
    for job in shard.jobs() {
        count += job?.hot.runs.iter().filter(|r| r.state() == RunState::NeedsConfirmation).count() as u64;
    }
    Ok(count)
}

struct IntoViews<'a> {
    views: &'a dyn Views,
    runtime: &'a Runtime,
    position: Position,
}

impl Sink for IntoViews<'_> {
    fn rows(&mut self, rows: Vec<(u64, Row)>) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let batch = ViewBatch { rows, applied: Vec::new(), position: self.position };
        self.runtime.block_on(self.views.apply(batch))
    }

    fn log(&mut self, run: RunId, attempt: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.runtime.block_on(self.views.append_log(run, attempt, bytes))
    }
}

pub(super) fn runtime() -> Result<Runtime, StoreError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|e| StoreError::Unavailable(format!("no threads to run on: {e}")))
}

fn wait<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    runtime()?.block_on(call)
}
