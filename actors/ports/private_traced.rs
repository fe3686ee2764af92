//! What the crash disk does not hold: small files that are put in place beside the stores. Here the system calls are read (strace): the
//! bytes are synced before the file gets its name, and the directory after its names have changed.
#![allow(clippy::unwrap_used)]

use super::{put_file, remove_file};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the traced process works; the test that starts it sets this.
const DIR: &str = "CAMPANILE_TRACED_DIR";
/// Not for machines on which a process may not be traced.
const SKIP: &str = "CAMPANILE_SKIP_TRACE";
const CALLS: &str = "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";

/// The work that is traced; started by the test below.
#[test]
#[ignore = "started by its tracer"]
fn work() {
    let Ok(dir) = env::var(DIR) else { return };
    let dir = PathBuf::from(dir);
    put_file(&dir, "F", b"first").unwrap();
    put_file(&dir, "F", b"second").unwrap();
    remove_file(&dir, "F").unwrap();
    remove_file(&dir, "F").unwrap();
}

/// The successful calls on files of the directory, in words.
fn steps(trace: &str, dir: &Path) -> Vec<String> {
    let shown = dir.display().to_string();
    let step = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (name, args) = call.trim_start().split_once('(')?;
        if !args.contains(&shown) || args.rsplit_once(" = ").is_none_or(|(_, value)| value.starts_with('-')) {
            return None;
        }
        // `5</dir/file>` of a file descriptor, else a path in quotes.
        let path = match name {
            "write" | "pwrite64" | "fsync" | "fdatasync" => args.split_once('<')?.1.split_once('>')?.0,
            _ => args.rsplit('"').nth(1)?,
        };
        let of = Path::new(path).strip_prefix(dir).ok()?.display().to_string();
        let what = name.trim_start_matches("pwrite64").trim_end_matches("at2").trim_end_matches("at");
        let what = if what.is_empty() { "write" } else { what.trim_start_matches("fdata").trim_start_matches('f') };
        Some(format!("{what} {}", if of.is_empty() { "DIRECTORY" } else { &of }))
    };
    trace.lines().filter_map(step).collect()
}

#[test]
fn a_file_is_durable_before_it_has_its_name_and_the_name_before_it_is_told() {
    if env::var(SKIP).is_ok() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let (dir, trace) = (root.join("dir"), root.join("trace"));
    fs::create_dir(&dir).unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", "16", "-e", CALLS, "-o"]).arg(&trace).arg(env::current_exe().unwrap());
    strace.args(["--exact", "private::traced::work", "--ignored"]).env(DIR, &dir);
    let output =
        strace.output().unwrap_or_else(|e| panic!("strace: {e}; install it (apt-get install strace), or set {SKIP}=1"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\nwhere no process may be traced, set {SKIP}=1");
    let put = ["write F.new", "sync F.new", "rename F", "sync DIRECTORY"];
    // What is not there is not removed, and needs no sync.
    let removed = ["unlink F", "sync DIRECTORY"];
    assert_eq!(steps(&fs::read_to_string(trace).unwrap(), &dir), [&put[..], &put, &removed].concat());
}
