//! The same history through its files: torn last lines are forgiven, damage in the middle is not.

use super::{green::story, world::World};
use crate::checker::{ViolationKind, check_dir};
use serde::Serialize;
use std::{fmt::Write as _, fs, path::Path};

fn lines<T: Serialize>(items: &[T]) -> String {
    items.iter().fold(String::new(), |mut text, item| {
        writeln!(text, "{}", serde_json::to_string(item).unwrap()).unwrap();
        text
    })
}

fn write(world: &World, dir: &Path) {
    for (name, items) in &world.executors {
        fs::write(dir.join(format!("{name}.jsonl")), lines(items)).unwrap();
    }
    fs::write(dir.join("caller-1.jsonl"), lines(&world.caller)).unwrap();
    fs::write(dir.join("faults.jsonl"), lines(&world.faults)).unwrap();
    fs::write(dir.join("ledger.jsonl"), lines(&world.ledger)).unwrap();
    fs::write(dir.join("runs.jsonl"), lines(&world.runs)).unwrap();
    if let Some(meta) = &world.meta {
        fs::write(dir.join("meta.json"), serde_json::to_vec(meta).unwrap()).unwrap();
    }
}

#[test]
fn files_read_back_as_the_same_history() {
    let world = story().world;
    let dir = tempfile::tempdir().unwrap();
    write(&world, dir.path());
    let verdict = check_dir(dir.path()).unwrap();
    assert!(verdict.green, "{verdict}");
    assert_eq!(verdict, world.verdict());
}

#[test]
fn a_torn_last_line_is_counted_and_damage_is_red() {
    let world = story().world;
    let dir = tempfile::tempdir().unwrap();
    write(&world, dir.path());
    let path = dir.path().join("executor-b.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"event\":\"START\",\"t_us\":17")).unwrap();
    let verdict = check_dir(dir.path()).unwrap();
    assert!(verdict.green, "{verdict}");
    assert_eq!(verdict.counts.torn_lines, 1, "{verdict}");
    fs::write(&path, format!("{{\"event\":\"START\",\n{whole}")).unwrap();
    assert!(check_dir(dir.path()).unwrap().has(ViolationKind::LogDamaged));
}

#[test]
fn a_missing_directory_is_an_error() {
    assert!(check_dir(Path::new("no/such/run")).is_err());
}
