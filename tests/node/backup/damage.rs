//! Archives that are not whole are refused with the place, and a process that dies leaves nothing that looks whole.

use super::*;
use std::fs;

fn small_archive(dir: &Path) -> PathBuf {
    let dev = start(dir);
    every_second(&dev, "tick", "SKIP");
    eventually("a run", || Some(ended(&dev, "tick")).filter(|runs| !runs.is_empty()));
    let archive = archive_of(dir);
    backup(&dev, &archive).ok();
    archive
}

#[test]
fn an_altered_or_cut_archive_is_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let archive = small_archive(dir.path());
    let whole = fs::read(&archive).unwrap();
    let bad = dir.path().join("bad");
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&bad, bytes).unwrap();
        let done = run(&["store", "verify", text(&bad)]);
        assert_ne!(done.code, 0, "{what}: {done:?}");
        assert!(done.err.contains("offset") || done.err.contains("unknown"), "{what}: {}", done.err);
    };
    for n in 0..40 {
        let at = whole.len() * n / 40;
        let mut altered = whole.clone();
        altered[at] ^= 0x10;
        refused(&altered, &format!("byte {at} altered"));
        refused(&whole[..at], &format!("cut at {at}"));
    }
    let last = whole.len() - 1;
    refused(&whole[..last], "its last byte is missing");
    refused(&[&whole[..], b"x"].concat(), "a byte too many");
    // A block left out: the checksum of the next one does not follow.
    let stored = |at: usize| u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
    let second = 8 + 16 + stored(8);
    let third = second + 16 + stored(second);
    refused(&[&whole[..second], &whole[third..]].concat(), "the second block is missing");

    let data = tempfile::tempdir().unwrap();
    let mut altered = whole.clone();
    altered[whole.len() * 3 / 4] ^= 1;
    fs::write(&bad, &altered).unwrap();
    let done = restore(&bad, data.path(), &["--since", "now"]);
    assert_eq!(done.code, 1, "{done:?}");
    let left: Vec<_> = fs::read_dir(data.path().join("data/node")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "LOCK"), "{left:?}");
    restore(&archive, data.path(), &["--since", "now"]).ok();
}

#[test]
fn a_node_killed_during_a_backup_leaves_no_archive_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    every_second(&dev, "tick", "SKIP");
    eventually("runs", || Some(ended(&dev, "tick")).filter(|runs| runs.len() >= 2));
    assert_eq!(dev.stop(), 0);
    let dev = start_with(dir.path(), &[("CAMPANILE_FAULT", "point:backup=kill:1")]);
    let archive = archive_of(dir.path());
    let done = backup(&dev, &archive);
    assert!(done.code == 1 || done.code == 7, "{done:?}");
    assert!(!archive.exists());
    assert!(!dir.path().join("archive.partial").exists());
    drop(dev);
    let dev = start(dir.path());
    backup(&dev, &archive).ok();
    whole(&dev.ledger("tick"));
}

#[test]
fn a_killed_restore_is_used_by_nobody_and_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let archive = small_archive(dir.path());
    let place = tempfile::tempdir().unwrap();
    let node = place.path().join("data/node");
    for times in ["1", "8", "16"] {
        let mut killed = program::campanile();
        killed.args(["store", "restore", text(&archive), "--since", "backup", "--data", text(&node)]);
        killed.env("CAMPANILE_FAULT", format!("point:restore=kill:{times}"));
        let output = killed.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let refused = run(&["store", "check", text(&node)]).refused(2);
        assert!(refused.contains("restore"), "{refused}");
        let refused = Dev::refused(&place.path().join("data"));
        assert!(refused.contains("store restore"), "{refused}");
    }
    restore(&archive, place.path(), &["--since", "backup"]).ok();
    let dev = start(place.path());
    eventually("runs", || Some(ended(&dev, "tick")).filter(|runs| runs.len() >= 2));
    whole(&dev.ledger("tick"));
}
