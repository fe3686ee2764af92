//! `bulk`: what a bulk pause of many jobs and a bulk retry of as many runs cost live work. The live jobs are those of `bench`; the jobs
//! that are changed are others, whose runs fail once before the measurement begins.

use crate::{
    load::{
        caller::Caller,
        latency::{Percentiles, lateness},
    },
    process::fleet::Fleet,
    run_dir::{export::drain, lines::now_us},
    workload::{self, Plan},
};
use campanile_client::Client;
use campanile_schema::{
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    stored::bulk::{BulkAction, BulkState},
    view::{
        TenantBody,
        bulk::{BulkBody, BulkFilter, BulkView},
    },
};
use clap::Args;
use serde::Serialize;
use std::{
    error::Error,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Pool and label of the jobs that are changed.
const CHANGED: &str = "changed";
/// The slowest that an operation may be for the live load to last as long, items a second.
const SLOWEST_PER_SEC: u64 = 250;
/// What the live load lasts beyond that, milliseconds.
const SPARE_MS: i64 = 60_000;
/// What one create of a live job takes at most, microseconds.
const CREATE_US: u64 = 400;
/// Between the last create and the first live instant, milliseconds.
const LEAD_MS: i64 = 5_000;
/// The beginning of the live load that does not count, milliseconds.
const WARM_UP_MS: i64 = 3_000;
/// Between two operations: the node comes to rest, milliseconds.
const BETWEEN_MS: u64 = 3_000;
const LOOK: Duration = Duration::from_millis(100);
/// Between two lines about the progress.
const TOLD_EVERY: Duration = Duration::from_secs(5);
/// Until all runs have failed.
const FAILED_WITHIN: Duration = Duration::from_mins(10);

#[derive(Args, Clone, Debug)]
pub struct BulkArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// Jobs that are paused, and runs that are retried.
    #[arg(long, default_value_t = 100_000)]
    pub items: u64,
    /// Live jobs.
    #[arg(long, default_value_t = 50_000)]
    pub jobs: u64,
    /// Due instants of all live jobs, per second.
    #[arg(long, default_value_t = 5_000.0)]
    pub rate: f64,
    /// The live load alone, seconds.
    #[arg(long, default_value_t = 30)]
    pub alone_sec: u64,
    #[arg(long, default_value_t = 2)]
    pub executors: u32,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 4_096)]
    pub slots: u32,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Report red when an operation makes the live p99 more than so many times as late.
    #[arg(long)]
    pub max_ratio: Option<f64>,
}

/// One operation beside the live load.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub action: BulkAction,
    pub items: u64,
    pub done: u64,
    pub failed: u64,
    pub seconds: f64,
    pub items_per_sec: f64,
    /// Starts of the live runs that were due meanwhile.
    pub live: Percentiles,
    /// Their p99 by that of the live load alone.
    pub ratio: f64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub rate_asked: f64,
    pub alone: Percentiles,
    pub operations: Vec<Measured>,
}

/// From when until when an operation went on, milliseconds since 1970.
struct Span {
    view: BulkView,
    from_ms: i64,
    until_ms: i64,
}

/// True: all was changed, and live work was not held up more than allowed.
pub async fn run(args: BulkArgs) -> Result<bool, Box<dyn Error>> {
    let report = measure(&args).await?;
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(args.dir.join("report.json"), &text)?;
    println!("{text}\n\n{}", table(&report));
    let whole = |m: &Measured| m.done == args.items && m.failed == 0 && m.live.count > 0;
    let in_time = |m: &Measured| args.max_ratio.is_none_or(|limit| m.ratio <= limit);
    Ok(report.operations.iter().all(|m| whole(m) && in_time(m)))
}

async fn measure(args: &BulkArgs) -> Result<Report, Box<dyn Error>> {
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let node = fleet.start_node(None)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..args.executors {
        fleet.start_executor(&node, "default", args.slots, 0, 5)?;
    }
    fleet.start_executor(&node, CHANGED, args.slots, 100, 5)?;
    fleet.executors_ready(caller.client()).await?;
    caller.client().tenant_set("default", TenantBody::default()).await?;
    prepare(args, &caller).await?;

    let seconds = args.alone_sec + 3 * (args.items / SLOWEST_PER_SEC + 1);
    let (start_ms, end_ms) = live(args, &caller, seconds as i64 * 1_000 + SPARE_MS).await?;
    let alone_until_ms = start_ms + WARM_UP_MS + args.alone_sec as i64 * 1_000;
    sleep(Duration::from_millis((alone_until_ms - now_us() / 1000).max(0).unsigned_abs())).await;
    let mut spans = Vec::new();
    // Resumed in between: a run of a paused job would not be started.
    for action in [BulkAction::Pause, BulkAction::Resume, BulkAction::Retry] {
        spans.push(changed(caller.client(), action).await?);
        sleep(Duration::from_millis(BETWEEN_MS)).await;
    }
    if spans.iter().any(|span| span.until_ms > end_ms) {
        return Err("the operations took longer than the live load: fewer --items, or a faster machine".into());
    }
    let dir = fleet.dir.clone();
    tokio::task::block_in_place(|| node.stop(Duration::from_secs(20)))?;
    fleet.finish(caller)?;
    tokio::task::block_in_place(|| {
        let alone = lateness(&dir, start_ms + WARM_UP_MS, alone_until_ms)?.start;
        let mut operations = Vec::new();
        for span in &spans {
            operations.push(of_span(span, lateness(&dir, span.from_ms, span.until_ms)?.start, &alone));
        }
        Ok(Report { rate_asked: args.rate, alone, operations })
    })
}

