//! `executor`: an executor process whose bodies do nothing but write down that they started and ended.
//!
//! Params of a job may hold `bodyMs`, how long its body takes; without it the body takes `--body-ms`.

use crate::{
    lines::{ExecutorEvent, ExecutorLine, now_us},
    random::mix,
    record::Record,
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{payload::Payload, record::AttemptState};
use clap::Args;
use serde::Deserialize;
use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};
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
    /// File to append starts and ends to.
    #[arg(long)]
    pub log: PathBuf,
    /// Name shown to people.
    #[arg(long)]
    pub id: Option<String>,
    /// How long a body takes whose job does not say, milliseconds.
    #[arg(long, default_value_t = 0)]
    pub body_ms: u64,
    /// Attempts that fail, of 100. Which ones is given by run and attempt.
    #[arg(long, default_value_t = 0)]
    pub fail_percent: u32,
    /// Lines are gathered so long, milliseconds; 0 = each is written at once.
    #[arg(long, default_value_t = 5)]
    pub flush_ms: u64,
    /// Threads that run bodies.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// End when the process that started this one ends.
    #[arg(long)]
    pub with_parent: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    body_ms: Option<u64>,
}

/// Writes an END when it goes, whatever happened to the body.
struct Running {
    record: Arc<Record>,
    line: ExecutorLine,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.line.t_us = now_us();
        self.record.body(&self.line);
    }
}

fn begin(record: &Arc<Record>, ctx: &Context) -> Running {
    let a = ctx.assignment();
    let start = ExecutorLine {
        event: ExecutorEvent::Start,
        t_us: now_us(),
        run: a.run.0,
        job: a.job.0,
        token: a.token.0,
        attempt: a.attempt,
        generation: a.generation,
        epoch: a.epoch.0,
        shard: a.shard.0,
        logical: a.logical_time.map(|l| l.0),
        outcome: None,
    };
    record.body(&start);
    let line = ExecutorLine { event: ExecutorEvent::End, outcome: Some(AttemptState::Canceled), ..start };
    Running { record: Arc::clone(record), line }
}

async fn body(
    record: Arc<Record>,
    ctx: Context,
    params: Payload,
    default_ms: u64,
    fail_percent: u32,
) -> Result<Option<Payload>, JobError> {
    let mut running = begin(&record, &ctx);
    let body_ms = if params.is_empty() { None } else { serde_json::from_str::<Params>(&params.0)?.body_ms };
    let body_ms = body_ms.unwrap_or(default_ms);
    if body_ms > 0 {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(body_ms)) => {}
            _ = ctx.canceled() => return Err(JobError::new("CANCELED", "the body stopped")),
        }
    }
    let fails = mix(running.line.run ^ u64::from(running.line.attempt) << 48) % 100 < u64::from(fail_percent);
    running.line.outcome = Some(if fails { AttemptState::Failed } else { AttemptState::Success });
    if fails { Err(JobError::message("it was its turn to fail")) } else { Ok(None) }
}

/// Runs until it is asked to end.
pub async fn run(args: ExecutorArgs) -> Result<(), Box<dyn Error>> {
    let record = Arc::new(Record::open(&args.log, Duration::from_millis(args.flush_ms))?);
    record.line(&ExecutorLine::up());
    if args.with_parent {
        end_with_parent()?;
    }
    let (bodies, default_ms, fail_percent) = (Arc::clone(&record), args.body_ms, args.fail_percent);
    let mut builder = Executor::builder(&args.rpc, &args.token)
        .pool(&args.pool)
        .slots(args.slots)
        .any_handler(move |ctx, params| body(Arc::clone(&bodies), ctx, params, default_ms, fail_percent));
    if let Some(id) = &args.id {
        builder = builder.id(id);
    }
    let handle = builder.build()?.start();
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    handle.drain(DRAIN).await;
    Arc::into_inner(record).map_or(Ok(()), Record::close)?;
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
