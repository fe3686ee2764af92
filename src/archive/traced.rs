//! What the crash disk of `tests/powercut` does not hold: the files of the read model, which fjall writes itself, and the day archives.
//! Here the system calls of a real session are read (strace): every file of the read model, and every directory in which it made
//! one, is synced before `FLUSHED` names how far they reach, and a day's file is synced before it gets its name.
//!
//! fjall's own journal is left out: after a power cut nothing is taken from it that the node's journal does not have. So is a
//! thread of fjall that moves tables to another level while the mark is written: it makes no table, only another list of the same
//! ones (`vN`, `current`), and until that is durable the list before it is there.
#![allow(clippy::unwrap_used)]

use crate::days::{self, ArchiveDirectory, DayKeeper};
use campanile_ports::{LocalViews, Row, Views};
use campanile_schema::record::RunState;
use campanile_store::{
    embedded::{EmbeddedOptions, EmbeddedStore},
    samples::{at, batch, ledger, run, wait},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the traced process works; the test that starts it sets this.
const DIR: &str = "CAMPANILE_TRACED_DIR";
/// Not for machines on which a process may not be traced.
const SKIP: &str = "CAMPANILE_SKIP_TRACE";
const CALLS: &str = "trace=open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,link,linkat,\
                     mkdir,mkdirat,unlink,unlinkat,ftruncate";
/// Runs of a flush, and flushes: too few tables for one to be merged with others meanwhile.
const RUNS: u64 = 500;
const FLUSHES: u64 = 3;
/// Days that are over, 1970.
const DAY_MS: i64 = 86_400_000;

/// The work that is traced; started by the test below.
#[test]
#[ignore = "started by its tracer"]
fn work() {
    let Ok(dir) = env::var(DIR) else { return };
    let dir = Path::new(&dir);
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(dir.join("data"))).unwrap();
    for n in 0..FLUSHES {
        let rows = (n * RUNS + 1..=(n + 1) * RUNS).flat_map(|id| {
            let ended = i64::try_from(n).unwrap() * DAY_MS + i64::try_from(id).unwrap();
            [Row::Run(run(4, id, RunState::Success, ended).into()), Row::Ledger(ledger(4, ended - 1, ended))]
        });
        wait(store.apply(batch(at(1, n + 1), &[(0, n + 1)], rows.collect()))).unwrap();
        assert_eq!(wait(store.flush()).unwrap(), at(1, n + 1));
    }
    let time = days::closed(None, None, 30 * DAY_MS);
    let directory = ArchiveDirectory::at(&dir.join("days"));
    let mut keeper = DayKeeper::new(directory, store.format().clone(), 30 * DAY_MS).unwrap();
    store.ended(time.start, time.end).and_then(|runs| days::feed(runs, &mut keeper)).unwrap();
    assert!(keeper.end().iter().any(|kept| kept.file.is_some()));
}

/// A file or directory, as the calls so far have left it.
#[derive(Clone, Debug, Default)]
struct Durable {
    changes: u64,
    /// Changes that no sync covers, and the threads that made them.
    pending: Vec<(u64, String)>,
}

impl Durable {
    fn change(&mut self, thread: &str) {
        self.changes += 1;
        self.pending.push((self.changes, thread.to_owned()));
    }

