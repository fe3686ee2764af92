//! What schedules and policies mean on a whole node, in real time: what ran, and what the ledger says of every instant.

use crate::support;

use campanile_client::{Client, ClientError, Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::{Outcome, SkipReason},
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, JobStatus, JobView, Trigger},
    payload::Payload,
    record::RunState,
    time::Timestamp,
    view::RunView,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use support::{
    TestNode, eventually,
    ledger::{Line, fired, ledger, runs},
    now_ms, wait_until,
};

/// Distance of the instants of every fixed rate here, milliseconds: the shortest there is.
const EVERY_MS: i64 = 1_000;

/// A body that ran: when, by the wall clock in milliseconds, and whether it was told to stop.
#[derive(Clone, Debug)]
struct Ran {
    run: RunId,
    began_ms: i64,
    ended_ms: i64,
    stopped: bool,
}

/// An executor whose bodies take `params.ms` milliseconds, or end when they are told to.
struct Bodies {
    ran: Arc<Mutex<Vec<Ran>>>,
    executor: ExecutorHandle,
}

#[derive(serde::Deserialize)]
struct Work {
    ms: u64,
}

impl Bodies {
    fn start(node: &TestNode) -> Self {
        let ran: Arc<Mutex<Vec<Ran>>> = Arc::default();
        let seen = ran.clone();
        let executor = Executor::builder(node.rpc(), support::TOKEN)
            .pool("default")
            .slots(32)
            .any_handler(move |ctx: Context, params: Payload| {
                let (seen, work) = (seen.clone(), serde_json::from_str::<Work>(&params.0).unwrap());
                async move {
                    let began_ms = now_ms();
                    let stopped = tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(work.ms)) => false,
                        _ = ctx.canceled() => true,
                    };
                    seen.lock().unwrap().push(Ran { run: ctx.run_id(), began_ms, ended_ms: now_ms(), stopped });
                    if stopped { Err(JobError::new("STOPPED", "told to stop")) } else { Ok(None) }
                }
            })
            .build()
            .unwrap()
            .start();
        Self { ran, executor }
    }

    /// The bodies of these runs, the first begun first.
    fn of(&self, runs: &[RunView]) -> Vec<Ran> {
        let mut ran: Vec<Ran> =
            self.ran.lock().unwrap().iter().filter(|r| runs.iter().any(|run| run.run_id == r.run)).cloned().collect();
        ran.sort_by_key(|r| r.began_ms);
        ran
    }

    async fn end(self, node: TestNode) {
        self.executor.drain(Duration::from_secs(5)).await;
        node.stop().await;
    }
}

/// A job whose bodies take so long, of the default tenant.
fn spec(name: &str, trigger: serde_json::Value, body_ms: u64) -> JobSpec {
    let mut spec = JobSpec::new("default", name, serde_json::from_value::<Trigger>(trigger).unwrap());
    spec.params = Payload(json!({ "ms": body_ms }).to_string());
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec
}

fn rate() -> serde_json::Value {
    json!({"type": "FIXED_RATE", "everySec": 1})
}

async fn create(client: &Client, spec: JobSpec) -> JobId {
    client.job_create(spec).await.unwrap().job_id
}

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> ErrorCode {
    answer.unwrap_err().api().unwrap().known()
}

/// The ledger of a fixed rate, once it says enough.
async fn ledger_with(client: &Client, job: JobId, what: &str, enough: impl Fn(&[Line]) -> bool) -> Vec<Line> {
    eventually(what, || async {
        let lines = ledger(client, job, Some(EVERY_MS)).await;
        enough(&lines).then_some(lines)
    })
    .await
}

