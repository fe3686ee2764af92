//! `job create --bulk`: a file of any length, a word about each line that was refused.
use crate::program::{Dev, run_with_input};
use serde_json::{Value, json};

fn manual(name: &str) -> String {
    json!({"name": name, "trigger": {"type": "MANUAL"}}).to_string() + "\n"
}

#[test]
fn a_file_of_jobs_is_created_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
    let file = dir.path().join("jobs.ndjson");
    // More than one call takes, and not all good.
    let mut lines: Vec<String> = (1..=1_200).map(|n| manual(&format!("job-{n}"))).collect();
    lines[1_099] = "{\"nmae\":\"x\"}\n".to_owned();
    lines[9] = "\n".to_owned();
    lines[10] = manual("job-1");
    std::fs::write(&file, lines.concat()).unwrap();
    let bulk = |more: &[&str]| dev.run(&[&["job", "create", "--bulk", file.to_str().unwrap()], more].concat());

    let done = bulk(&[]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (5, "1197 jobs created\n"),
        "the first refusal's exit code: {}",
        done.err
    );
    assert!(done.err.contains("line 11: 409_DUPLICATE_NAME: "), "{}", done.err);
    assert!(done.err.contains("line 1100: 400_INVALID_ARGUMENT: unknown field `nmae`"), "{}", done.err);
    assert!(done.err.contains("2 lines were refused; the first is line 11: "), "{}", done.err);
    assert_eq!(dev.run(&["job", "get", "job-1200", "-o", "json"]).json()["name"], "job-1200");

    // With a key, again and again; from stdin, and for programs.
    std::fs::write(&file, manual("once-1") + &manual("once-2")).unwrap();
    let first = bulk(&["--idempotency-key", "k", "-o", "json"]).ok();
    assert_eq!(bulk(&["--idempotency-key", "k", "-o", "json"]).ok(), first);
    let answers: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[1]["line"], answers[1]["ok"]["jobId"].is_u64()), (&json!(2), true));
    let args = ["--server", &dev.server, "job", "create", "--bulk", "-"];
    assert_eq!(run_with_input(&args, &manual("piped")).ok(), "1 jobs created\n");
    assert!(bulk(&["-o", "yaml"]).refused(2).contains("-o table or -o json"));
    assert_eq!(dev.stop(), 0);
}
