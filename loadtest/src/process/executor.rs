//! `executor`: an executor process whose bodies do nothing but write down that they started and ended.
//!
//! Params of a job may hold `bodyMs`, how long its body takes (without it `--body-ms`), `failPercent`, how many of its attempts fail
//! (without it `--fail-percent`), `permanent`, whether such a failure says that no further attempt would succeed, `answers`, whether a body
//! that succeeds hands in a result, an object with its `run` and `token`, and `rows`: then its result has only `rows`, a number below it.

use crate::{
    load::stats::{Body, Stats},
    random::mix,
    run_dir::{
        lines::{ExecutorEvent, ExecutorLine, now_us},
        record::Record,
    },
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{payload::Payload, record::AttemptState};
use clap::Args;
use serde::Deserialize;
use std::{
    error::Error,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// Time for bodies to finish when the process is asked to end.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Args, Clone, Debug)]
pub struct ExecutorArgs {
    /// Address of the node's RPC, host:port.
    #[arg(long)]
    pub rpc: String,
    /// Token of role EXECUTOR.
    #[arg(long)]
    pub token: String,
    #[arg(long, default_value = "default")]
    pub pool: String,
    /// Bodies at once.
    #[arg(long, default_value_t = 256)]
    pub slots: u32,
    /// File to append starts and ends to, for the checker.
    #[arg(long)]
    pub log: Option<PathBuf>,
    /// File to append the counts of each second to.
    #[arg(long)]
    pub stats: Option<PathBuf>,
    /// Name shown to people.
    #[arg(long)]
    pub id: Option<String>,
    /// How long a body takes whose job does not say, milliseconds.
    #[arg(long, default_value_t = 0)]
    pub body_ms: u64,
    /// Attempts that fail, of 100. Which ones is given by run, generation and attempt.
    #[arg(long, default_value_t = 0)]
    pub fail_percent: u32,
    /// Lines are gathered so long, milliseconds; 0 = each is written at once.
    #[arg(long, default_value_t = 5)]
    pub flush_ms: u64,
    /// Threads that run bodies.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// End itself, as by kill -9, in the body of this number, before what it is for: its start is written down, its end is not.
    #[arg(long)]
    pub ends_before_effect: Option<u32>,
    /// The same after it: its end is written down, and nobody is told of its result.
    #[arg(long)]
    pub ends_after_effect: Option<u32>,
    /// End when the process that started this one ends.
    #[arg(long)]
    pub with_parent: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    body_ms: Option<u64>,
    fail_percent: Option<u32>,
    #[serde(default)]
    permanent: bool,
    #[serde(default)]
    answers: bool,
    rows: Option<u64>,
    /// When a run without a logical time was due, microseconds since 1970 UTC.
    due_us: Option<i64>,
}

/// Where bodies are written down.
struct BodyLog {
    record: Option<Record>,
    stats: Option<Stats>,
    /// Bodies begun.
    begun: AtomicU32,
    /// See [`ExecutorArgs`].
    ends_before_effect: Option<u32>,
    ends_after_effect: Option<u32>,
}

/// The counts are written so often.
const TICK: Duration = Duration::from_millis(100);

/// Writes an END when it goes, whatever happened to the body.
struct Running {
    body_log: Arc<BodyLog>,
    line: ExecutorLine,
    counted: Option<Body>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.line.t_us = now_us();
        if let Some(record) = &self.body_log.record {
            record.body(&self.line);
        }
        if let (Some(stats), Some(body)) = (&self.body_log.stats, self.counted.take()) {
            let outcome = self.line.outcome.unwrap_or(AttemptState::Canceled);
            stats.end(body, self.line.run, self.line.token, outcome, self.line.t_us);
        }
    }
}

fn begin(body_log: &Arc<BodyLog>, ctx: &Context, params: &Payload, due_us: Option<i64>, now_us: i64) -> Running {
    let a = ctx.assignment();
    let start = ExecutorLine {
        event: ExecutorEvent::Start,
        t_us: now_us,
        run: a.run.0,
        job: a.job.0,
        token: a.token.0,
        attempt: a.attempt,
        generation: a.generation,
        epoch: a.epoch.0,
        shard: a.shard.0,
        logical: a.logical_time.map(|l| l.0),
        params: (!params.is_empty()).then(|| params.clone()),
        secrets: ctx.secrets().clone(),
        ..ExecutorLine::up()
    };
    if let Some(record) = &body_log.record {
        record.body(&start);
    }
    // Repeated attempts are late on purpose.
    let due_us = a.logical_time.map(|at| at.0 * 1000).or(due_us).filter(|_| a.attempt == 1 && a.generation == 1);
    let group = a.job_name.split('/').next().unwrap_or_default();
    let counted = body_log.stats.as_ref().map(|stats| stats.start(group, due_us, now_us));
    let line = ExecutorLine {
        event: ExecutorEvent::End,
        outcome: Some(AttemptState::Canceled),
        params: None,
        secrets: Default::default(),
        ..start
    };
    Running { body_log: Arc::clone(body_log), line, counted }
}

async fn body(
    body_log: Arc<BodyLog>,
    ctx: Context,
    params: Payload,
    default_ms: u64,
    fail_percent: u32,
) -> Result<Option<Payload>, JobError> {
    // Received before its params are read.
    let now_us = now_us();
    let got = params;
    let params = if got.is_empty() { Ok(Params::default()) } else { serde_json::from_str(&got.0) };
    let due_us = params.as_ref().ok().and_then(|p: &Params| p.due_us);
    let number = body_log.begun.fetch_add(1, Ordering::Relaxed) + 1;
    let mut running = begin(&body_log, &ctx, &got, due_us, now_us);
    if body_log.ends_before_effect == Some(number) {
        std::process::abort();
    }
    let params = params?;
    let body_ms = params.body_ms.unwrap_or(default_ms);
    let fail_percent = params.fail_percent.unwrap_or(fail_percent);
    if body_ms > 0 {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(body_ms)) => {}
            _ = ctx.canceled() => return Err(JobError::new("CANCELED", "the body stopped")),
        }
    }
    let again = u64::from(running.line.generation.saturating_sub(1)) << 40;
    let fails = mix(running.line.run ^ u64::from(running.line.attempt) << 48 ^ again) % 100 < u64::from(fail_percent);
    running.line.outcome = Some(if fails { AttemptState::Failed } else { AttemptState::Success });
    let (run, token) = (running.line.run, running.line.token);
    let rows = params.rows.map(|below| mix(run ^ token << 32).checked_rem(below).unwrap_or(0));
    let result = match rows {
        _ if fails => None,
        Some(rows) => Some(Payload(format!("{{\"rows\":{rows}}}"))),
        None => params.answers.then(|| Payload(format!("{{\"run\":\"{run}\",\"token\":\"{token}\"}}"))),
    };
    running.line.result.clone_from(&result);
    let error = fails.then(|| JobError { permanent: params.permanent, ..JobError::message("it was its turn to fail") });
    running.line.error = error.as_ref().map(|error| error.code.clone());
    running.line.permanent = fails && params.permanent;
    if body_log.ends_after_effect == Some(number) {
        drop(running);
        std::process::abort();
    }
    error.map_or(Ok(result), Err)
}

