//! Runs of all jobs by state, tenant, job, label, source and time, page by page; and the statistics of a job.

use crate::support::{self, TestNode, eventually};
use campanile_client::{Client, ClientError, Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    limits::LOAD_MINUTES,
    payload::Payload,
    record::{RunState, Source},
    time::Timestamp,
    view::{
        JobFilter, TriggerBody,
        runs::{CausesBody, DeadLettersBody, LoadBody, LoadView, RunListBody},
    },
};
use std::{collections::BTreeSet, time::Duration};

fn spec(tenant: &str, name: &str) -> JobSpec {
    let mut spec = JobSpec::new(tenant, name, Trigger::Manual {});
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.retry_policy.max_attempts = 1;
    spec
}

/// Bodies of jobs whose names begin with `bad` fail.
fn executor(node: &TestNode, pool: &str) -> ExecutorHandle {
    Executor::builder(node.rpc(), support::TOKEN)
        .pool(pool)
        .slots(8)
        .any_handler(|context: Context, _: Payload| async move {
            if context.job_name().starts_with("bad") { Err(JobError::message("no luck")) } else { Ok(None) }
        })
        .build()
        .unwrap()
        .start()
}

async fn run(client: &Client, job: JobId) -> RunId {
    client.job_trigger(job, TriggerBody::default()).await.unwrap().run_id
}

async fn ended(client: &Client, run: RunId, state: RunState) {
    eventually(state.as_str(), || async { (client.run_get(run).await.unwrap().state == state).then_some(()) }).await;
}

/// All pages, each of two runs at most, in their order.
async fn listed(client: &Client, body: RunListBody) -> Vec<RunId> {
    let (mut all, mut page_token) = (Vec::new(), None);
    loop {
        let body = RunListBody { page_token, page_size: Some(2), ..body.clone() };
        let page = client.run_list(body).await.unwrap();
        assert!(page.items.len() <= 2);
        all.extend(page.items.iter().map(|run| run.run_id));
        page_token = page.next_page_token;
        if page_token.is_none() {
            return all;
        }
    }
}

