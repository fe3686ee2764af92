//! Damage on disk: refused with file and offset when it hits what was acknowledged, cut when it cannot have been.
#![allow(clippy::unwrap_used)]

use super::super::{EmbeddedStore, check::check_on, meta, segment::PAGE};
use crate::{
    conformance::{MemorySource, SEGMENT, options},
    file::{Files, Open, SyncSite, crash::CrashFiles},
    samples::{at, batch, journal_batch, wait},
};
use campanile_ports::{Journal, LocalViews, Manifest, Position, SnapshotPart, Snapshots, StoreError, Views};
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow},
    ids::{Epoch, ShardId},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

const DIR: &str = "/data";

struct Disk {
    files: CrashFiles,
    source: MemorySource,
}

impl Disk {
    fn new() -> Self {
        Self { files: CrashFiles::new(9), source: MemorySource::default() }
    }

    fn open(&self) -> Result<Arc<EmbeddedStore>, StoreError> {
        EmbeddedStore::open_on(Arc::new(self.files.clone()), &options(Path::new(DIR)), &self.source).map(|(s, _)| s)
    }

    /// A session of `batches` batches, a page each, of frames of shard 1.
    fn session_and(&self, batches: u64, flush: bool) {
        let store = self.open().unwrap();
        let done = wait(store.applied(ShardId(1))).unwrap();
        let session = store.inner.log.lock().session();
        for seq in 1..=batches {
            wait(store.append(0, seq, &journal_batch(1, done + seq, 1))).unwrap();
        }
        let applied = batch(at(session.0, batches), &[(1, done + batches)], Vec::new());
        wait(store.apply(applied)).unwrap();
        if flush {
            wait(store.flush()).unwrap();
        }
    }

    fn session(&self, batches: u64) {
        self.session_and(batches, false);
    }

    fn refusal(&self) -> String {
        match self.open() {
            Err(StoreError::Corrupt(why)) => why,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("opened"),
        }
    }

    fn flip(&self, name: &str, offset: u64) {
        self.files.flip_bit(&Path::new(DIR).join(name), offset, 3).unwrap();
    }

    fn path(name: &str) -> PathBuf {
        Path::new(DIR).join(name)
    }

    fn findings(&self) -> Vec<String> {
        check_on(Arc::new(self.files.clone()), Path::new(DIR)).unwrap().findings
    }

    fn batches(&self) -> usize {
        let store = self.open().unwrap();
        wait(store.read_after(Position::default(), 1 << 30)).unwrap().len()
    }
}

const FIRST: &str = "log/0000000000000001.seg";
const SECOND: &str = "log/0000000000000002.seg";

#[test]
fn a_damaged_batch_that_a_later_one_states_durable_is_refused_with_file_and_offset() {
    for offset in [PAGE, PAGE + 70, 2 * PAGE + 3] {
        let disk = Disk::new();
        disk.session(4);
        disk.flip(FIRST, offset);
        let page = offset / PAGE * PAGE;
        for why in [disk.refusal(), disk.findings().join("\n")] {
            assert!(why.contains(FIRST), "{why}");
            assert!(why.contains(&format!("offset {page}:")), "{why}");
            assert!(why.contains("backup"), "says what to do: {why}");
        }
    }
}

#[test]
fn a_batch_of_zeros_among_acknowledged_ones_is_refused() {
    let disk = Disk::new();
    disk.session(4);
    let file = disk.files.open(&Disk::path(FIRST), Open::Write).unwrap();
    file.write_at(&[0; PAGE as usize], 2 * PAGE).unwrap();
    assert!(disk.refusal().contains(&format!("offset {}:", 2 * PAGE)));
}

#[test]
fn damage_in_a_sealed_segment_is_refused_even_in_its_last_batch() {
    let disk = Disk::new();
    disk.session(4);
    disk.session(4);
    disk.flip(FIRST, 4 * PAGE + 5);
    assert!(disk.refusal().contains(&format!("{FIRST}: offset {}:", 4 * PAGE)));
}

