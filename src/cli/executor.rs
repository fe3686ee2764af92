//! `campanile executor`: takes COMMAND and HTTP attempts of a pool from one or several nodes.

use super::{failure::Failure, logging, output, private, remote::Connection, server, traces};
use crate::config::{LogFormat, LogSection, TracesSection};
use campanile_actions::{executor, executor::Traced, http_action::Outbound};
use campanile_client::{ExecutorHandle, Tls};
use campanile_schema::{
    error::ErrorCode,
    limits::{EXECUTOR_SLOTS_MAX, STOP_GRACE_SEC},
};
use std::time::Duration;

#[derive(clap::Args)]
pub(super) struct Args {
    /// RPC address of a node, tls://HOST:PORT for TLS (with --tls-ca all are); several with commas between. A cluster's node
    /// tells it of the others
    #[arg(long, value_name = "ADDR[,ADDR]", default_value = "127.0.0.1:7701")]
    rpc: String,
    /// The pool whose runs it takes
    #[arg(long, default_value = "default")]
    pool: String,
    /// Attempts that it runs at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(EXECUTOR_SLOTS_MAX)))]
    slots: u32,
    /// A stable name, shown to people [default: host and process id]
    #[arg(long)]
    id: Option<String>,
    /// Shown with the executor
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::job_flags::pair)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    http: HttpFlags,
    /// What runs gets this long to finish when the executor is told to shut down, seconds. Then it is told to stop
    #[arg(long, value_name = "SEC", default_value_t = 30)]
    drain_sec: u64,
    /// What is told to stop (timeout, cancel, shutdown) gets this long to end by itself, seconds. Then it is killed
    #[arg(long, value_name = "SEC", default_value_t = STOP_GRACE_SEC)]
    stop_grace_sec: u64,
    /// Logs: error, warn, info, debug, trace, or by module
    #[arg(long, default_value = "info")]
    log: String,
    /// Form of the log
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    log_format: LogFormat,
    /// Send spans of what it runs to this collector (OTLP over HTTP): http://127.0.0.1:4318. The nodes say which runs have a trace
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    traces: String,
    /// File with headers for the collector, one 'name: value' in each line
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    traces_headers: String,
    /// Certificates of CAs (PEM) that a collector with https:// may be of, instead of the machine's own
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    traces_ca: String,
}

/// How requests of HTTP actions leave the machine.
#[derive(clap::Args, Default)]
pub(super) struct HttpFlags {
    /// Networks, addresses and hosts (10.0.0.0/8, 127.0.0.1, hooks.internal, *.internal) that HTTP actions may call besides
    /// public addresses; several with commas between, or again
    #[arg(long = "http-allow", value_name = "NET", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Certificates (PEM) that HTTP actions trust besides the machine's own
    #[arg(long = "http-ca", value_name = "FILE", default_value = "", hide_default_value = true)]
    pub ca: String,
}

impl HttpFlags {
    pub fn outbound(&self) -> Result<Outbound, Failure> {
        Outbound::configured(&self.allow, &self.ca).map_err(Failure::usage)
    }
}

pub(super) fn run(args: Args, connection: &Connection) -> Result<(), Failure> {
    private::keep_memory_private();
    let token = connection.credential()?.ok_or_else(|| {
        Failure::new(
            4,
            "an executor needs a token: --token-file, --token or CAMPANILE_API_TOKEN; make one on the node with\n  \
             campanile token new --name NAME --role executor --pools POOL",
        )
    })?;
    let outbound = args.http.outbound()?;
    let tls = connection.tls_ca.as_ref().map(Tls::ca_file).transpose();
    let tls = tls.map_err(|why| Failure::usage(format!("--tls-ca: {why}")))?;
    logging::start(&LogSection { format: args.log_format, level: args.log.clone() })?;
    let traces = TracesSection {
        endpoint: args.traces.clone(),
        headers_file: args.traces_headers.clone(),
        ca_file: args.traces_ca.clone(),
        ..TracesSection::default()
    };
    let tracer = traces::tracer(&traces, "executor", args.id.as_deref().unwrap_or("executor"))?;
    server::on_runtime(async move {
        let mut builder = executor::builder(&args.rpc, &token, &args.pool, args.slots, outbound);
        builder = builder.grace(Duration::from_secs(args.stop_grace_sec)).traced(&tracer);
        if let Some(tls) = tls {
            builder = builder.tls(tls);
        }
        if let Some(id) = args.id {
            builder = builder.id(id);
        }
        for (key, value) in args.labels {
            builder = builder.label(key, value);
        }
        let handle = builder.build().map_err(|error| Failure::usage(error.to_string()))?.start();
        // One listener for all of its life: a signal between two would be lost.
        let mut stopped = std::pin::pin!(server::told_to_stop()?);
        tokio::select! {
            registered = registered(&handle) => registered?,
            () = &mut stopped => {
                handle.drain(Duration::ZERO).await;
                return Ok(());
            }
        }
        output::text(&format!("ready: pool {}, {} slots, node {}\n", args.pool, args.slots, args.rpc));
        tokio::select! {
            () = stopped => {}
            // It holds until the executor has ended by itself.
            _ = handle.wait_until(|_| false) => return Err(ended(&handle.status())),
        }
        let left = handle.drain(Duration::from_secs(args.drain_sec)).await;
        traces::flush(tracer).await;
        if left.unacknowledged > 0 {
            return Err(Failure::unreachable(format!("{} results were not handed in", left.unacknowledged)));
        }
        Ok(())
    })
}

/// Until a node has registered it. A node that is not there yet is waited for; one that refuses the token is not.
async fn registered(handle: &ExecutorHandle) -> Result<(), Failure> {
    let mut shown: Option<String> = None;
    loop {
        let news = handle.wait_until(|status| status.registered > 0 || status.last_error != shown).await;
        let status = news.ok_or_else(|| ended(&handle.status()))?;
        if status.registered > 0 {
            return Ok(());
        }
        if let Some(error) = &status.last_error {
            if [ErrorCode::Unauthenticated, ErrorCode::Forbidden].iter().any(|code| error.contains(code.as_str())) {
                return Err(Failure::new(ErrorCode::Unauthenticated.exit_code(), error.clone()));
            }
            eprintln!("no node yet, trying again: {error}");
        }
        shown = status.last_error;
    }
}

fn ended(status: &campanile_client::executor::Status) -> Failure {
    Failure::unreachable(status.last_error.clone().unwrap_or_else(|| "the executor ended".to_owned()))
}
