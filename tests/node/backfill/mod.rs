//! Backfills on a whole node: what was missing runs once, beside live runs, whatever dies in between.

mod kills;
mod refusals;

use crate::support::{self, TestNode, eventually, now_ms, wait_until};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_ports::LocalViews as _;
use campanile_schema::{
    error::ErrorCode,
    event::{Outcome, SkipReason},
    ids::{BackfillId, JobId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    payload::Payload,
    record::{RunState, Source},
    stored::backfill::{BackfillMode, BackfillState},
    time::Timestamp,
    view::{
        PageBody, RunView, TriggerBody,
        backfill::{BackfillBody, BackfillProgress, BackfillView, ReplayBody, UnknownInstants},
    },
};
use campanile_store::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

const DAY: i64 = 86_400_000;

/// Bodies that ran, by their logical time in ms; whether they fail; and whether they wait.
#[derive(Default)]
struct Bodies {
    ran: Mutex<BTreeMap<i64, usize>>,
    failing: AtomicBool,
    waiting: AtomicBool,
}

fn executor(node: &TestNode, bodies: &Arc<Bodies>, slots: u32) -> ExecutorHandle {
    let bodies = bodies.clone();
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(slots)
        .any_handler(move |context: Context, _: Payload| {
            let bodies = bodies.clone();
            async move {
                while bodies.waiting.load(Ordering::Relaxed) {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(20)) => {}
                        _ = context.canceled() => return Err(JobError::message("told to stop")),
                    }
                }
                let at = context.logical_time().map_or(0, |at| at.ms());
                *bodies.ran.lock().unwrap().entry(at).or_default() += 1;
                if bodies.failing.load(Ordering::Relaxed) {
                    return Err(JobError::message("no luck"));
                }
                Ok(None)
            }
        })
        .build()
        .unwrap()
        .start()
}

fn spec(name: &str, trigger: serde_json::Value, policy: ConcurrencyPolicy) -> JobSpec {
    let mut spec = JobSpec::new("default", name, serde_json::from_value::<Trigger>(trigger).unwrap());
    spec.retry_policy.max_attempts = 1;
    spec.concurrency_policy = policy;
    spec
}

/// A job that is due each day at two, which the tests do not wait for.
async fn daily(node: &TestNode, policy: ConcurrencyPolicy) -> JobId {
    let spec = spec("daily", json!({"type": "CRON", "expr": "0 2 * * *"}), policy);
    node.scheduler().create_job(spec, None).await.unwrap().job_id
}

/// From so many days ago until now.
fn days(count: i64) -> BackfillBody {
    let now = now_ms();
    BackfillBody { from: Timestamp(now - count * DAY), to: Timestamp(now), ..BackfillBody::default() }
}

async fn until(node: &TestNode, id: BackfillId, state: BackfillState) -> BackfillView {
    let look = || async {
        let view = node.scheduler().backfill_by_id(id).await.unwrap();
        (view.state == Some(state)).then_some(view)
    };
    eventually(&format!("backfill {id} is {state}"), look).await
}

async fn runs_of(node: &TestNode, job: JobId) -> Vec<RunView> {
    let client = node.client().await;
    let page = PageBody { page_size: Some(1_000), ..PageBody::default() };
    client.job_runs(job, page).await.unwrap().items
}

