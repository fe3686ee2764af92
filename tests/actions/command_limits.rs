//! Limits of commands, each really hit: what the system does, and what is told of it.

use crate::{command_support, program};

use campanile_actions::command::{CommandEnd, CommandSpec, Shim};
use campanile_schema::job::CommandLimits;
use command_support::{Done, attempt, run, run_as, shell, shim, words};
use program::Dev;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const NONE: CommandLimits =
    CommandLimits { cpu_sec: None, memory_mb: None, open_files: None, file_size_mb: None, processes: None };

fn limited(script: &str, limits: CommandLimits) -> CommandSpec {
    CommandSpec { limits, ..shell(script) }
}

/// Exit code and output; a signal is told as shells do.
fn code(done: &Done) -> i32 {
    match &done.report.end {
        CommandEnd::Exited { code } => *code,
        CommandEnd::Signaled { signal } => 128 + signal,
        CommandEnd::Stopped | CommandEnd::FailedToStart { .. } => panic!("{:?}", done.report),
    }
}

#[tokio::test]
async fn a_command_gets_only_so_much_cpu() {
    let done = run(limited("while :; do :; done", CommandLimits { cpu_sec: Some(1), ..NONE })).await;
    assert_eq!(done.report.end, CommandEnd::Signaled { signal: 24 }, "SIGXCPU");
    // The limit counts ticks of the clock, and the report what was used: on a busy machine they differ by more than a tenth.
    assert!(done.report.cpu_ms >= 500, "{} ms", done.report.cpu_ms);
    // One that goes on at the signal is killed.
    let deaf = "trap '' XCPU; while :; do :; done";
    let done = run(limited(deaf, CommandLimits { cpu_sec: Some(1), ..NONE })).await;
    assert_eq!(done.report.end, CommandEnd::Signaled { signal: 9 });
}

#[tokio::test]
async fn a_command_gets_only_so_much_memory() {
    let script = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let done = run(shell(script)).await;
    assert_eq!((code(&done), done.log.as_str()), (0, "40000000\n"), "without a limit");
    let done = run(limited(script, CommandLimits { memory_mb: Some(32), ..NONE })).await;
    assert_ne!(code(&done), 0, "{}", done.log);
    assert!(!done.log.contains("40000000"), "{}", done.log);
}

#[tokio::test]
async fn a_command_opens_only_so_many_files() {
    let script = "cat 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null 8</dev/null && echo opened";
    assert_eq!(run(limited(script, CommandLimits { open_files: Some(64), ..NONE })).await.log, "opened\n");
    let done = run(limited(script, CommandLimits { open_files: Some(8), ..NONE })).await;
    assert_ne!(code(&done), 0, "{}", done.log);
    assert!(done.log.contains("Too many open files"), "{}", done.log);
    assert!(!done.log.contains("opened"), "{}", done.log);
    // The shim has files of its own: what the command leaves behind still ends with it.
    let done = run(limited("sleep 600 & echo left", CommandLimits { open_files: Some(8), ..NONE })).await;
    assert_eq!((code(&done), done.report.left_behind), (0, 1), "{}", done.log);
}

#[tokio::test]
async fn a_command_writes_only_so_much_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    let mut spec = words(&["dd", "if=/dev/zero", "bs=100000", "count=30", &format!("of={}", file.display())]);
    spec.limits = CommandLimits { file_size_mb: Some(1), ..NONE };
    assert_eq!(run(spec).await.report.end, CommandEnd::Signaled { signal: 25 }, "SIGXFSZ");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
}

/// Root is not bound by it, so that root's tests let another user be the shim.
#[tokio::test]
async fn a_user_has_only_so_many_processes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let shim = if rustix::process::geteuid().is_root() {
        let program = dir.path().join("campanile");
        std::fs::copy(env!("CARGO_BIN_EXE_campanile"), &program).unwrap();
        let script = dir.path().join("shim");
        let text = "#!/bin/sh\nexec setpriv --reuid=61234 --regid=61234 --clear-groups \"${0%shim}campanile\" \"$@\"\n";
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        Shim::at(script)
    } else {
        shim()
    };
    let script = "(:; :); echo forked";
    let few = CommandLimits { processes: Some(1), ..NONE };
    let done = run_as(&shim, limited(script, few), attempt()).await;
    assert_ne!(code(&done), 0, "{}", done.log);
    assert!(done.log.to_lowercase().contains("fork"), "{}", done.log);
    assert!(!done.log.contains("forked"), "{}", done.log);
    let done = run_as(&shim, limited(script, CommandLimits { processes: Some(10_000), ..NONE }), attempt()).await;
    assert_eq!((code(&done), done.log.as_str()), (0, "forked\n"));
}