/// No more fires; every run is final. What there is then.
async fn settled(client: &Client, job: JobId) -> (Vec<Line>, Vec<RunView>) {
    // Not by a pause, which holds the runs that wait.
    let view = client.job_get(job).await.unwrap();
    let mut spec = view.spec;
    spec.trigger = Trigger::Manual {};
    client.job_replace(job, view.version, spec).await.unwrap();
    let every_run = eventually("the runs end", || async {
        let runs = runs(client, job).await;
        runs.iter().all(|run| run.state.is_final()).then_some(runs)
    })
    .await;
    // The history shows an end before or after the ledger shows the last instant.
    let lines = eventually("a line for each run", || async {
        let lines = ledger(client, job, Some(EVERY_MS)).await;
        (fired(&lines).len() == every_run.len()).then_some(lines)
    })
    .await;
    for line in lines.iter().filter(|line| line.fired()) {
        let run = every_run.iter().find(|run| Some(run.run_id) == line.run).unwrap();
        assert_eq!(run.logical_time.unwrap().ms(), line.at_ms);
    }
    (lines, every_run)
}

fn one_after_the_other(ran: &[Ran]) -> bool {
    ran.windows(2).all(|pair| pair[0].ended_ms <= pair[1].began_ms)
}

fn succeeded(runs: &[RunView]) -> bool {
    runs.iter().all(|run| run.state == RunState::Success)
}

