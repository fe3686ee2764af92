//! Real commands through a real shim: how they end, what they see, what is kept and measured.

use crate::command_support;

use campanile_actions::command::{AttemptEnv, CommandEnd, CommandReport, CommandSpec, Shim};
use campanile_schema::{job::CommandLimits, time::Timestamp};
use command_support::{Done, alive, attempt, run, run_as, shell, shim, until, words};
use std::collections::BTreeMap;

fn failed_to_start(report: &CommandReport) -> (&'static str, &str) {
    match &report.end {
        CommandEnd::FailedToStart { code, message } => (code, message),
        CommandEnd::Exited { .. } | CommandEnd::Signaled { .. } | CommandEnd::Stopped => {
            panic!("started: {report:?}")
        }
    }
}

#[tokio::test]
async fn exit_codes_and_signals_are_reported() {
    for code in [0, 1, 77, 255] {
        let done = run(shell(&format!("exit {code}"))).await;
        assert_eq!(done.report.end, CommandEnd::Exited { code });
    }
    for signal in [9, 15, 11] {
        let done = run(shell(&format!("kill -{signal} $$"))).await;
        assert_eq!(done.report.end, CommandEnd::Signaled { signal });
    }
}

#[tokio::test]
async fn both_outputs_come_in_the_order_they_were_written() {
    let done = run(shell("echo one; echo two >&2; echo three")).await;
    assert_eq!(done.log, "one\ntwo\nthree\n");
    assert_eq!(done.report.last_output, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn the_standard_input_is_the_text_or_empty() {
    let mut spec = words(&["cat"]);
    spec.stdin = Some("line\né".repeat(20_000));
    spec.output_cap_kb = 1024;
    let expected = spec.stdin.clone().unwrap();
    assert_eq!(run(spec).await.log, expected);
    assert_eq!(run(words(&["cat"])).await.log, "");
}

#[tokio::test]
async fn a_command_that_never_reads_its_input_ends_all_the_same() {
    let mut spec = words(&["true"]);
    spec.stdin = Some("x".repeat(300_000));
    assert_eq!(run(spec).await.report.end, CommandEnd::Exited { code: 0 });
}

#[tokio::test]
async fn the_environment_is_clean_and_tells_the_attempt() {
    let mut spec = words(&["env"]);
    spec.env = BTreeMap::from([("GREETING".to_owned(), "hello world".to_owned())]);
    spec.cwd = Some("/usr".to_owned());
    let attempt = AttemptEnv {
        job_id: 11,
        job_name: "team/job".into(),
        run_id: 22,
        attempt: 3,
        token: 44,
        logical_time: Some(Timestamp(1_700_000_000_000)),
        source: "SCHEDULE".into(),
        params_json: r#"{"day":"2026-02-23"}"#.into(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        secrets: BTreeMap::new(),
    };
    let done = run_as(&shim(), spec, attempt).await;
    let seen: BTreeMap<&str, &str> = done.log.lines().filter_map(|l| l.split_once('=')).collect();
    for (name, value) in [
        ("GREETING", "hello world"),
        ("CAMPANILE_JOB_ID", "11"),
        ("CAMPANILE_JOB_NAME", "team/job"),
        ("CAMPANILE_RUN_ID", "22"),
        ("CAMPANILE_ATTEMPT", "3"),
        ("CAMPANILE_TOKEN", "44"),
        ("CAMPANILE_LOGICAL_TIME", "2023-11-14T22:13:20.000Z"),
        ("CAMPANILE_SOURCE", "SCHEDULE"),
        ("CAMPANILE_PARAMS", r#"{"day":"2026-02-23"}"#),
        ("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("PWD", "/usr"),
        ("SHELL", "/bin/sh"),
    ] {
        assert_eq!(seen.get(name), Some(&value), "{name}");
    }
    let known = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "GREETING", "PWD", "SHELL", "TRACEPARENT"];
    let strange: Vec<_> = seen.keys().filter(|n| !known.contains(n) && !n.starts_with("CAMPANILE_")).collect();
    assert!(strange.is_empty(), "the executor's environment leaked: {strange:?}");
}

#[tokio::test]
async fn secrets_are_passed_on_and_masked_in_the_output() {
    let secrets = BTreeMap::from([("password".to_owned(), "correct-horse".to_owned())]);
    let spec = shell("echo \"pw=$CAMPANILE_SECRET_password\"; printf 'corr'; printf 'ect-horse'; exit 3");
    let done = run_as(&shim(), spec, AttemptEnv { secrets, ..attempt() }).await;
    assert_eq!(done.log, "pw=***\n***");
    assert_eq!(done.report.last_output, "pw=***\n***");
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let plain = plain.to_str().unwrap();

    let done = run(words(&["no-such-program-here"])).await;
    let (code, message) = failed_to_start(&done.report);
    assert_eq!(code, "COMMAND_NOT_FOUND");
    assert!(message.contains("no-such-program-here"), "{message}");
    assert!(message.contains("PATH="), "{message}");

    assert_eq!(failed_to_start(&run(words(&["/no/such/program"])).await.report).0, "COMMAND_NOT_FOUND");
    assert_eq!(failed_to_start(&run(words(&[plain])).await.report).0, "COMMAND_NOT_EXECUTABLE");
    assert_eq!(failed_to_start(&run(words(&["/usr"])).await.report).0, "COMMAND_NOT_EXECUTABLE");
    assert_eq!(failed_to_start(&run(words(&[])).await.report).0, "COMMAND_EMPTY");
    assert_eq!(failed_to_start(&run(words(&[""])).await.report).0, "COMMAND_EMPTY");

    let mut spec = words(&["true"]);
    spec.cwd = Some("/no/such/directory".into());
    assert_eq!(failed_to_start(&run(spec).await.report).0, "COMMAND_CWD_MISSING");

    let mut spec = words(&["true"]);
    spec.env.insert("A=B".into(), "x".into());
    assert_eq!(failed_to_start(&run(spec).await.report).0, "COMMAND_ENV_INVALID");

    assert_eq!(failed_to_start(&run(words(&["true", &"x".repeat(200_000)])).await.report).0, "COMMAND_TOO_LARGE");
    assert_eq!(failed_to_start(&run(words(&["true", &"x".repeat(2_000_000)])).await.report).0, "COMMAND_TOO_LARGE");

    let done = run_as(&Shim::at("/no/such/shim"), words(&["true"]), attempt()).await;
    assert_eq!(failed_to_start(&done.report).0, "COMMAND_SHIM_FAILED");
    // A program that is no shim.
    let done = run_as(&Shim::at("/bin/false"), words(&["true"]), attempt()).await;
    assert_eq!(failed_to_start(&done.report).0, "COMMAND_SHIM_FAILED");
}

#[tokio::test]
async fn output_beyond_the_cap_is_counted_and_its_ends_are_kept() {
    let mut spec = shell("i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done");
    spec.output_cap_kb = 16;
    let written: usize = (0..20_000).map(|i: u32| format!("line {i}\n").len()).sum();
    let done = run(spec).await;
    assert_eq!(done.report.end, CommandEnd::Exited { code: 0 });
    assert!(done.log.starts_with("line 0\nline 1\n"));
    assert!(done.log.ends_with("line 19999\n"));
    let left_out = written - 16 * 1024;
    assert!(done.log.contains(&format!("[campanile: {left_out} bytes of output left out here]\n")));
    assert!(done.log.len() < 17 * 1024);
}

#[tokio::test]
async fn a_flood_of_output_ends_when_stopped_and_a_lost_log_does_not_stop_a_command() {
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let (log, chunks) = tokio::sync::mpsc::channel(1);
    drop(chunks);
    let spec = shell("head -c 3000000 /dev/zero; exit 4");
    let report = campanile_actions::command::run_with(&shim(), spec, attempt(), stopped, log).await;
    assert_eq!(report.end, CommandEnd::Exited { code: 4 });

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let (log, mut chunks) = tokio::sync::mpsc::channel(1);
    let stop_at_first_output = async {
        chunks.recv().await.unwrap();
        stop.send(true).unwrap();
        while chunks.recv().await.is_some() {}
    };
    let shim = shim();
    let running = campanile_actions::command::run_with(&shim, words(&["yes"]), attempt(), stopped, log);
    let (report, ()) = tokio::join!(running, stop_at_first_output);
    assert_eq!(report.end, CommandEnd::Stopped);
}

#[tokio::test]
async fn cpu_and_memory_of_the_whole_tree_are_measured() {
    let idle = run(shell("true")).await.report;
    // The system ends the loop after about one second of CPU (counted in ticks), however busy the machine is.
    let burn = "sh -c 'ulimit -t 1; while :; do :; done'";
    let busy = run(shell(&format!("{burn}; exit 0"))).await.report;
    assert_eq!(busy.end, CommandEnd::Exited { code: 0 });
    assert!((500..3_000).contains(&busy.cpu_ms), "{busy:?}");
    assert!(idle.cpu_ms < 100, "{idle:?}");
    // A process adopted by the shim when its parent ends; the substitution waits until it is gone.
    let orphan = run(shell(&format!("x=$( ({burn} & ) ); exit 0"))).await.report;
    assert_eq!(orphan.end, CommandEnd::Exited { code: 0 });
    assert!((500..3_000).contains(&orphan.cpu_ms), "{orphan:?}");
    // tail keeps a last line without end in memory: 64 MiB.
    let large = run(shell("head -c 67108864 /dev/zero | tail -n 1 | wc -c")).await;
    assert_eq!(large.log.trim(), "67108864");
    assert!(large.report.max_rss_kb.unwrap() >= 64 * 1024, "{:?}", large.report);
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended_with_it() {
    let attempt = attempt();
    let token = attempt.token;
    let done = run_as(&shim(), shell("(setsid sleep 1000 & ) ; exit 6"), attempt).await;
    assert_eq!(done.report.end, CommandEnd::Exited { code: 6 });
    assert_eq!(done.report.left_behind, 1, "{:?}", done.report);
    assert!(done.log.contains("left behind"), "{}", done.log);
    assert_eq!(alive(token), Vec::<i32>::new());
}

#[tokio::test]
async fn a_process_substitution_may_finish_what_it_reads() {
    let done = run(words(&["bash", "-c", "exec > >(sleep 0.1; cat); echo late"])).await;
    assert_eq!((done.report.end, done.log.as_str()), (CommandEnd::Exited { code: 0 }, "late\n"));
    assert_eq!(done.report.left_behind, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_commands_at_once() {
    // Each says that it has begun and waits at a gate, which opens when all of them have: one after the other they would wait for ever.
    let dir = tempfile::tempdir().unwrap();
    let (begun, gate) = (dir.path().join("begun"), dir.path().join("gate"));
    let locked = std::fs::File::create(&gate).unwrap();
    locked.lock().unwrap();
    let script = |n: usize| {
        let (begun, gate) = (begun.display(), gate.display());
        format!("echo {n} >>{begun}; flock --shared {gate} true; echo out {n}; exit {}", n % 7)
    };
    let runs: Vec<_> = (0..200).map(|n| tokio::spawn(run(shell(&script(n))))).collect();
    let all_have_begun = || std::fs::read_to_string(&begun).is_ok_and(|text| text.lines().count() == 200);
    until("all two hundred have begun", all_have_begun).await;
    locked.unlock().unwrap();
    for (n, run) in runs.into_iter().enumerate() {
        let done = run.await.unwrap();
        assert_eq!(done.report.end, CommandEnd::Exited { code: i32::try_from(n % 7).unwrap() });
        assert_eq!(done.log, format!("out {n}\n"));
    }
}

/// A small command is told with its own memory, and not with that of the program that launched it (18 MB for `test`).
#[tokio::test]
async fn memory_of_a_small_command_is_its_own() {
    let largest = |done: &Done| done.report.max_rss_kb;
    // It lives long enough to be looked at.
    for limits in [CommandLimits::default(), CommandLimits { open_files: Some(64), ..CommandLimits::default() }] {
        let done = run(CommandSpec { limits, ..words(&["sleep", "0.5"]) }).await;
        let kb = largest(&done).unwrap();
        assert!((256..16_384).contains(&kb), "sleep took {kb} KiB under {limits:?}");
    }
    // It may have ended before anybody could look: then nothing is told.
    let done = run(words(&["true"])).await;
    assert!(largest(&done).is_none_or(|kb| kb < 8_192), "{:?}", done.report);
    let large = run(shell("head -c 33554432 /dev/zero | tail -n 1 | wc -c")).await;
    assert!(largest(&large).unwrap() >= 32 * 1024, "what it started counts: {:?}", large.report);
}

/// What a shell or a service manager left open for the executor, or ignored, is not a command's.
#[tokio::test]
async fn files_and_ignored_signals_of_the_executor_are_not_inherited() {
    let dir = tempfile::tempdir().unwrap();
    let (program, held) = (dir.path().join("shim"), dir.path().join("held-open"));
    let script = format!(
        "#!/bin/sh\ntrap '' HUP INT QUIT USR1 USR2 TSTP ALRM\nexec 5>{} 9>&5 {} \"$@\"\n",
        held.display(),
        env!("CARGO_BIN_EXE_campanile")
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for limits in [CommandLimits::default(), CommandLimits { open_files: Some(64), ..CommandLimits::default() }] {
        // The fourth is the directory that ls reads.
        let spec = CommandSpec { limits, ..words(&["ls", "/proc/self/fd"]) };
        let files = run_as(&Shim::at(&program), spec, attempt()).await;
        assert_eq!(files.log.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"], "{:?}", files.report);
        let spec = CommandSpec { limits, ..words(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]) };
        let signals = run_as(&Shim::at(&program), spec, attempt()).await;
        let masks = signals.log.lines().filter_map(|l| u64::from_str_radix(l.split_whitespace().nth(1)?, 16).ok());
        // The first 31; what lies above are real-time signals, two of them the C library's own.
        assert_eq!(masks.map(|mask| mask & 0x7fff_ffff).collect::<Vec<_>>(), [0, 0], "{}", signals.log);
    }
    assert!(held.exists(), "the shim was started with it");
}
