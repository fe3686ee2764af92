//! Directories and ports that a node cannot have, or not as they are.
use super::program::{Dev, run};
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Unit of the journal's segments, bytes: the header takes one, each batch begins on one.
const PAGE: usize = 4096;

fn start(data: &Path) -> Dev {
    Dev::start(data, &["--no-demo", "--no-executor"])
}

/// Jobs with these names, each in a batch of its own.
fn create(dev: &Dev, names: std::ops::Range<u32>) {
    for n in names {
        dev.job(&format!("job-{n}"), json!({"type": "MANUAL"}));
    }
}

fn names(dev: &Dev) -> Vec<String> {
    let list = dev.run(&["job", "list", "--all", "-o", "json"]).json();
    let mut names: Vec<String> =
        list["items"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn of(names: std::ops::Range<u32>) -> Vec<String> {
    names.map(|n| format!("job-{n}")).collect()
}

fn store_check(data: &Path) -> super::program::Done {
    run(&["store", "check", data.join("node").to_str().unwrap()])
}

fn segment(data: &Path) -> PathBuf {
    let mut found: Vec<PathBuf> =
        fs::read_dir(data.join("node/log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "seg"));
    found.sort();
    found.pop().unwrap()
}

/// Where the last batch ends.
fn end_of(segment: &Path) -> usize {
    let bytes = fs::read(segment).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    (last / PAGE + 1) * PAGE
}

#[test]
fn a_directory_that_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    create(&dev, 0..2);
    let node = dir.path().join("node");
    let wanted = format!("{}: another process uses this directory (process {})", node.display(), dev.pid());
    let refused = Dev::refused(dir.path());
    assert!(refused.contains(&wanted), "{refused}");
    assert!(refused.contains("name another directory"), "{refused}");
    let refused = store_check(dir.path()).refused(2);
    assert!(refused.contains(&wanted), "{refused}");
    // Whoever has it was not disturbed.
    create(&dev, 2..3);
    dev.kill();
    // A lock dies with its process.
    assert_eq!(names(&start(dir.path())), of(0..3));
}

#[test]
fn a_directory_of_a_newer_format() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    create(&dev, 0..2);
    assert_eq!(dev.stop(), 0);
    let file = dir.path().join("node/FORMAT");
    let ours = fs::read_to_string(&file).unwrap();
    let mut row: Value = serde_json::from_str(ours.lines().next().unwrap()).unwrap();
    let newer = row["event_format"].as_u64().unwrap() + 1;
    row["event_format"] = newer.into();
    let text = row.to_string();
    fs::write(&file, format!("{text}\ncrc32c {:08x}\n", crc32c::crc32c(text.as_bytes()))).unwrap();
    for refused in [Dev::refused(dir.path()), store_check(dir.path()).refused(2)] {
        for part in
            [&file.display().to_string(), &format!("event format {newer}"), "Start a release that is at least as new"]
        {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    // Nothing was changed: the release that wrote it has it back.
    fs::write(&file, ours).unwrap();
    assert_eq!(names(&start(dir.path())), of(0..2));
}

#[test]
fn damage_in_the_middle_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    create(&dev, 0..5);
    dev.kill();
    let segment = segment(dir.path());
    let file = fs::OpenOptions::new().read(true).write(true).open(&segment).unwrap();
    let offset = 2 * PAGE as u64;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset + 100).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset + 100).unwrap();
    let before = fs::read(&segment).unwrap();
    let place = format!("{}: offset {offset}", segment.display());
    let refused = Dev::refused(dir.path());
    for part in [place.as_str(), "campanile store check", "restore the directory from a backup"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let checked = store_check(dir.path());
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.out.contains(&place), "{checked:?}");
    assert!(checked.out.ends_with("damaged\n"), "{checked:?}");
    assert!(fs::read(&segment).unwrap() == before, "a refused journal was changed");
    // The byte put back, everything is.
    file.write_all_at(&byte, offset + 100).unwrap();
    assert_eq!(names(&start(dir.path())), of(0..5));
}

#[test]
fn a_torn_tail_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    create(&dev, 0..4);
    dev.kill();
    let segment = segment(dir.path());
    let end = end_of(&segment);
    // The beginning of one more batch, as if the power had gone while it was written.
    let file = fs::OpenOptions::new().read(true).write(true).open(&segment).unwrap();
    let mut torn = vec![0; PAGE / 2];
    file.read_exact_at(&mut torn, (end - PAGE) as u64).unwrap();
    torn[PAGE / 4..].fill(0xa5);
    file.write_all_at(&torn, end as u64).unwrap();
    let checked = store_check(dir.path()).ok();
    assert!(checked.contains("torn tail"), "{checked}");
    assert!(checked.ends_with("whole\n"), "{checked}");
    let dev = start(dir.path());
    assert_eq!(fs::metadata(&segment).unwrap().len(), end as u64);
    assert_eq!(names(&dev), of(0..4));
    create(&dev, 4..5);
    dev.kill();
    let checked = store_check(dir.path()).ok();
    assert!(!checked.contains("torn tail"), "{checked}");
    assert!(checked.ends_with("whole\n"), "{checked}");
    assert_eq!(names(&start(dir.path())), of(0..5));
}

#[test]
fn a_port_that_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for (what, http, rpc) in [("HTTP", address.as_str(), free), ("RPC", free, address.as_str())] {
        let refused = Dev::refused_at(dir.path(), http, rpc);
        for part in [&format!("{what} cannot listen on {address}"), "is another node running?"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    // It did not get as far as the directory.
    assert!(!dir.path().join("node").exists());
}