/// Runs until it is asked to end.
pub async fn run(args: ExecutorArgs) -> Result<(), Box<dyn Error>> {
    let record = args.log.as_ref().map(|path| Record::open(path, Duration::from_millis(args.flush_ms))).transpose()?;
    if let Some(record) = &record {
        record.line(&ExecutorLine::up());
    }
    let stats = args.stats.as_ref().map(|path| Stats::open(path)).transpose()?;
    let (ends_before_effect, ends_after_effect) = (args.ends_before_effect, args.ends_after_effect);
    let begun = AtomicU32::new(0);
    let body_log = Arc::new(BodyLog { record, stats, begun, ends_before_effect, ends_after_effect });
    if args.with_parent {
        end_with_parent()?;
    }
    let (bodies, durable) = (Arc::clone(&body_log), Arc::clone(&body_log));
    let (default_ms, fail_percent) = (args.body_ms, args.fail_percent);
    let mut builder = Executor::builder(&args.rpc, &args.token)
        .pool(&args.pool)
        .slots(args.slots)
        .on_durable(move |run, token| {
            if let Some(stats) = &durable.stats {
                stats.durable(run.0, token.0, now_us());
            }
        })
        .any_handler(move |ctx, params| body(Arc::clone(&bodies), ctx, params, default_ms, fail_percent));
    if let Some(id) = &args.id {
        builder = builder.id(id);
    }
    let handle = builder.build()?.start();
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = interrupt.recv() => break,
            _ = tick.tick() => if let Some(stats) = &body_log.stats { stats.tick(now_us()) },
        }
    }
    handle.drain(DRAIN).await;
    if let Some(stats) = &body_log.stats {
        stats.close()?;
    }
    // A body that did not end in time still holds them; what is known is written within the flush time.
    if let Some(BodyLog { record: Some(record), .. }) = Arc::into_inner(body_log) {
        record.close()?;
    }
    Ok(())
}

/// Nobody is left to stop it once its parent is gone.
fn end_with_parent() -> std::io::Result<()> {
    let parent = rustix::process::getppid();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        while rustix::process::getppid() == parent {
            std::thread::sleep(Duration::from_millis(200));
        }
        std::process::exit(0);
    })?;
    Ok(())
}
