//! The executor that runs COMMAND and HTTP actions: the SDK with a runner for each. `campanile executor`, `campanile dev` and servers with
//! `[executor] slots` use it.

use crate::{
    command::{self, AttemptEnv, CommandEnd, CommandReport, CommandSpec, Shim},
    http_action::{self, Outbound},
};
use campanile_client::{BodyEnded, Context, Executor, ExecutorBuilder, JobError, Report};
use campanile_ports::spans::{Span, SpanKind, Tracer, of_run};
use campanile_schema::{
    channel::CHANNEL_POOL,
    job::CommandLimits,
    limits::{self, COMMAND_DRAIN_MS},
    payload::Payload,
    record::AttemptState,
    trace::SpanOf,
};
use rustix::process::Signal;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

/// Chunks of output on their way to the node.
const LOG_CHUNKS: usize = 64;

/// An executor builder that runs commands and requests; the latter leave by `outbound`.
pub fn builder(address: &str, token: &str, pool: &str, slots: u32, outbound: Outbound) -> ExecutorBuilder {
    Executor::builder(address, token)
        .pool(pool)
        .slots(slots)
        .command_runner(|context| Box::pin(run_command(context)))
        .http_runner(move |context| {
            let outbound = outbound.clone();
            Box::pin(async move { http_action::run(&outbound, context).await })
        })
}

/// The executor of a node for channels, which leave by `outbound`.
pub fn channels(address: &str, token: &str, slots: u32, outbound: Outbound) -> ExecutorBuilder {
    Executor::builder(address, token).pool(CHANNEL_POOL).slots(slots).http_runner(move |context| {
        let outbound = outbound.clone();
        Box::pin(async move { http_action::run(&outbound, context).await })
    })
}

/// Records spans of bodies.
pub trait Traced {
    #[must_use]
    fn traced(self, tracer: &Tracer) -> Self;
}

impl Traced for ExecutorBuilder {
    fn traced(self, tracer: &Tracer) -> Self {
        if !tracer.is_on() {
            return self;
        }
        let tracer = tracer.clone();
        self.on_body_end(move |body| tracer.record(span_of(&body)))
    }
}

fn span_of(body: &BodyEnded<'_>) -> Span {
    let BodyEnded { attempt, begin, end, assignment, ended } = body;
    let us = |at: &SystemTime| {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    };
    let name = format!("body {}", assignment.job_name);
    let span = Span::child(*attempt, SpanOf::Body(assignment.run, assignment.token), name, us(begin), us(end))
        .of_kind(SpanKind::Server)
        .with("campanile.attempt", assignment.attempt)
        .with("campanile.attempt.state", ended.state.as_str());
    let is_good = ended.state == AttemptState::Success;
    let error = (!is_good).then(|| ended.error_message.clone().unwrap_or_else(|| ended.state.to_string()));
    of_run(span.failed(error), assignment.run, assignment.job.0, &assignment.tenant)
}

async fn run_command(context: Context) -> Report {
    let assignment = context.assignment().clone();
    let Some(spec) = CommandSpec::from_action(&assignment.action) else {
        return Report::failed(JobError::new("NO_HANDLER", "this runs commands only"));
    };
    let limits = spec.limits;
    let attempt = AttemptEnv {
        job_id: assignment.job.0,
        job_name: assignment.job_name.to_string(),
        run_id: assignment.run.0,
        attempt: assignment.attempt,
        token: assignment.token.0,
        logical_time: assignment.logical_time,
        source: assignment.source.to_string(),
        params_json: assignment.params.0.clone(),
        traceparent: assignment.traceparent.clone(),
        secrets: assignment.secrets.clone(),
    };
    let (stop, stopping) = watch::channel(false);
    let (log, mut chunks) = mpsc::channel::<Vec<u8>>(LOG_CHUNKS);
    let (tell_ended, command_ended) = oneshot::channel();
    let logging = async {
        while let Some(chunk) = chunks.recv().await {
            context.write_log(&chunk).await;
        }
    };
    // A log that no node takes must not hold the end of a command that has ended.
    let logging = async {
        let late = async {
            let _ = command_ended.await;
            tokio::time::sleep(Duration::from_millis(COMMAND_DRAIN_MS)).await;
        };
        tokio::select! { () = logging => {}, () = late => {} }
    };
    let canceling = async {
        context.canceled().await;
        let _ = stop.send(true);
        std::future::pending::<()>().await;
    };
    let shim = Shim { grace: context.stop_grace(), ..Shim::of_this_binary() };
    let running = async {
        let report = command::run_with(&shim, spec, attempt, stopping, log).await;
        let _ = tell_ended.send(());
        report
    };
    tokio::select! {
        (report, ()) = async { tokio::join!(running, logging) } => ended(&report, &limits),
        () = canceling => Report::failed(JobError::new("INTERNAL", "unreachable: canceling never ends")),
    }
}

fn ended(report: &CommandReport, limits: &CommandLimits) -> Report {
    if let Some((code, why)) = broken_limit(&report.end, limits) {
        return with_use(Report::failed(JobError::new(code, format!("{why}{}", tail(report)))), report);
    }
    let result = match &report.end {
        CommandEnd::Exited { code: 0 } => {
            Report::success(Some(Payload::from_value(&serde_json::json!({ "exitCode": 0 }))))
        }
        CommandEnd::Exited { code } => {
            Report::failed(JobError::new("EXIT_CODE", format!("exit code {code}{}", tail(report))))
        }
        CommandEnd::Signaled { signal } => {
            Report::failed(JobError::new("SIGNAL", format!("ended by signal {signal}{}", tail(report))))
        }
        CommandEnd::Stopped => Report::failed(JobError::new("STOPPED", "the command was stopped on request")),
        CommandEnd::FailedToStart { code, message } => Report::failed(JobError::new(*code, message.clone())),
    };
    with_use(result, report)
}

fn with_use(mut result: Report, report: &CommandReport) -> Report {
    result.cpu_ms = Some(report.cpu_ms);
    result.max_rss_kb = report.max_rss_kb;
    result
}

/// The limit that ended the command, where the system says so: by a signal to it, or to a program that a shell ran for it, which
/// the shell tells as 128 + signal. Memory, files and processes are refused to the program, and it says what it likes.
fn broken_limit(end: &CommandEnd, limits: &CommandLimits) -> Option<(&'static str, String)> {
    let signal = match end {
        CommandEnd::Signaled { signal } => *signal,
        CommandEnd::Exited { code } => code - 128,
        CommandEnd::Stopped | CommandEnd::FailedToStart { .. } => return None,
    };
    if signal == Signal::XCPU.as_raw() {
        let limit = limits.cpu_sec?;
        return Some(("CPU_LIMIT", format!("a process used up limits.cpuSec ({limit} s of CPU; SIGXCPU)")));
    }
    if signal == Signal::XFSZ.as_raw() {
        let limit = limits.file_size_mb?;
        return Some(("FILE_SIZE_LIMIT", format!("a file grew over limits.fileSizeMb ({limit} MiB; SIGXFSZ)")));
    }
    None
}

fn tail(report: &CommandReport) -> String {
    let text = report.last_output.trim();
    if text.is_empty() {
        return String::new();
    }
    let start = text.char_indices().rev().nth(limits::ERROR_MESSAGE_BYTES / 4).map_or(0, |(i, _)| i);
    format!(": {}", &text[start..])
}