    fn is_durable(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Follows the calls of a trace, and says what was named before it was durable.
struct Follower {
    root: PathBuf,
    files: BTreeMap<PathBuf, Durable>,
    dirs: BTreeMap<PathBuf, Durable>,
    /// Of each thread the call that is not done, with what it would make durable: the path and its changes when it began.
    open: HashMap<String, (String, Option<(PathBuf, u64)>)>,
    /// Threads that have made a table since the last mark.
    makers: HashSet<String>,
    marks: u64,
    days: u64,
    wrong: Vec<String>,
}

impl Follower {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
            dirs: BTreeMap::new(),
            open: HashMap::new(),
            makers: HashSet::new(),
            marks: 0,
            days: 0,
            wrong: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let Some((thread, rest)) = line.split_once(' ') else { return };
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some((begun, sync)) = self.open.remove(thread) else { return };
            let tail = resumed.split_once("resumed>").map_or("", |(_, tail)| tail);
            self.done(thread, &format!("{begun}{tail}"), sync);
        } else if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            // What a call does is taken for begun here: a write is a change from here on, a sync covers what was before.
            let sync = self.begun(thread, begun);
            self.open.insert(thread.to_owned(), (begun.to_owned(), sync));
        } else {
            let sync = self.begun(thread, rest);
            self.done(thread, rest, sync);
        }
    }

    fn begun(&mut self, thread: &str, call: &str) -> Option<(PathBuf, u64)> {
        let (name, args) = call.split_once('(')?;
        match name {
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate" => {
                let path = self.of_fd(args)?;
                self.files.entry(path).or_default().change(thread);
                None
            }
            "fsync" | "fdatasync" => {
                let path = self.of_fd(args)?;
                let known = self.files.get(&path).or_else(|| self.dirs.get(&path)).map_or(0, |known| known.changes);
                Some((path, known))
            }
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let paths = self.quoted(args);
                if let [from, to] = paths.as_slice() {
                    self.named(from, to);
                }
                None
            }
            _ => None,
        }
    }

    fn done(&mut self, thread: &str, call: &str, sync: Option<(PathBuf, u64)>) {
        let Some((name, args)) = call.split_once('(') else { return };
        if call.rsplit_once(" = ").is_none_or(|(_, value)| value.starts_with('-')) {
            return;
        }
        if let Some((path, changes)) = sync {
            let held = if self.dirs.contains_key(&path) { &mut self.dirs } else { &mut self.files };
            held.entry(path).or_default().pending.retain(|(change, _)| *change > changes);
            return;
        }
        let paths = self.quoted(args);
        match (name, paths.as_slice()) {
            ("open" | "openat" | "creat", [path]) if name == "creat" || args.contains("O_CREAT") => {
                if path.parent().is_some_and(|dir| dir.ends_with("tables")) {
                    self.makers.insert(thread.to_owned());
                }
                if !self.files.contains_key(path) {
                    self.files.insert(path.clone(), Durable::default());
                    self.entry_of(thread, path);
                }
            }
            ("mkdir" | "mkdirat", [path]) => {
                self.dirs.entry(path.clone()).or_default();
                self.entry_of(thread, path);
            }
            ("rename" | "renameat" | "renameat2" | "link" | "linkat", [from, to]) => {
                let file = self.files.get(from).cloned().unwrap_or_default();
                if !name.starts_with("link") {
                    self.files.remove(from);
                }
                self.files.insert(to.clone(), file);
                self.entry_of(thread, to);
            }
            ("unlink" | "unlinkat", [path]) => {
                self.files.remove(path);
            }
            _ => {}
        }
    }

    /// A name was made in the directory of this path.
    fn entry_of(&mut self, thread: &str, path: &Path) {
        if let Some(dir) = path.parent() {
            self.dirs.entry(dir.to_owned()).or_default().change(thread);
        }
    }

    /// It is not durable, and must be: somebody has changed it who does more than write down anew which tables there are.
    fn is_late(&self, path: &Path, known: &Durable) -> bool {
        let is_list = path.ancestors().nth(1).is_some_and(|above| above.ends_with("keyspaces"))
            || path.ancestors().nth(2).is_some_and(|above| above.ends_with("keyspaces") && !path.ends_with("tables"));
        let only_lists = is_list && known.pending.iter().all(|(_, thread)| !self.makers.contains(thread));
        !known.is_durable() && !only_lists
    }

    /// A file is about to get a name that others go by.
    fn named(&mut self, from: &Path, to: &Path) {
        if to == self.root.join("data/FLUSHED") {
            self.marks += 1;
            let views = self.root.join("data/views");
            let is_table = |path: &Path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                path.starts_with(&views) && !name.ends_with(".jnl") && name != "lock"
            };
            let files = self.files.iter().filter(|(path, _)| is_table(path) || *path == from);
            let dirs = self.dirs.iter().filter(|(path, _)| path.starts_with(&views));
            let late: Vec<String> = files
                .chain(dirs)
                .filter(|(path, known)| self.is_late(path, known))
                .map(|(path, known)| format!("mark {}: {} is not synced: {known:?}", self.marks, path.display()))
                .collect();
            self.wrong.extend(late);
            self.makers.clear();
        }
        if to.starts_with(self.root.join("days")) {
            self.days += 1;
            let known = self.files.get(from).cloned().unwrap_or_default();
            if known.changes == 0 || !known.is_durable() {
                self.wrong.push(format!("{} is named and not synced: {known:?}", to.display()));
            }
        }
    }

    /// Where the first argument is a file of the work, as strace shows it with -y: `5</path>`.
    fn of_fd(&self, args: &str) -> Option<PathBuf> {
        let path = args.split_once('<')?.1.split_once('>')?.0;
        Some(PathBuf::from(path)).filter(|path| path.starts_with(&self.root))
    }

    /// Paths among the arguments that are of the work.
    fn quoted(&self, args: &str) -> Vec<PathBuf> {
        let quoted = args.split('"').skip(1).step_by(2).map(PathBuf::from);
        quoted.filter(|path| path.starts_with(&self.root)).collect()
    }
}