#[test]
fn a_damaged_last_batch_is_refused_when_views_or_a_snapshot_cover_it() {
    let disk = Disk::new();
    disk.session(4);
    let store = disk.open().unwrap();
    let replay_after = at(1, 4);
    let manifest = Manifest { number: 1, epoch: Epoch(1), shard_seq: 4, replay_after, last_hlc: 1, parts: Vec::new() };
    wait(store.publish(ShardId(1), manifest)).unwrap();
    drop(store);
    disk.flip(FIRST, 4 * PAGE + 5);
    let why = disk.refusal();
    assert!(why.contains("views or snapshots cover session 1 seq 4"), "{why}");
    assert!(why.contains(FIRST), "{why}");
}

#[test]
fn a_torn_tail_is_cut_and_what_was_acknowledged_stays() {
    let disk = Disk::new();
    disk.session(4);
    let file = disk.files.open(&Disk::path(FIRST), Open::Write).unwrap();
    file.write_at(&[0xab; 3_000], 5 * PAGE).unwrap();
    assert_eq!(disk.findings(), [""; 0]);
    assert!(check_on(Arc::new(disk.files.clone()), Path::new(DIR)).unwrap().torn_tail);
    assert_eq!(disk.batches(), 4);
    assert_eq!(file.size().unwrap(), 5 * PAGE, "cut");
    disk.session(2);
    assert_eq!(disk.batches(), 6);
}

#[test]
fn a_missing_or_headless_segment_is_refused() {
    let disk = Disk::new();
    disk.session(4);
    disk.session(4);
    disk.flip(SECOND, 40);
    assert!(disk.refusal().contains("header is damaged"));
    disk.flip(SECOND, 40);
    disk.files.remove(&Disk::path(FIRST)).unwrap();
    assert!(disk.refusal().contains(&format!("{FIRST}: the segment is missing")));
}

#[test]
fn a_directory_without_its_small_files_or_with_damaged_ones_is_refused() {
    for (name, offset) in [("FORMAT", 20), ("SESSION", 5), ("log/TRIM", 8), ("FLUSHED", 8)] {
        let disk = Disk::new();
        disk.session(2);
        disk.flip(name, offset);
        let why = match disk.open() {
            Err(StoreError::Corrupt(why)) => why,
            Err(other) => panic!("{name}: {other}"),
            Ok(_) => panic!("{name}: opened"),
        };
        assert!(why.contains(name), "{why}");
        assert!(why.contains("offset"), "{why}");
    }
    for name in ["FORMAT", "SESSION", "log/TRIM"] {
        let disk = Disk::new();
        disk.session(2);
        disk.files.remove(&Disk::path(name)).unwrap();
        assert!(disk.refusal().contains(name));
    }
}

#[test]
fn a_session_number_that_went_back_is_refused() {
    let disk = Disk::new();
    disk.session(1);
    disk.session(1);
    super::super::meta::write_session(&disk.files, Path::new(DIR), campanile_schema::ids::SessionId(0)).unwrap();
    let why = disk.refusal();
    assert!(why.contains("written by session 2"), "{why}");
    assert!(why.contains("SESSION"), "{why}");
}

#[test]
fn a_newer_format_is_refused_and_changes_nothing() {
    let disk = Disk::new();
    drop(disk.open().unwrap());
    let mut row = meta::read_format(&disk.files, Path::new(DIR)).unwrap().unwrap();
    row.event_format += 1;
    meta::write_format(&disk.files, Path::new(DIR), &row).unwrap();
    let Err(StoreError::Refused(why)) = disk.open() else { panic!("opened") };
    assert!(why.contains("Start a release that is at least as new"), "{why}");
}