fn of_span(span: &Span, live: Percentiles, alone: &Percentiles) -> Measured {
    let seconds = (span.until_ms - span.from_ms).max(1) as f64 / 1_000.0;
    Measured {
        action: span.view.action,
        items: span.view.matched,
        done: span.view.done,
        failed: span.view.failed,
        seconds,
        items_per_sec: span.view.done as f64 / seconds,
        live,
        ratio: live.p99_ms / alone.p99_ms.max(0.001),
    }
}

/// Jobs whose one run has failed.
async fn prepare(args: &BulkArgs, caller: &Caller) -> Result<(), Box<dyn Error>> {
    let spec = |n: u64| {
        let mut spec = JobSpec::new("default", &format!("{CHANGED}-{n}"), Trigger::Manual {});
        spec.labels.insert(CHANGED.to_owned(), "yes".to_owned());
        spec.executor_selector = CHANGED.to_owned();
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        spec.retry_policy.max_attempts = 1;
        spec
    };
    let specs: Vec<JobSpec> = (0..args.items).map(spec).collect();
    let made = caller.create_many(&specs).await.into_iter().flatten().count() as u64;
    if made < args.items {
        return Err(format!("only {made} of {} jobs were created", args.items).into());
    }
    changed(caller.client(), BulkAction::Trigger).await?;
    match drain(caller.client(), FAILED_WITHIN).await? {
        0 => Ok(()),
        left => Err(format!("{left} runs have not failed").into()),
    }
}

/// The live jobs: first and last instant.
async fn live(args: &BulkArgs, caller: &Caller, lasts_ms: i64) -> Result<(i64, i64), Box<dyn Error>> {
    let start_ms = now_us() / 1000 + LEAD_MS + (args.jobs * CREATE_US / 1_000) as i64;
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + lasts_ms,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "live".to_owned(),
        seed: 1,
    };
    let made = caller.create_many(&workload::even(&plan)).await.into_iter().flatten().count() as u64;
    if made < args.jobs || now_us() / 1000 > start_ms {
        return Err(format!("{made} of {} live jobs were created in time", args.jobs).into());
    }
    Ok((start_ms, plan.end_ms))
}

/// Carries an operation out, and tells how it goes on.
async fn changed(client: &Client, action: BulkAction) -> Result<Span, Box<dyn Error>> {
    let filter = BulkFilter { labels: Some(CHANGED.to_owned()), ..BulkFilter::default() };
    let body = BulkBody { action, filter, tenant_id: Some("default".to_owned()), ..BulkBody::default() };
    let from_ms = now_us() / 1000;
    let accepted = client.bulk_create(body).await?;
    let id = accepted.bulk_id.ok_or("a bulk operation without an id")?;
    println!("bulk {action}: {} items, accepted after {} ms", accepted.matched, now_us() / 1000 - from_ms);
    let mut told = Instant::now();
    loop {
        let view = client.bulk_get(id).await?;
        let until_ms = now_us() / 1000;
        let ended = view.state.is_some_and(BulkState::is_final);
        if ended || told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            println!(
                "bulk {action}: {} done, {} unchanged, {} failed after {:.1} s",
                view.done,
                view.unchanged,
                view.failed,
                (until_ms - from_ms) as f64 / 1_000.0
            );
        }
        if ended {
            return Ok(Span { view, from_ms, until_ms });
        }
        sleep(LOOK).await;
    }
}

fn table(report: &Report) -> String {
    let row = |name: &str, p: &Percentiles| {
        format!("{name:<18} {:>9.2} {:>9.2} {:>9.2}   ms over {} runs", p.p50_ms, p.p99_ms, p.max_ms, p.count)
    };
    let head = format!("{:<18} {:>9} {:>9} {:>9}", "live lateness", "p50", "p99", "max");
    let operations = report.operations.iter().map(|m| {
        format!(
            "{}; p99 {:.2} times; {} items in {:.1} s, {:.0}/s",
            row(&format!("beside {}", m.action), &m.live),
            m.ratio,
            m.done,
            m.seconds,
            m.items_per_sec
        )
    });
    let lines = [head, row("alone", &report.alone)].into_iter().chain(operations);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(p99_ms: f64) -> Percentiles {
        Percentiles { count: 9, p99_ms, ..Percentiles::default() }
    }

    #[test]
    fn an_operation_is_measured_against_the_live_load_alone() {
        let view = BulkView { action: BulkAction::Pause, matched: 600, done: 600, ..BulkView::default() };
        let measured = of_span(&Span { view, from_ms: 1_000, until_ms: 3_000 }, of(12.0), &of(8.0));
        assert_eq!((measured.seconds, measured.items_per_sec, measured.ratio), (2.0, 300.0, 1.5));
        let report = Report { rate_asked: 100.0, alone: of(8.0), operations: vec![measured] };
        let told = table(&report);
        assert!(told.contains("p99 1.50 times; 600 items in 2.0 s, 300/s"), "{told}");
    }
}