fn follow(trace: &str, root: &Path) -> Follower {
    let mut follower = Follower::new(root);
    trace.lines().for_each(|line| follower.line(line));
    // The last day's directory must know its files, too.
    let mut wrong = Vec::new();
    for (dir, known) in follower.dirs.iter().filter(|(dir, _)| **dir == root.join("days")) {
        if !known.is_durable() {
            wrong.push(format!("{}: names in it are not synced: {known:?}", dir.display()));
        }
    }
    follower.wrong.extend(wrong);
    follower
}

#[test]
fn every_table_is_synced_before_the_mark_names_it_and_every_day_before_it_is_named() {
    if env::var(SKIP).is_ok() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let trace = root.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", "16", "-e", CALLS, "-o"]).arg(&trace).arg(env::current_exe().unwrap());
    strace.args(["--exact", "traced::work", "--ignored"]).env(DIR, &root);
    let output =
        strace.output().unwrap_or_else(|e| panic!("strace: {e}; install it (apt-get install strace), or set {SKIP}=1"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\nwhere no process may be traced, set {SKIP}=1");
    let follower = follow(&fs::read_to_string(trace).unwrap(), &root);
    assert_eq!(follower.wrong, Vec::<String>::new());
    // The first when the session opens.
    assert_eq!(follower.marks, 1 + FLUSHES, "the mark was not seen: is its name another one?");
    assert_eq!(follower.days, FLUSHES, "one file for each day");
    let tables = follower.files.keys().filter(|path| path.starts_with(root.join("data/views"))).count();
    assert!(tables as u64 > FLUSHES, "files of the read model were not seen");
}

/// A trace by hand, one call a line.
fn wrong(lines: &[&str]) -> Vec<String> {
    let text: Vec<String> = lines.iter().map(|line| format!("7 {line}")).collect();
    follow(&text.join("\n"), Path::new("/r")).wrong
}

const MADE: [&str; 3] = [
    r#"mkdir("/r/data/views", 0777) = 0"#,
    r#"openat(AT_FDCWD, "/r/data/views/1", O_WRONLY|O_CREAT, 0666) = 5</r/data/views/1>"#,
    r#"write(5</r/data/views/1>, "x", 1) = 1"#,
];
const MARK: [&str; 4] = [
    r#"openat(AT_FDCWD, "/r/data/FLUSHED.tmp", O_WRONLY|O_CREAT, 0666) = 6</r/data/FLUSHED.tmp>"#,
    r#"pwrite64(6</r/data/FLUSHED.tmp>, "m", 1, 0) = 1"#,
    r#"fdatasync(6</r/data/FLUSHED.tmp>) = 0"#,
    r#"rename("/r/data/FLUSHED.tmp", "/r/data/FLUSHED") = 0"#,
];
const FILE: &str = r#"fsync(5</r/data/views/1>) = 0"#;
const DIRECTORY: &str = r#"fsync(8</r/data/views>) = 0"#;

#[test]
fn a_table_that_is_not_synced_is_found() {
    let trace = |syncs: &[&'static str]| [&MADE, syncs, &MARK[..]].concat();
    assert_eq!(wrong(&trace(&[FILE, DIRECTORY])), Vec::<String>::new());
    assert_eq!(wrong(&trace(&[FILE])).len(), 1, "its name may be lost");
    assert_eq!(wrong(&trace(&[DIRECTORY])).len(), 1);
    assert_eq!(wrong(&trace(&[r#"fsync(5</r/data/views/1>) = -1 EIO (Input/output error)"#, DIRECTORY])).len(), 1);
    // Written again after the sync.
    assert_eq!(wrong(&trace(&[FILE, DIRECTORY, MADE[2]])).len(), 1);
    let mut mark = trace(&[FILE, DIRECTORY]);
    mark.retain(|line| !line.starts_with("fdatasync(6"));
    assert_eq!(wrong(&mark).len(), 1, "the mark itself");
}

#[test]
fn a_sync_covers_what_was_written_before_it_began() {
    let begun = "8 fsync(5</r/data/views/1> <unfinished ...>";
    let other = r#"7 write(5</r/data/views/1>, "y", 1) = 1"#;
    let resumed = "8 <... fsync resumed>) = 0";
    let lines = |middle: &[&str]| {
        let of_7 = |line: &&str| format!("7 {line}");
        let mut all: Vec<String> = MADE.iter().map(of_7).collect();
        all.extend(middle.iter().map(|line| (*line).to_owned()));
        all.push(format!("7 {DIRECTORY}"));
        all.extend(MARK.iter().map(of_7));
        follow(&all.join("\n"), Path::new("/r")).wrong.len()
    };
    assert_eq!(lines(&[begun, resumed]), 0);
    assert_eq!(lines(&[begun, other, resumed]), 1);
    assert_eq!(lines(&[begun]), 1, "it has not ended when the mark is named");
}

#[test]
fn a_list_of_tables_may_lag_only_when_no_table_was_made() {
    let list =
        r#"openat(AT_FDCWD, "/r/data/views/keyspaces/2/v2", O_WRONLY|O_CREAT, 0666) = 9</r/data/views/keyspaces/2/v2>"#;
    let written = r#"write(9</r/data/views/keyspaces/2/v2>, "x", 1) = 1"#;
    let table = r#"openat(AT_FDCWD, "/r/data/views/keyspaces/2/tables/0", O_RDWR|O_CREAT, 0666) = 8</r/data/views/keyspaces/2/tables/0>"#;
    let tables = r#"fsync(8</r/data/views/keyspaces/2/tables>) = 0"#;
    let trace = |made: &[&'static str]| [made, &[list, written], &MARK[..]].concat();
    assert_eq!(wrong(&trace(&[])), Vec::<String>::new(), "the list before it is there");
    assert_eq!(wrong(&trace(&[table, tables])).len(), 2, "the new table stands in no list that is durable");
}

#[test]
fn a_day_that_is_named_before_it_is_synced_is_found() {
    let open = r#"openat(AT_FDCWD, "/r/days/d.partial", O_WRONLY|O_CREAT, 0600) = 5</r/days/d.partial>"#;
    let write = r#"write(5</r/days/d.partial>, "x", 1) = 1"#;
    let sync = r#"fsync(5</r/days/d.partial>) = 0"#;
    let link = r#"linkat(AT_FDCWD, "/r/days/d.partial", AT_FDCWD, "/r/days/d", 0) = 0"#;
    let directory = r#"fsync(6</r/days>) = 0"#;
    assert_eq!(wrong(&[open, write, sync, link, directory]), Vec::<String>::new());
    assert_eq!(wrong(&[open, write, link, sync, directory]).len(), 1);
}