#[test]
fn a_read_model_of_a_newer_form_is_refused_and_an_older_one_is_marked_as_ours() {
    let disk = Disk::new();
    drop(disk.open().unwrap());
    let stands = || meta::views_format(&disk.files, Path::new(DIR));
    assert_eq!(stands(), Some(meta::VIEWS_FORMAT));
    meta::write_views_format(&disk.files, Path::new(DIR), 1);
    assert_eq!(stands(), Some(1));
    drop(disk.open().unwrap());
    assert_eq!(stands(), Some(meta::VIEWS_FORMAT), "a release before that knows the mark refuses it now");
    meta::write_views_format(&disk.files, Path::new(DIR), meta::VIEWS_FORMAT + 1);
    let Err(StoreError::Refused(why)) = disk.open() else { panic!("opened") };
    assert!(why.contains("/data/FORMAT: its read model is written in form 3; this release knows 2"), "{why}");
    assert!(why.contains("Start a release that is at least as new"), "{why}");
    let Err(StoreError::Refused(_)) = check_on(Arc::new(disk.files.clone()), Path::new(DIR)) else { panic!("checked") };
}

/// As a release before format 2 made it.
fn of_the_first_format(disk: &Disk) {
    let row = meta::read_format(&disk.files, Path::new(DIR)).unwrap().unwrap();
    meta::write_format(&disk.files, Path::new(DIR), &FormatRow { event_format: 1, ..row }).unwrap();
}

fn format_of(disk: &Disk) -> u32 {
    meta::read_format(&disk.files, Path::new(DIR)).unwrap().unwrap().event_format
}

#[test]
fn a_directory_of_an_earlier_format_is_raised_once_it_could_be_opened() {
    let disk = Disk::new();
    drop(disk.open().unwrap());
    of_the_first_format(&disk);
    // Nobody writes.
    drop(check_on(Arc::new(disk.files.clone()), Path::new(DIR)).unwrap());
    assert_eq!(format_of(&disk), 1);
    let store = disk.open().unwrap();
    assert_eq!(format_of(&disk), EVENT_FORMAT);
    assert_eq!(store.reopen().unwrap().format.event_format, EVENT_FORMAT, "what may be written from now on");
}

#[test]
fn a_directory_that_cannot_be_opened_keeps_its_format() {
    let disk = Disk::new();
    drop(disk.open().unwrap());
    of_the_first_format(&disk);
    super::super::meta::write_session(&disk.files, Path::new(DIR), campanile_schema::ids::SessionId(7)).unwrap();
    disk.session(1);
    super::super::meta::write_session(&disk.files, Path::new(DIR), campanile_schema::ids::SessionId(0)).unwrap();
    of_the_first_format(&disk);
    drop(disk.refusal());
    assert_eq!(format_of(&disk), 1);
}

#[test]
fn a_power_cut_while_a_format_is_raised_leaves_the_old_one_or_ours() {
    let mut seen = BTreeSet::new();
    for changes in 0..60 {
        let disk = Disk::new();
        disk.session(3);
        of_the_first_format(&disk);
        disk.files.sync_dir(Path::new(DIR), SyncSite::CreateDirs).unwrap();
        disk.files.power_off_in(changes);
        drop(disk.open());
        let disk = Disk { files: disk.files.cut(), source: disk.source };
        disk.files.calm();
        seen.insert(format_of(&disk));
        assert_eq!(disk.batches(), 3, "cut after {changes} changes");
        assert_eq!(format_of(&disk), EVENT_FORMAT);
    }
    assert_eq!(seen, BTreeSet::from([1, EVENT_FORMAT]), "both were met");
}

#[test]
fn a_power_cut_while_a_read_model_is_marked_leaves_the_old_mark_or_ours() {
    let mut seen = BTreeSet::new();
    for changes in 0..40 {
        let disk = Disk::new();
        disk.session(3);
        meta::write_views_format(&disk.files, Path::new(DIR), 1);
        disk.files.sync_dir(Path::new(DIR), SyncSite::CreateDirs).unwrap();
        disk.files.power_off_in(changes);
        drop(disk.open());
        let disk = Disk { files: disk.files.cut(), source: disk.source };
        disk.files.calm();
        seen.extend(meta::views_format(&disk.files, Path::new(DIR)));
        assert_eq!(disk.batches(), 3, "cut after {changes} changes");
        assert_eq!(meta::views_format(&disk.files, Path::new(DIR)), Some(meta::VIEWS_FORMAT));
    }
    assert_eq!(seen, BTreeSet::from([1, meta::VIEWS_FORMAT]), "both were met");
}

