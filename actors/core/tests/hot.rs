//! Bytes of a passive job: `schema/golden/hot.jsonl`, which never change (`UPDATE_GOLDEN=1` adds new ones), and small.

use crate::support::{
    make::{cron, plain},
    ops::Op,
    sim::{Sim, assert_same},
};
use campanile_core::job::{Command, HotState, Job};
use campanile_schema::{
    frame,
    ids::ExecutorSession,
    record::{AttemptState, RunState},
    stored::StoredJob,
};

const NOW: i64 = 1_782_000_000_000;

fn typical() -> StoredJob {
    plain(cron("30 2 * * 1-5", "Europe/Berlin"))
}

/// As they are at rest, and with all that a job can hold.
fn jobs() -> Vec<(&'static str, Job)> {
    let mut sim = Sim::create(typical(), NOW, true);
    let mut jobs = vec![("created", sim.job.clone())];
    sim.pass(NOW + 90_000_000);
    let run = sim.job.hot.runs[0].id();
    jobs.push(("queued", sim.job.clone()));
    let (executor, session) = ("executor-1".to_owned(), ExecutorSession(1 << 52));
    sim.command(&Command::Start { run, executor: executor.into(), session, credential: None, credit_stamp_ms: 0 })
        .unwrap();
    jobs.push(("running", sim.job.clone()));
    let token = sim.job.run(run).unwrap().token().unwrap();
    sim.finish(run, token, AttemptState::Failed);
    assert_eq!(sim.job.hot.runs[0].state(), RunState::RetryWait);
    sim.op(&Op::Quarantine);
    let mut full = sim.job.clone();
    full.hot.catch_up_ms = Some(NOW);
    full.hot.runs[0].stopping = Some(2);
    jobs.push(("every field", full));
    sim.op(&Op::Cancel { pick: 0 });
    sim.op(&Op::Resume);
    jobs.push(("idle after a run", sim.job.clone()));
    jobs
}

#[test]
fn hot_bytes_change_only_with_a_diff() {
    let line = |(name, job): &(&str, Job)| {
        let hex: String = job.encode_hot().iter().map(|b| format!("{b:02x}")).collect();
        let fields = serde_json::to_value(&job.hot).unwrap();
        serde_json::json!({"form": "hot", "name": name, "fields": fields, "hex": hex}).to_string()
    };
    let text = jobs().iter().map(line).collect::<Vec<_>>().join("\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/golden/hot.jsonl");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let before = std::fs::read_to_string(path).unwrap_or_default();
        assert!(before.lines().all(|line| text.lines().any(|now| now == line)), "no line may change");
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        text,
        std::fs::read_to_string(path).unwrap_or_default(),
        "UPDATE_GOLDEN=1 adds the lines of new samples"
    );
}

#[test]
fn a_passive_job_is_small_and_comes_back() {
    for (name, job) in jobs() {
        let bytes = job.encode_hot();
        println!("{name}: {} bytes", bytes.len());
        let limit = if job.is_active() { 400 } else { 200 };
        assert!(bytes.len() <= limit, "{name}: {} bytes", bytes.len());
        let again = Job::decode(job.id, &frame::encode(&*job.def), &bytes).unwrap();
        assert_same(&again, &job, name);
        for cut in 0..bytes.len() {
            assert!(frame::decode::<HotState>("hot state", &bytes[..cut]).is_err());
        }
    }
}