/// Made, and final, milliseconds.
fn life(run: &RunView) -> (i64, i64) {
    (run.created_at.ms(), run.ended_at.unwrap().ms())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrency_policies_when_a_body_outlasts_its_interval() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let mut jobs = Vec::new();
    for policy in ConcurrencyPolicy::ALL {
        let mut spec = spec(&format!("job-{}", policy.as_str().to_lowercase()), rate(), 2_400);
        spec.concurrency_policy = *policy;
        jobs.push((*policy, create(&client, spec).await));
    }
    for (policy, job) in &jobs {
        ledger_with(&client, *job, "eight instants", |lines| lines.len() >= 8).await;
        assert_eq!(client.job_get(*job).await.unwrap().spec.concurrency_policy, *policy);
    }
    for (policy, job) in jobs {
        let (lines, runs) = settled(&client, job).await;
        let ran = bodies.of(&runs);
        // What the edit itself closed is not a matter of the policy.
        let skipped: Vec<Line> =
            lines.iter().filter(|l| !l.fired() && !l.skipped(SkipReason::Edited)).copied().collect();
        let told = || format!("{policy}: {lines:?}\n{runs:?}\n{ran:?}");
        assert!(runs.len() >= 2, "{}", told());
        match policy {
            ConcurrencyPolicy::Forbid => {
                assert!(succeeded(&runs) && one_after_the_other(&ran), "{}", told());
                assert!(runs.windows(2).all(|pair| life(&pair[0]).1 <= life(&pair[1]).0), "{}", told());
                assert!(skipped.len() >= 3, "{}", told());
                for line in skipped {
                    let active =
                        runs.iter().any(|run| life(run).0 - EVERY_MS <= line.at_ms && line.at_ms <= life(run).1);
                    assert!(line.skipped(SkipReason::RunActive) && active, "{line:?} of {}", told());
                }
            }
            ConcurrencyPolicy::QueueOne => {
                assert!(succeeded(&runs) && one_after_the_other(&ran), "{}", told());
                let order: Vec<RunId> = ran.iter().map(|r| r.run).collect();
                assert_eq!(order, runs.iter().map(|run| run.run_id).collect::<Vec<_>>(), "{}", told());
                for (n, run) in runs.iter().enumerate() {
                    let waiting = runs[..n].iter().filter(|w| w.started_at.unwrap() > run.created_at).count();
                    assert_eq!(waiting, 0, "two wait at once: {}", told());
                }
                let held = runs.windows(2).filter(|pair| life(&pair[1]).0 < life(&pair[0]).1).count();
                assert!(held >= 1 && !skipped.is_empty(), "{}", told());
                assert!(skipped.iter().all(|line| line.skipped(SkipReason::OneQueued)), "{}", told());
            }
            ConcurrencyPolicy::Replace => {
                assert!(skipped.is_empty() && one_after_the_other(&ran), "{}", told());
                let (last, replaced) = runs.split_last().unwrap();
                assert_eq!(last.state, RunState::Success, "{}", told());
                assert!(replaced.iter().all(|run| run.state == RunState::Canceled), "{}", told());
                assert!(ran.iter().all(|r| r.stopped != (r.run == last.run_id)), "{}", told());
            }
            ConcurrencyPolicy::Allow => {
                assert!(succeeded(&runs), "{}", told());
                assert_eq!((skipped.len(), ran.len()), (0, runs.len()), "{}", told());
                assert!(!one_after_the_other(&ran), "{}", told());
            }
        }
    }
    bodies.end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_delay_counts_from_the_end_of_the_run() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let job = create(&client, spec("after", json!({"type": "FIXED_DELAY", "everySec": 1}), 700)).await;
    let ended = |at_least: usize| {
        let client = &client;
        eventually("runs", move || async move {
            let mut runs = runs(client, job).await;
            runs.retain(|run| run.state.is_final());
            (runs.len() >= at_least).then_some(runs)
        })
    };
    let runs = ended(3).await;
    assert!(succeeded(&runs));
    for pair in runs.windows(2) {
        assert_eq!(pair[1].logical_time.unwrap().ms(), life(&pair[0]).1 + 1_000, "{pair:?}");
        assert!(pair[1].created_at >= pair[1].logical_time.unwrap(), "early: {pair:?}");
    }
    // Its one instant falls into a pause: skipped by name, and the delay begins again.
    client.job_pause(job, None).await.unwrap();
    let before = eventually("nothing runs", || async {
        let runs = support::ledger::runs(&client, job).await;
        runs.iter().all(|run| run.state.is_final()).then_some(runs.len())
    })
    .await;
    wait_until(now_ms() + 1_500).await;
    let resumed_ms = now_ms();
    client.job_resume(job, None).await.unwrap();
    let runs = ended(before + 1).await;
    assert!(runs[before].logical_time.unwrap().ms() >= resumed_ms + 1_000, "{runs:?}");
    let lines = ledger(&client, job, None).await;
    let paused: Vec<&Line> = lines.iter().filter(|line| line.skipped(SkipReason::Paused)).collect();
    assert_eq!(paused.len(), 1, "{lines:?}");
    assert_eq!(paused[0].at_ms, life(&runs[before - 1]).1 + 1_000, "{lines:?}");
    assert!(lines.iter().all(|line| line.fired() || line == paused[0]), "{lines:?}");
    bodies.end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_is_once() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let at = |ms: i64| json!({"type": "ONCE", "at": Timestamp(ms)});
    let now = now_ms();
    let future = create(&client, spec("future", at(now + 1_000), 0)).await;
    let past = create(&client, spec("past", at(now - 20_000), 0)).await;
    // Past by more than the threshold of 60 s.
    let refused = client.job_create(spec("long-ago", at(now - 90_000), 0)).await.unwrap_err();
    assert_eq!(refused.api().unwrap().known(), ErrorCode::ScheduleNeverFires);
    assert!(refused.to_string().contains("misfireThresholdSec"), "{refused}");
    for (job, at_ms, outcome) in [(future, now + 1_000, None), (past, now - 20_000, Some(Outcome::FiredLate))] {
        let run = eventually("its run", || async {
            runs(&client, job).await.pop().filter(|run| run.state == RunState::Success)
        })
        .await;
        assert_eq!(run.logical_time.unwrap().ms(), at_ms);
        assert!(run.created_at.ms() >= at_ms, "early: {run:?}");
        let lines = eventually("its line", || async {
            Some(ledger(&client, job, None).await).filter(|lines| !lines.is_empty())
        })
        .await;
        assert_eq!((lines.len(), lines[0].at_ms, lines[0].run), (1, at_ms, Some(run.run_id)));
        assert!(lines[0].fired() && outcome.is_none_or(|o| o == lines[0].outcome), "{lines:?}");
    }
    let node = node.restart().await;
    // Neither the restart nor an edit fires it again.
    for job in [future, past] {
        let view = client.job_get(job).await.unwrap();
        assert_eq!((view.status, view.next_fire_at, view.run_count), (JobStatus::Enabled, None, 1));
        let mut edited = view.spec;
        edited.priority = 7;
        let view = client.job_replace(job, view.version, edited).await.unwrap();
        assert_eq!((view.next_fire_at, view.run_count), (None, 1));
        assert_eq!((runs(&client, job).await.len(), ledger(&client, job, None).await.len()), (1, 1));
    }
    bodies.end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misfires_after_the_node_was_away() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let late = |policy: &str, cap: u32| json!({"type": "FIXED_RATE", "everySec": 1, "misfirePolicy": policy, "misfireThresholdSec": 1, "maxCatchUp": cap});
    let jobs = [
        ("skip", late("SKIP", 1000)),
        ("once", late("FIRE_ONCE_NOW", 1000)),
        ("all", late("FIRE_ALL_MISSED", 1000)),
        ("capped", late("FIRE_ALL_MISSED", 2)),
        // The threshold of 60 s is not reached: these are late, not missed.
        ("patient", rate()),
    ];
    let mut made = Vec::new();
    for (name, trigger) in jobs {
        made.push((name, create(&client, spec(name, trigger, 0)).await));
    }
    for (_, job) in &made {
        ledger_with(&client, *job, "a fire", |lines| !fired(lines).is_empty()).await;
    }
    let (node, away) = node.away(Duration::from_millis(6_500)).await;
    for (name, job) in made {
        ledger_with(&client, job, "a fire afterwards", |lines| {
            lines.last().is_some_and(|l| l.fired() && l.at_ms > away.end + 2_000)
        })
        .await;
        let (lines, runs) = settled(&client, job).await;
        // Old enough to be missed whenever it was decided.
        let missed: Vec<Line> =
            lines.iter().filter(|l| (away.start..away.end - 1_000).contains(&l.at_ms)).copied().collect();
        assert!(missed.len() >= 4, "{name}: {lines:?}");
        assert!(succeeded(&runs), "{name}: {runs:?}");
        let of_missed: Vec<&RunView> =
            runs.iter().filter(|run| missed.iter().any(|line| line.run == Some(run.run_id))).collect();
        for run in &of_missed {
            assert!(run.created_at.ms() >= away.end, "{run:?}");
        }
        match name {
            "skip" => assert!(missed.iter().all(|line| line.skipped(SkipReason::Misfire)), "{lines:?}"),
            "once" => {
                // One run, of the latest instant that was due; it names those that it stands for.
                assert_eq!(of_missed.len(), 1, "{lines:?}");
                let at = of_missed[0].logical_time.unwrap().ms();
                assert!(at > missed.last().unwrap().at_ms, "{lines:?}");
                assert!(missed.iter().all(|line| line.outcome == Outcome::Coalesced), "{lines:?}");
                let behind = lines.iter().filter(|line| line.run == Some(of_missed[0].run_id) && line.fired());
                assert_eq!(behind.map(|line| line.at_ms).collect::<Vec<_>>(), [at]);
            }
            "all" => {
                assert!(missed.iter().all(|line| line.outcome == Outcome::FiredLate), "{lines:?}");
                assert!(of_missed.windows(2).all(|pair| pair[0].logical_time < pair[1].logical_time), "{runs:?}");
                assert_eq!(of_missed.len(), missed.len());
            }
            "capped" => {
                let given_up =
                    |line: &&Line| line.outcome == Outcome::Missed && line.reason == Some(SkipReason::CatchUpCap);
                let lost = missed.iter().take_while(given_up).count();
                assert!(missed[lost..].iter().all(|line| line.outcome == Outcome::FiredLate), "{lines:?}");
                // Two of what was missed at the decision are kept; the slower the start, the later they lie.
                assert!(lost >= missed.len() - 2, "{lines:?}");
                assert!(
                    runs.iter().filter(|run| away.contains(&run.logical_time.unwrap().ms())).count() <= 3,
                    "{runs:?}"
                );
            }
            _ => {
                assert!(missed.iter().all(Line::fired), "{lines:?}");
                assert_eq!(of_missed.len(), missed.len());
            }
        }
    }
    bodies.end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_are_in_the_ledger_and_resuming_fires_nothing_late() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let job = create(&client, spec("job", rate(), 0)).await;
    let mut other = spec("of-a-tenant", rate(), 0);
    "acme".clone_into(&mut other.tenant_id);
    let of_tenant = create(&client, other).await;
    let both = [job, of_tenant];
    let count = |reason: SkipReason| move |lines: &[Line]| lines.iter().filter(|l| l.skipped(reason)).count();
    for job in both {
        ledger_with(&client, job, "a fire", |lines| !fired(lines).is_empty()).await;
    }
    let view = client.job_pause(job, Some("test")).await.unwrap();
    assert_eq!((view.status, view.next_fire_at), (JobStatus::Paused, None));
    client.tenant_pause("acme", None).await.unwrap();
    let paused_ms = now_ms();
    // Over the tenant the instants pass one by one; a paused job's are written down when it is resumed.
    ledger_with(&client, of_tenant, "three skipped", |lines| count(SkipReason::TenantPaused)(lines) >= 3).await;
    let until_ms = now_ms();
    client.job_resume(job, None).await.unwrap();
    client.tenant_resume("acme", None).await.unwrap();
    let resumed_ms = now_ms();
    let fires_again = |lines: &[Line]| lines.last().is_some_and(|line| line.fired() && line.at_ms > resumed_ms);
    for (job, reason) in [(job, SkipReason::Paused), (of_tenant, SkipReason::TenantPaused)] {
        let lines = ledger_with(&client, job, "a fire afterwards", fires_again).await;
        let within: Vec<&Line> = lines.iter().filter(|line| (paused_ms..=until_ms).contains(&line.at_ms)).collect();
        assert!(within.len() >= 2 && within.iter().all(|line| line.skipped(reason)), "{lines:?}");
        let outside = lines.iter().filter(|line| line.at_ms < paused_ms - EVERY_MS || line.at_ms > resumed_ms);
        assert!(outside.into_iter().all(Line::fired), "{lines:?}");
    }
    client.system_pause(None).await.unwrap();
    for job in both {
        ledger_with(&client, job, "two skipped", |lines| count(SkipReason::SystemPaused)(lines) >= 2).await;
    }
    client.system_resume(None).await.unwrap();
    let resumed_ms = now_ms();
    for job in both {
        ledger_with(&client, job, "a fire at last", |lines| {
            lines.last().is_some_and(|l| l.fired() && l.at_ms > resumed_ms)
        })
        .await;
        let (_, runs) = settled(&client, job).await;
        assert!(succeeded(&runs), "{runs:?}");
    }
    bodies.end(node).await;
}