#[test]
fn a_damaged_manifest_or_part_is_refused_with_file_and_offset() {
    let disk = Disk::new();
    let store = disk.open().unwrap();
    let chunks = vec![vec![1; 600], vec![2; 600]];
    let part = wait(store.write_part(ShardId(2), 1, SnapshotPart::Hot, chunks)).unwrap();
    let manifest = Manifest {
        number: 1,
        epoch: Epoch(1),
        shard_seq: 0,
        replay_after: Position::default(),
        last_hlc: 0,
        parts: vec![part.clone()],
    };
    wait(store.publish(ShardId(2), manifest)).unwrap();
    disk.flip("snap/2/1.hot", 700);
    let Err(StoreError::Corrupt(why)) = wait(store.read_part(ShardId(2), part)) else { panic!("read") };
    assert!(why.contains("snap/2/1.hot: offset 600:"), "{why}");
    drop(store);
    assert!(disk.findings()[0].contains("snap/2/1.hot"));
    disk.flip("snap/2/MANIFEST", 9);
    assert!(disk.refusal().contains("snap/2/MANIFEST"));
    assert_eq!(disk.findings().len(), 1);
}

#[test]
fn check_counts_what_is_there_and_finds_holes_between_frames() {
    let disk = Disk::new();
    disk.session(4);
    let report = check_on(Arc::new(disk.files.clone()), Path::new(DIR)).unwrap();
    assert!(report.is_whole(), "{report}");
    assert_eq!((report.batches, report.frames, report.events, report.shards_in_journal), (4, 4, 4, 1));
    assert_eq!(report.last, at(1, 4));
    assert!(report.to_string().ends_with("whole"), "{report}");
    assert!(serde_json::to_string(&report).unwrap().contains("\"tornTail\":false"));
    let store = disk.open().unwrap();
    wait(store.append(0, 1, &journal_batch(1, 6, 1))).unwrap();
    wait(store.append(0, 2, &journal_batch(3, 2, 1))).unwrap();
    wait(store.append(0, 3, b"\xc1 is no frame")).unwrap();
    drop(store);
    let findings = disk.findings();
    assert!(findings[0].contains("shard 1: frame 6 where 5 is due"), "{findings:?}");
    assert!(findings[1].contains("session 2 seq 3: frame:"), "{findings:?}");
    assert!(findings[2].contains("shard 3: its snapshot ends at frame 0"), "{findings:?}");
    assert_eq!(findings.len(), 3);
}

#[test]
fn a_directory_in_use_or_without_a_store_is_not_checked() {
    let disk = Disk::new();
    let elsewhere = check_on(Arc::new(disk.files.clone()), Path::new("/nothing"));
    assert!(matches!(elsewhere, Err(StoreError::Refused(why)) if why.contains("no store here")));
    let store = disk.open().unwrap();
    let Err(StoreError::Refused(why)) = check_on(Arc::new(disk.files.clone()), Path::new(DIR)) else {
        panic!("checked")
    };
    assert!(why.contains("another process uses this directory"), "{why}");
    drop(store);
}

#[test]
fn trimmed_segments_are_used_again_and_old_bytes_in_them_never_count() {
    let disk = Disk::new();
    let per_segment = SEGMENT / PAGE - 1;
    for _ in 0..6 {
        disk.session_and(3 * per_segment, true);
        let store = disk.open().unwrap();
        wait(store.trim(store.flushed())).unwrap();
        drop(store);
        let report = check_on(Arc::new(disk.files.clone()), Path::new(DIR)).unwrap();
        assert!(report.segments <= 2, "{report}");
    }
    let names = disk.files.list(&Disk::path("log")).unwrap();
    assert!(names.iter().filter(|n| n.ends_with(".spare")).count() <= 2, "{names:?}");
}