fn progress(view: &BackfillView) -> BackfillProgress {
    view.progress.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_runs_once_and_the_same_again_makes_no_second_run() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let executor = executor(&node, &bodies, 8);
    let job = daily(&node, ConcurrencyPolicy::Forbid).await;
    let scheduler = node.scheduler();
    let dry = scheduler.backfill(job, BackfillBody { dry_run: true, ..days(7) }).await.unwrap();
    assert_eq!((dry.backfill_id, dry.state, dry.progress), (None, None, None));
    assert_eq!((dry.instants, dry.missing, dry.to_run, dry.existing), (7, 7, 7, 0));
    assert_eq!(dry.parallelism, 1, "FORBID");
    assert_eq!(bodies.ran.lock().unwrap().len(), 0);
    let made = scheduler.backfill(job, BackfillBody { reason: Some("lost".to_owned()), ..days(7) }).await.unwrap();
    let id = made.backfill_id.unwrap();
    let done = until(&node, id, BackfillState::Done).await;
    let told = progress(&done);
    assert_eq!((told.started, told.succeeded, told.failed, told.active), (7, 7, 0, 0));
    let runs = runs_of(&node, job).await;
    assert_eq!(runs.len(), 7);
    assert!(runs.iter().all(|run| (run.source, run.backfill_id) == (Source::Backfill, Some(id))));
    assert!(runs.iter().all(|run| run.reason.as_deref() == Some("lost") && run.key.is_none()));
    let instants: Vec<i64> = runs.iter().rev().map(|run| run.logical_time.unwrap().ms()).collect();
    assert!(instants.windows(2).all(|pair| pair[1] - pair[0] == DAY), "one after the other: {instants:?}");
    // The same again, and a wider one over it.
    let again = scheduler.backfill(job, days(7)).await.unwrap();
    assert_eq!((again.missing, again.existing, again.to_run), (0, 7, 0));
    let again = until(&node, again.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!((progress(&again).started, progress(&again).existing), (0, 7));
    let wider = scheduler.backfill(job, days(9)).await.unwrap();
    until(&node, wider.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!(bodies.ran.lock().unwrap().values().copied().collect::<Vec<_>>(), [1; 9]);
    assert_eq!(scheduler.backfill_of_job(job).await.unwrap().backfill_id, wider.backfill_id, "the newest one");
    assert_eq!(scheduler.backfill_by_id(id).await.unwrap_err().known(), ErrorCode::NotFound, "the job keeps one");
    // All of them run again, and the answer says that it would again.
    let all = BackfillBody { mode: Some(BackfillMode::All), ..days(9) };
    let all = scheduler.backfill(job, all).await.unwrap();
    assert!(all.hazard.as_ref().unwrap().contains("two of them run it twice"), "{all:?}");
    until(&node, all.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!(bodies.ran.lock().unwrap().values().copied().collect::<Vec<_>>(), [2; 9]);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failed_day_does_not_stop_the_rest_and_goes_on_as_its_next_generation() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let executor = executor(&node, &bodies, 8);
    let job = daily(&node, ConcurrencyPolicy::Allow).await;
    let scheduler = node.scheduler();
    bodies.failing.store(true, Ordering::Relaxed);
    let made = scheduler.backfill(job, BackfillBody { parallelism: Some(3), ..days(5) }).await.unwrap();
    let done = until(&node, made.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!((progress(&done).started, progress(&done).failed), (5, 5));
    bodies.failing.store(false, Ordering::Relaxed);
    let failed = BackfillBody { mode: Some(BackfillMode::Failed), ..days(5) };
    let failed = scheduler.backfill(job, failed).await.unwrap();
    assert_eq!((failed.failed, failed.to_run), (Some(5), 5));
    let done = until(&node, failed.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!((progress(&done).started, progress(&done).succeeded), (5, 5));
    let runs = runs_of(&node, job).await;
    assert_eq!(runs.len(), 5, "no new run");
    assert!(runs.iter().all(|run| (run.state, run.generation) == (RunState::Success, 2)));
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_leaves_no_run_behind_and_a_pause_starts_nothing_more() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    bodies.waiting.store(true, Ordering::Relaxed);
    let executor = executor(&node, &bodies, 4);
    let job = daily(&node, ConcurrencyPolicy::Allow).await;
    let scheduler = node.scheduler();
    let made = scheduler.backfill(job, BackfillBody { parallelism: Some(150), ..days(300) }).await.unwrap();
    let id = made.backfill_id.unwrap();
    eventually("150 runs are open", || async {
        let view = scheduler.backfill_by_id(id).await.unwrap();
        (progress(&view).active == 150).then_some(())
    })
    .await;
    let paused = scheduler.pause_backfill(id, Some("later".to_owned())).await.unwrap();
    assert_eq!((paused.state, paused.state_reason.as_deref()), (Some(BackfillState::Paused), Some("later")));
    let refused = scheduler.backfill(job, days(3)).await.unwrap_err();
    assert_eq!(refused.known(), ErrorCode::BackfillActive, "{refused}");
    assert!(refused.message.contains(&id.to_string()), "{refused}");
    bodies.waiting.store(false, Ordering::Relaxed);
    eventually("its open runs end", || async {
        let view = scheduler.backfill_by_id(id).await.unwrap();
        (progress(&view).active == 0).then_some(())
    })
    .await;
    assert_eq!(progress(&scheduler.backfill_by_id(id).await.unwrap()).started, 150, "nothing more was started");
    bodies.waiting.store(true, Ordering::Relaxed);
    scheduler.resume_backfill(id, None).await.unwrap();
    eventually("150 more", || async {
        let view = scheduler.backfill_by_id(id).await.unwrap();
        (progress(&view).active == 150).then_some(())
    })
    .await;
    scheduler.cancel_backfill(id, Some("enough".to_owned())).await.unwrap();
    let canceled = until(&node, id, BackfillState::Canceled).await;
    assert_eq!((progress(&canceled).succeeded, progress(&canceled).canceled), (150, 150));
    let runs = runs_of(&node, job).await;
    assert!(runs.iter().all(|run| run.state.is_final()), "no run is left");
    let again = scheduler.cancel_backfill(id, None).await.unwrap();
    assert_eq!(again.state, Some(BackfillState::Canceled), "a cancel that is repeated is no error");
    assert_eq!(scheduler.pause_backfill(id, None).await.unwrap_err().known(), ErrorCode::IllegalState);
    bodies.waiting.store(false, Ordering::Relaxed);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

/// A job that fires each second under FORBID: none of its instants is skipped because of the backfill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_under_forbid_does_not_starve_the_schedule() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let executor = executor(&node, &bodies, 1);
    let anchor = Timestamp(now_ms() - 40_000);
    let trigger = json!({"type": "FIXED_RATE", "everySec": 1, "anchorAt": anchor.to_string()});
    let job = node.scheduler().create_job(spec("each-second", trigger, ConcurrencyPolicy::Forbid), None).await.unwrap();
    let job = job.job_id;
    let scheduler = node.scheduler();
    let body = BackfillBody { from: anchor, to: Timestamp(now_ms()), ..BackfillBody::default() };
    let made = scheduler.backfill(job, body).await.unwrap();
    let until_ms = now_ms() + 6_000;
    wait_until(until_ms).await;
    until(&node, made.backfill_id.unwrap(), BackfillState::Done).await;
    let ledger = scheduler.ledger(job, 0, now_ms(), 1_000).await.unwrap();
    let skipped: Vec<_> = ledger.items.iter().filter(|entry| entry.outcome == Outcome::Skipped).collect();
    assert!(skipped.iter().all(|entry| entry.reason != Some(SkipReason::RunActive)), "{skipped:?}");
    let fired =
        ledger.items.iter().filter(|entry| matches!(entry.outcome, Outcome::Fired | Outcome::FiredLate)).count();
    assert!(fired >= 5, "{:?}", ledger.items);
    assert!(progress(&scheduler.backfill_of_job(job).await.unwrap()).succeeded >= 38);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instants_that_the_ledger_has_lost_run_only_when_that_is_asked_for() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let scheduler = node.scheduler();
    let trigger = json!({"type": "FIXED_RATE", "everySec": 1});
    let made = scheduler.create_job(spec("each-second", trigger, ConcurrencyPolicy::Allow), None).await.unwrap();
    let job = made.job_id;
    let created = scheduler.job(job).await.unwrap().created_at;
    scheduler.pause_job(job, None).await.unwrap();
    wait_until(created.ms() + 4_500).await;
    scheduler.resume_job(job, None).await.unwrap();
    let stretch = BackfillBody { from: created.plus_ms(1), to: created.plus_ms(4_400), ..BackfillBody::default() };
    let dry = |body: &BackfillBody| BackfillBody { dry_run: true, ..body.clone() };
    let before = scheduler.backfill(job, dry(&stretch)).await.unwrap();
    assert!(before.missing >= 3, "{before:?}");
    assert_eq!(before.unknown, 0, "{before:?}");
    // Runs that ended after them: the end of those that go is where the ledger begins. They are so large that the node flushes its read
    // model for them.
    let other = spec("other", json!({"type": "MANUAL"}), ConcurrencyPolicy::Allow);
    let other = scheduler.create_job(other, None).await.unwrap().job_id;
    for _ in 0..90 {
        let params = Some(Payload(json!({"text": "x".repeat(60_000)}).to_string()));
        let body = TriggerBody { params, ..TriggerBody::default() };
        let run = scheduler.trigger(other, body).await.unwrap().run_id;
        scheduler.cancel_run(run, None).await.unwrap();
    }
    let (flushed, since) = (node.dir().join("FLUSHED"), SystemTime::now());
    eventually("the read model is flushed", || async {
        let changed = flushed.metadata().ok()?.modified().ok()?;
        (changed > since).then_some(())
    })
    .await;
    scheduler.pause_job(job, None).await.unwrap();
    let dir = node.dir_handle();
    node.stop().await;
    {
        // What history that takes too much room does: its oldest go, and the rows of the ledger before them.
        let mut options = EmbeddedOptions::new(dir.path());
        options.shards = 16;
        let (store, _) = EmbeddedStore::open(options).unwrap();
        assert!(store.shrink(1, now_ms() + 1_000).await.unwrap() > 80);
    }
    let node = TestNode::again(dir).await;
    let scheduler = node.scheduler();
    scheduler.resume_job(job, None).await.unwrap();
    let executor = executor(&node, &bodies, 4);
    let after = scheduler.backfill(job, dry(&stretch)).await.unwrap();
    assert_eq!((after.missing, after.unknown, after.to_run), (0, before.missing, 0), "{after:?}");
    let unasked = scheduler.backfill(job, stretch.clone()).await.unwrap();
    let unasked = until(&node, unasked.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!((progress(&unasked).started, progress(&unasked).unknown), (0, before.missing));
    let asked = BackfillBody { unknown: UnknownInstants::Run, ..stretch };
    let asked = scheduler.backfill(job, asked).await.unwrap();
    let asked = until(&node, asked.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!(progress(&asked).succeeded, before.missing);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_runs_what_ran_once_more() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let executor = executor(&node, &bodies, 4);
    let scheduler = node.scheduler();
    let trigger = json!({"type": "FIXED_RATE", "everySec": 1});
    let made = scheduler.create_job(spec("each-second", trigger, ConcurrencyPolicy::Allow), None).await.unwrap();
    let job = made.job_id;
    let created = scheduler.job(job).await.unwrap().created_at;
    let to = created.plus_ms(3_100);
    // A run whose end is not recorded yet has nothing to replay.
    eventually("the runs of three instants ended", || async {
        let runs = runs_of(&node, job).await;
        let ended = |run: &&RunView| run.state == RunState::Success && run.logical_time.is_some_and(|at| at <= to);
        (runs.iter().filter(ended).count() == 3).then_some(())
    })
    .await;
    let replay = ReplayBody { from: created, to, ..ReplayBody::default() };
    let dry = scheduler.replay(job, ReplayBody { dry_run: true, ..replay.clone() }).await.unwrap();
    assert_eq!((dry.mode, dry.to_run), (BackfillMode::Replay, 3), "{dry:?}");
    let made = scheduler.replay(job, replay).await.unwrap();
    let done = until(&node, made.backfill_id.unwrap(), BackfillState::Done).await;
    assert_eq!(progress(&done).succeeded, 3);
    let runs = runs_of(&node, job).await;
    let replayed: Vec<&RunView> = runs.iter().filter(|run| run.source == Source::Replay).collect();
    assert_eq!(replayed.len(), 3);
    assert!(replayed.iter().all(|run| bodies.ran.lock().unwrap()[&run.logical_time.unwrap().ms()] == 2));
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

/// Nobody takes the runs: live runs of the same pool, job and tenant go first, and the backfill says why it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_runs_go_before_those_of_a_backfill() {
    let node = TestNode::start().await;
    let bodies = Arc::<Bodies>::default();
    let job = daily(&node, ConcurrencyPolicy::Allow).await;
    let scheduler = node.scheduler();
    let made = scheduler.backfill(job, BackfillBody { parallelism: Some(4), ..days(8) }).await.unwrap();
    let id = made.backfill_id.unwrap();
    eventually("four runs wait", || async {
        let view = scheduler.backfill_by_id(id).await.unwrap();
        (progress(&view).active == 4).then_some(())
    })
    .await;
    let live = scheduler.trigger(job, Default::default()).await.unwrap();
    assert_eq!(live.state, RunState::Queued, "it does not wait for the backfill");
    let executor = executor(&node, &bodies, 1);
    until(&node, id, BackfillState::Done).await;
    let live = scheduler.run(live.run_id).await.unwrap();
    let runs = runs_of(&node, job).await;
    let back: Vec<&RunView> = runs.iter().filter(|run| run.backfill_id.is_some()).collect();
    assert_eq!(back.len(), 8);
    assert!(back.iter().all(|run| run.started_at > live.started_at), "{live:?}");
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}
