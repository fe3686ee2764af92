//! `campanile bench` beside a harness, and without one.
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// The program alone in a directory.
fn alone(dir: &Path) -> Command {
    let own = dir.join("campanile");
    // Another file system has no hard links to ours.
    if fs::hard_link(env!("CARGO_BIN_EXE_campanile"), &own).is_err() {
        fs::copy(env!("CARGO_BIN_EXE_campanile"), &own).unwrap();
    }
    let mut command = Command::new(own);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    command
}

#[test]
fn a_missing_harness_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let output = alone(dir.path()).arg("bench").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    for part in
        ["campanile-loadtest", dir.path().to_str().unwrap(), "PATH", "cargo build --release -p campanile-loadtest"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn the_harness_gets_the_arguments_and_gives_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let harness = dir.path().join("campanile-loadtest");
    fs::write(&harness, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&harness, fs::Permissions::from_mode(0o755)).unwrap();
    let beside = alone(dir.path()).args(["bench", "herd", "--check", "--dir", "d"]).output().unwrap();
    let node = dir.path().canonicalize().unwrap().join("campanile");
    let told = String::from_utf8(beside.stdout).unwrap();
    assert_eq!(told, format!("run herd --check --dir d --short --server-bin {}\n", node.display()));
    assert_eq!(beside.status.code(), Some(7));
    // Not beside the program, but on PATH.
    let other = tempfile::tempdir().unwrap();
    let path = format!("/nowhere:{}", dir.path().display());
    let on_path = alone(other.path()).arg("bench").env("PATH", path).output().unwrap();
    assert!(String::from_utf8(on_path.stdout).unwrap().starts_with("run steady --dir "));
    assert_eq!(on_path.status.code(), Some(7));
}