/// The same job with something changed.
async fn edit(client: &Client, job: JobId, change: impl FnOnce(&mut JobSpec)) -> JobView {
    let view = client.job_get(job).await.unwrap();
    let mut spec = view.spec;
    change(&mut spec);
    client.job_replace(job, view.version, spec).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_fire_nothing_and_lose_nothing() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let busy = create(&client, spec("busy", rate(), 0)).await;
    let hourly = create(&client, spec("hourly", json!({"type": "FIXED_RATE", "everySec": 3600}), 0)).await;
    let asleep = create(&client, spec("asleep", rate(), 0)).await;
    client.job_pause(asleep, None).await.unwrap();
    // Many edits while instants pass: each instant has one outcome still, and the anchor stays.
    let mut edits = 0;
    while ledger(&client, busy, Some(EVERY_MS)).await.len() < 4 {
        edits += 1;
        let view = edit(&client, busy, |spec| spec.priority = 100 + edits % 100).await;
        assert_eq!(view.version, 1 + u64::from(edits));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stale = client.job_get(busy).await.unwrap();
    assert_eq!(code(client.job_replace(busy, stale.version - 1, stale.spec).await), ErrorCode::StaleVersion);
    let (lines, runs) = settled(&client, busy).await;
    assert!(succeeded(&runs) && lines.iter().all(|l| l.fired() || l.skipped(SkipReason::Edited)), "{lines:?}");

    // A schedule that would have been due every second for ten minutes begins after the edit.
    let edited_ms = now_ms();
    let anchor_ms = edited_ms - 600_000;
    let view = edit(&client, hourly, |spec| {
        let trigger = json!({"type": "FIXED_RATE", "everySec": 1, "anchorAt": Timestamp(anchor_ms)});
        spec.trigger = serde_json::from_value(trigger).unwrap();
    })
    .await;
    assert_eq!(view.run_count, 0);
    let lines = ledger_with(&client, hourly, "two fires", |lines| fired(lines).len() >= 2).await;
    assert!(lines[0].at_ms > edited_ms && lines.iter().all(Line::fired), "{lines:?}");
    assert_eq!((lines[0].at_ms - anchor_ms) % EVERY_MS, 0);

    // An edit of a paused job closes what passed as paused, and does not wake it.
    let view = edit(&client, asleep, |spec| spec.priority = 1).await;
    assert_eq!((view.status, view.run_count), (JobStatus::Paused, 0));
    let lines = ledger_with(&client, asleep, "skipped ones", |lines| lines.len() >= 3).await;
    assert!(lines.iter().all(|line| line.skipped(SkipReason::Paused)), "{lines:?}");

    // Nor does an edit to an instant that has passed.
    let view = client.job_get(asleep).await.unwrap();
    let mut spec = view.spec;
    let at = Timestamp(now_ms() - 5_000);
    spec.trigger = serde_json::from_value(json!({"type": "ONCE", "at": at})).unwrap();
    assert_eq!(code(client.job_replace(asleep, view.version, spec).await), ErrorCode::ScheduleNeverFires);
    assert_eq!(client.job_get(asleep).await.unwrap().version, view.version);
    bodies.end(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_fires_before_start_at_or_after_end_at() {
    let node = TestNode::start().await;
    let (client, bodies) = (node.client().await, Bodies::start(&node));
    let now = now_ms();
    let between = |start: i64, end: i64| json!({"type": "FIXED_RATE", "everySec": 1, "anchorAt": Timestamp(now), "startAt": Timestamp(start), "endAt": Timestamp(end)});
    // Both bounds are instants of the schedule: they belong to it.
    let (start, end) = (now + 2_000, now + 4_000);
    let job = create(&client, spec("bounded", between(start, end), 0)).await;
    assert_eq!(client.job_get(job).await.unwrap().next_fire_at.unwrap().ms(), start);
    let lines = ledger_with(&client, job, "three lines", |lines| lines.len() >= 3).await;
    assert_eq!(fired(&lines), [start, start + 1_000, end]);
    let view = client.job_get(job).await.unwrap();
    assert_eq!((view.next_fire_at, view.status, view.run_count), (None, JobStatus::Enabled, 3));
    for (start, end, wanted) in
        [(now - 9_000, now - 5_000, ErrorCode::ScheduleNeverFires), (end, start, ErrorCode::InvalidArgument)]
    {
        assert_eq!(code(client.job_create(spec("refused", between(start, end), 0)).await), wanted);
    }
    bodies.end(node).await;
}