#[tokio::test]
async fn a_command_can_be_nice_and_is_otherwise_as_without_limits() {
    let own = rustix::process::getpriority_process(None).unwrap();
    let done = run(CommandSpec { nice: 7, ..words(&["nice"]) }).await;
    assert_eq!(done.log, format!("{}\n", (own + 7).min(19)));
    let spec = |limits| CommandSpec {
        stdin: Some("in".to_owned()),
        cwd: Some("/usr".to_owned()),
        limits,
        ..shell("echo $0 $PWD $CAMPANILE_RUN_ID; cat; echo; echo err >&2; ls /proc/self/fd | wc -l; exit 3")
    };
    let (free, bound) = (run(spec(NONE)).await, run(spec(CommandLimits { cpu_sec: Some(60), ..NONE })).await);
    assert_eq!((code(&bound), &bound.log), (3, &free.log));
    assert!(free.log.starts_with("/bin/sh /usr 2\nin\nerr\n"), "{}", free.log);
}

#[tokio::test]
async fn what_cannot_be_started_is_told_as_without_limits() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/usr/bin/nothing\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (word, wanted) in [("no-such-program", "COMMAND_NOT_FOUND"), (script.to_str().unwrap(), "COMMAND_NOT_FOUND")] {
        let spec = CommandSpec { limits: CommandLimits { cpu_sec: Some(9), ..NONE }, ..words(&[word]) };
        match run(spec).await.report.end {
            CommandEnd::FailedToStart { code, message } => assert_eq!(code, wanted, "{message}"),
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[test]
fn the_run_names_the_limit_that_ended_it() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    let fails = |name: &str, flags: &[&str]| {
        let args = ["job", "create", "--name", name, "--manual", "--max-attempts", "1"];
        dev.run(&[&args[..], flags].concat()).ok();
        let run = dev.run(&["job", "trigger", name, "--wait", "-o", "json"]);
        assert_eq!(run.code, 8, "{run:?}");
        let run: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        (run["attempts"][0]["errorCode"].clone(), run["lastError"].as_str().unwrap().to_owned())
    };
    let (code, why) = fails("busy", &["--limit", "cpuSec=1", "--sh", "while :; do :; done"]);
    assert_eq!((code, why.as_str()), (json!("CPU_LIMIT"), "a process used up limits.cpuSec (1 s of CPU; SIGXCPU)"));
    // A shell tells of its program's signal by its exit code.
    let write = format!("echo before; head -c 3000000 /dev/zero >{}; exit $?", dir.path().join("out").display());
    let (code, why) = fails("large", &["--limit", "fileSizeMb=1", "--nice", "3", "--sh", &write]);
    assert_eq!(code, "FILE_SIZE_LIMIT");
    assert!(why.starts_with("a file grew over limits.fileSizeMb (1 MiB; SIGXFSZ): before"), "{why}");
    let action = dev.run(&["job", "get", "large", "-o", "json"]).json()["action"].clone();
    assert_eq!((&action["limits"], &action["nice"]), (&json!({"fileSizeMb": 1}), &json!(3)));
    let slip = dev.run(&["job", "create", "--name", "x", "--manual", "--sh", "x", "--limit", "memory=9"]).refused(2);
    assert!(slip.contains("did you mean `memoryMb`?"), "{slip}");
    let small = dev.run(&["job", "create", "--name", "x", "--manual", "--sh", "x", "--limit", "memoryMb=9"]).refused(2);
    assert!(small.contains("action.limits.memoryMb must be 16 to"), "{small}");
}
