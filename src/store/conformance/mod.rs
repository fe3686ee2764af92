//! One suite for all stores: the same calls must mean the same on memory, on the embedded store with real files, on the embedded
//! store with the crash disk, and, where a cluster has the port too, on a CQL server (`make test-cql`).
#![allow(clippy::unwrap_used)]

/// Tests of a port that every kind of store has. The one on a CQL server needs it, and is left out by default.
macro_rules! every_store {
    ($(fn $name:ident($store:ident: &dyn $port:ident, $on:ident: &str) $body:block)+) => {$(
        mod $name {
            use super::*;

            fn check($store: &dyn $port, $on: &str) $body

            #[test]
            fn local() {
                for bench in benches() {
                    check(bench.store().as_ref(), bench.name);
                }
            }

            #[test]
            #[ignore = "needs a CQL server: make test-cql"]
            fn cql() {
                check(&crate::conformance::apart::Apart::new(), "cql");
            }
        }
    )+};
}

mod apart;
mod journal;
mod leases;
mod snapshots;
mod views;

use crate::{
    embedded::{EmbeddedOptions, EmbeddedStore, TableSource, views::FjallSource},
    file::{Files, crash::CrashFiles, real::RealFiles},
    memory::{
        MemoryStore,
        faults::{Fault, Op},
        tables::MemoryTables,
    },
    tables::Tables,
};
use campanile_ports::{Journal, LocalViews, Opened, Position, Snapshots, StoreError};
use campanile_schema::ids::ClusterId;
use std::{path::Path, sync::Arc};

/// All ports together.
pub trait Store: Journal + Snapshots + LocalViews {}
impl<T: Journal + Snapshots + LocalViews> Store for T {}

/// Tables in memory for an embedded store; they outlive it as files would.
#[derive(Clone, Default)]
pub struct MemorySource(pub Arc<MemoryTables>);

impl TableSource for MemorySource {
    fn open(&self, _options: &EmbeddedOptions) -> Result<Arc<dyn Tables>, String> {
        let tables: Arc<dyn Tables> = self.0.clone();
        Ok(tables)
    }

    fn begin(&self, _options: &EmbeddedOptions, position: Position) -> Result<Arc<dyn Tables>, StoreError> {
        self.0.begin_at(position);
        Ok(self.0.clone())
    }
}

enum StoreKind {
    Memory(Arc<MemoryStore>),
    Real(tempfile::TempDir, Option<Arc<EmbeddedStore>>),
    Crash(CrashFiles, MemorySource, Option<Arc<EmbeddedStore>>),
}

/// A store under test.
pub struct Bench {
    pub name: &'static str,
    pub opened: Opened,
    kind: StoreKind,
}

/// Small, so that tests see many segments.
pub const SEGMENT: u64 = 32 << 10;

pub fn options(dir: &Path) -> EmbeddedOptions {
    EmbeddedOptions { shards: 4, segment_bytes: SEGMENT, cluster_id: Some(ClusterId(7)), ..EmbeddedOptions::new(dir) }
}

/// One of each kind, empty.
pub fn benches() -> Vec<Bench> {
    let (memory, opened) = MemoryStore::open(4, ClusterId(7));
    let memory = Bench { name: "memory", opened, kind: StoreKind::Memory(memory) };
    let temp = tempfile::tempdir().unwrap();
    let (store, opened) = EmbeddedStore::open(options(temp.path())).unwrap();
    let real = Bench { name: "embedded", opened, kind: StoreKind::Real(temp, Some(store)) };
    let (files, source) = (CrashFiles::new(1), MemorySource::default());
    let (store, opened) = open_crash(&files, &source);
    let crash =
        Bench { name: "embedded on the crash disk", opened, kind: StoreKind::Crash(files, source, Some(store)) };
    vec![memory, real, crash]
}

fn open_crash(files: &CrashFiles, source: &MemorySource) -> (Arc<EmbeddedStore>, Opened) {
    EmbeddedStore::open_on(Arc::new(files.clone()), &options(Path::new("/data")), source).unwrap()
}

impl Bench {
    pub fn store(&self) -> Arc<dyn Store> {
        match &self.kind {
            StoreKind::Memory(store) => store.clone(),
            StoreKind::Real(_, store) | StoreKind::Crash(_, _, store) => store.clone().unwrap(),
        }
    }

    /// The process ends in an orderly way and starts again.
    pub fn restart(&mut self) -> Arc<dyn Store> {
        match &mut self.kind {
            StoreKind::Memory(store) => self.opened = store.restart(),
            StoreKind::Real(temp, store) => {
                *store = None;
                let (again, opened) =
                    EmbeddedStore::open_on(Arc::new(RealFiles), &options(temp.path()), &FjallSource).unwrap();
                *store = Some(again);
                self.opened = opened;
            }
            StoreKind::Crash(files, source, store) => {
                *store = None;
                source.0.revert_to_last_flush();
                let (again, opened) = open_crash(files, source);
                *store = Some(again);
                self.opened = opened;
            }
        }
        self.store()
    }

    /// The next append's write fails. False where that cannot be arranged (a real disk).
    pub fn fail_next_append(&self) -> bool {
        match &self.kind {
            StoreKind::Memory(store) => store.inject(Op::Append, 0, Fault::WriteFailed),
            StoreKind::Crash(files, ..) => files.fail_write_in(0),
            StoreKind::Real(..) => return false,
        }
        true
    }

    /// Goes on after `WriteFailed`.
    pub fn reopen(&mut self) {
        self.opened = match &self.kind {
            StoreKind::Memory(store) => store.reopen(),
            StoreKind::Real(_, store) | StoreKind::Crash(_, _, store) => store.as_ref().unwrap().reopen().unwrap(),
        };
    }
}

#[test]
fn one_directory_serves_one_process_and_keeps_what_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let (store, first) = EmbeddedStore::open(options(temp.path())).unwrap();
    let Err(StoreError::Refused(why)) = EmbeddedStore::open(options(temp.path())) else { panic!("opened twice") };
    assert!(why.contains("another process uses this directory"), "{why}");
    drop(store);
    let other = EmbeddedOptions { shards: 8, ..options(temp.path()) };
    let (store, second) = EmbeddedStore::open(other).unwrap();
    assert_eq!(second.format, first.format, "the directory's shards win");
    assert_eq!(second.session.0, first.session.0 + 1);
    drop(store);
    assert!(RealFiles.exists(&temp.path().join("FORMAT")).unwrap());
}