fn states(states: &str) -> RunListBody {
    RunListBody { state: Some(states.to_owned()), ..RunListBody::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_listed_over_all_jobs_once_and_in_order() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = executor(&node, "default");
    // Of a pool without executors: their runs stay open.
    let mut waiting = Vec::new();
    for n in 0..5 {
        let mut spec = spec("default", &format!("waiting-{n}"));
        spec.executor_selector = "nobody".to_owned();
        spec.labels.insert("parity".to_owned(), if n % 2 == 0 { "even" } else { "odd" }.to_owned());
        waiting.push(run(&client, client.job_create(spec).await.unwrap().job_id).await);
    }
    let good = client.job_create(spec("default", "good")).await.unwrap().job_id;
    let bad = client.job_create(spec("other", "bad")).await.unwrap().job_id;
    let (mut succeeded, mut failed) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        succeeded.push(run(&client, good).await);
        ended(&client, succeeded[succeeded.len() - 1], RunState::Success).await;
        failed.push(run(&client, bad).await);
        ended(&client, failed[failed.len() - 1], RunState::Failed).await;
    }
    let newest_first = |runs: &[RunId]| runs.iter().rev().copied().collect::<Vec<_>>();
    // What somebody may have to look at: open runs first.
    let usual = [newest_first(&waiting), newest_first(&failed)].concat();
    assert_eq!(listed(&client, RunListBody::default()).await, usual);
    assert_eq!(listed(&client, states("QUEUED")).await, newest_first(&waiting));
    assert_eq!(listed(&client, states("RUNNING,NEEDS_CONFIRMATION")).await, []);
    assert_eq!(listed(&client, states("success")).await, newest_first(&succeeded));
    let all: Vec<RunId> = (0..3).rev().flat_map(|n| [failed[n], succeeded[n]]).collect();
    assert_eq!(listed(&client, states("SUCCESS,FAILED")).await, all, "the one that ended last first");
    let of_tenant = RunListBody { tenant_id: Some("other".to_owned()), ..RunListBody::default() };
    assert_eq!(listed(&client, of_tenant).await, newest_first(&failed));
    let of_job = RunListBody { job_id: Some(good), ..RunListBody::default() };
    assert_eq!(listed(&client, of_job).await, newest_first(&succeeded), "of one job all states");
    let odd = RunListBody { labels: Some("parity=odd".to_owned()), ..RunListBody::default() };
    assert_eq!(listed(&client, odd).await, [waiting[3], waiting[1]]);
    let scheduled = RunListBody { source: Some(Source::Schedule), ..states("SUCCESS,FAILED,QUEUED") };
    assert_eq!(listed(&client, scheduled).await, []);
    let end = client.run_get(failed[1]).await.unwrap().ended_at.unwrap();
    let one = RunListBody { from: Some(end), to: Some(end), ..states("FAILED") };
    assert_eq!(listed(&client, one).await, [failed[1]]);

    // A fact that goes: a canceled run is open no more.
    client.run_cancel(waiting[4], None).await.unwrap();
    assert_eq!(listed(&client, states("QUEUED")).await, newest_first(&waiting[..4]));
    assert_eq!(listed(&client, states("CANCELED")).await, [waiting[4]]);
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_many_open_runs_over_all_shards_have_each_run_once() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let mut all = BTreeSet::new();
    for n in 0..12 {
        let job = client.job_create(spec("default", &format!("job-{n}"))).await.unwrap().job_id;
        for _ in 0..10 {
            all.insert(run(&client, job).await);
        }
    }
    let listed = listed(&client, states("QUEUED")).await;
    assert_eq!(listed.len(), all.len());
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
    let mut created = Vec::new();
    for run in &listed {
        created.push(client.run_get(*run).await.unwrap().created_at);
    }
    assert!(created.is_sorted_by(|a, b| a >= b), "newest first");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_filters_are_refused_by_name() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let code = async |body: RunListBody| match client.run_list(body).await.unwrap_err() {
        ClientError::Api(error) => (error.known(), error.message),
        other => panic!("{other}"),
    };
    let (known, message) = code(states("DONE")).await;
    assert_eq!(known, ErrorCode::InvalidArgument);
    assert!(message.starts_with("state: 'DONE' is not one of"), "{message}");
    let turned = RunListBody { from: Some(Timestamp(2)), to: Some(Timestamp(1)), ..RunListBody::default() };
    assert!(code(turned).await.1.starts_with("from:"));
    let token = RunListBody { page_token: Some("x".to_owned()), ..RunListBody::default() };
    assert!(code(token).await.1.starts_with("pageToken"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_count_what_ended_in_the_window() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = executor(&node, "default");
    let job = client.job_create(spec("default", "mixed")).await.unwrap().job_id;
    let nothing = client.job_statistics(job, None).await.unwrap();
    assert_eq!((nothing.runs, nothing.success_rate, nothing.duration_ms), (0, None, None));
    for _ in 0..3 {
        let run = run(&client, job).await;
        ended(&client, run, RunState::Success).await;
    }
    let view = client.job_statistics(job, Some("1h")).await.unwrap();
    assert_eq!((view.runs, view.truncated, view.success_rate, view.failure_rate), (3, false, Some(1.0), Some(0.0)));
    assert_eq!(view.outcomes.iter().map(|of| (of.state, of.count)).collect::<Vec<_>>(), [(RunState::Success, 3)]);
    assert_eq!((view.duration_ms.unwrap().count, view.lateness_ms), (3, None), "nobody scheduled them");
    assert_eq!(view.to.ms() - view.from.ms(), 3_600_000);
    let refused = client.job_statistics(job, Some("a week")).await.unwrap_err();
    assert_eq!(refused.api().unwrap().known(), ErrorCode::InvalidArgument);
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_grouped_by_cause_and_listed_by_it() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|context: Context, _: Payload| async move {
            let what = if context.job_name() == "disk" { "no space left" } else { "order" };
            Err::<Option<Payload>, _>(JobError::message(format!("{what} {}", context.run_id())))
        })
        .build()
        .unwrap()
        .start();
    let mut runs = Vec::new();
    for name in ["disk", "orders", "orders-2"] {
        let job = client.job_create(spec("default", name)).await.unwrap().job_id;
        for _ in 0..2 {
            let run = run(&client, job).await;
            ended(&client, run, RunState::Failed).await;
            runs.push((job, run));
        }
    }
    let causes = client.dlq_causes(CausesBody::default()).await.unwrap();
    assert_eq!((causes.counted, causes.truncated), (6, false));
    let told: Vec<(u64, u64)> = causes.items.iter().map(|cause| (cause.count, cause.jobs)).collect();
    assert_eq!(told, [(4, 2), (2, 1)], "{causes:?}");
    assert!(causes.items[0].reason.starts_with("FAILED: order"));
    let listed = async |body: DeadLettersBody| {
        let (mut all, mut page_token) = (Vec::new(), None);
        loop {
            let body = DeadLettersBody { page_token, page_size: Some(1), ..body.clone() };
            let page = client.dlq_list(body).await.unwrap();
            all.extend(page.items.iter().map(|letter| letter.run_id));
            page_token = page.next_page_token;
            if page_token.is_none() {
                return all;
            }
        }
    };
    let newest_first = |runs: &[(JobId, RunId)]| runs.iter().rev().map(|(_, run)| *run).collect::<Vec<_>>();
    assert_eq!(listed(DeadLettersBody::default()).await, newest_first(&runs));
    let of_cause = DeadLettersBody { cause: Some(causes.items[1].cause.clone()), ..DeadLettersBody::default() };
    assert_eq!(listed(of_cause).await, newest_first(&runs[..2]));
    let of_job = DeadLettersBody { job_id: Some(runs[2].0), ..DeadLettersBody::default() };
    assert_eq!(listed(of_job).await, newest_first(&runs[2..4]));
    let of_time = DeadLettersBody { to: Some(Timestamp(0)), ..DeadLettersBody::default() };
    assert_eq!(listed(of_time).await, []);
    // A dead letter that is put away is no cause any more.
    client.dlq_discard(runs[0].1, None).await.unwrap();
    client.dlq_discard(runs[1].1, None).await.unwrap();
    assert_eq!(client.dlq_causes(CausesBody::default()).await.unwrap().items.len(), 1);
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_load_counts_the_instants_of_each_minute() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let load = async |tenant: Option<&str>| {
        let body = LoadBody { tenant_id: tenant.map(str::to_owned), minutes: Some(60) };
        let view = client.schedule_load(body).await.unwrap();
        assert_eq!((view.items.len(), view.truncated), (60, false));
        assert!(view.items.is_sorted_by_key(|minute| minute.at));
        view
    };
    let count = |view: &LoadView| view.items.iter().map(|minute| minute.count).sum::<u64>();
    assert_eq!((count(&load(None).await), load(None).await.jobs), (0, 0));
    // Every ten minutes: six times in an hour, whenever it begins. A yearly one is not due, a manual one never.
    let scheduled = |tenant: &str, name: &str, expr: &str| JobSpec::new(tenant, name, Trigger::cron(expr));
    let often = client.job_create(scheduled("default", "often", "*/10 * * * *")).await.unwrap().job_id;
    client.job_create(scheduled("other", "hourly", "15,45 * * * *")).await.unwrap();
    client.job_create(spec("default", "manual")).await.unwrap();
    let view = load(Some("default")).await;
    // The one of this minute may have fired by now.
    assert!((5..=6).contains(&count(&view)), "{view:?}");
    assert_eq!((view.jobs, load(None).await.jobs), (1, 2));
    client.job_pause(often, None).await.unwrap();
    assert_eq!(load(Some("default")).await.jobs, 0, "a paused job is not due");
    node.stop().await;
}

/// More instants than one call of a shard counts: the node has 16 shards, so two of these jobs have one together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_load_counts_every_job_whole_however_many_calls_it_takes() {
    const JOBS: u64 = 17;
    let node = TestNode::start().await;
    let client = node.client().await;
    for n in 0..JOBS {
        client.job_create(JobSpec::new("default", &format!("tick-{n}"), Trigger::fixed_rate(1))).await.unwrap();
    }
    let view = client.schedule_load(LoadBody { tenant_id: None, minutes: Some(LOAD_MINUTES) }).await.unwrap();
    assert_eq!((view.jobs, view.truncated), (JOBS, false));
    // In the first minute some have fired by now.
    let counts: BTreeSet<u64> = view.items[1..].iter().map(|minute| minute.count).collect();
    assert_eq!(counts, BTreeSet::from([60 * JOBS]));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_for_people_are_kept_shown_and_searched() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let mut job = spec("default", "daily_billing");
    job.display_name = Some("\u{6bcf}\u{65e5}\u{8ba1}\u{8d39}".to_owned());
    job.description = Some("Closes the books.\nAsk before you stop it.".to_owned());
    job.owner = Some("Finance <finance@example.org>".to_owned());
    job.annotations.insert("runbook".to_owned(), "https://example.org/Billing".to_owned());
    let id = client.job_create(job.clone()).await.unwrap().job_id;
    client.job_create(spec("default", "plain")).await.unwrap();
    let node = node.restart().await;
    let client = node.client().await;
    let read = client.job_get(id).await.unwrap().spec;
    assert_eq!(
        (&read.display_name, &read.description, &read.owner, &read.annotations),
        (&job.display_name, &job.description, &job.owner, &job.annotations)
    );
    let found = async |text: &str| {
        let filter = JobFilter { text: Some(text.to_owned()), ..JobFilter::default() };
        client.job_list(filter).await.unwrap().items.into_iter().map(|job| job.job_id).collect::<Vec<_>>()
    };
    for text in ["\u{8ba1}\u{8d39}", "BOOKS", "finance@", "example.org/billing", "runbook", "daily"] {
        assert_eq!(found(text).await, [id], "{text}");
    }
    assert_eq!(found("nowhere").await, []);
    let refused = |field: &'static str, change: fn(&mut JobSpec)| {
        let (mut job, client) = (spec("default", "wrong"), client.clone());
        change(&mut job);
        async move {
            let error = client.job_create(job).await.unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
    };
    refused("displayName", |job| job.display_name = Some("a\u{1b}[2Jb".to_owned())).await;
    refused("owner", |job| job.owner = Some("x".repeat(257))).await;
    refused("description", |job| job.description = Some("x".repeat(8_193))).await;
    refused("annotations", |job| drop(job.annotations.insert(String::new(), "x".to_owned()))).await;
    node.stop().await;
}
