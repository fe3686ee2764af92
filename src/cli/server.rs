//! `campanile server`: a node by its configuration.

use super::{
    failure::Failure,
    logging, output,
    own_executors::{Channels, drained, over_own_tls},
    private, traces,
};
use crate::{
    config::{Config, LogFormat},
    node::{self, Node, NodeOptions, node_store::NodeStoreOptions},
    zones,
};
use campanile_actions::{executor, executor::Traced, http_action::Outbound};
use campanile_actors::measure;
use campanile_security::{
    auth::{Authenticator, Caller, Role, new_token},
    secrets::KeyRing,
    tls::ServingCertificate,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{
    future::Future,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Old samples of the metrics' summaries are dropped this often.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);
/// How often the parent is looked for.
const PARENT: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(super) struct Args {
    /// Configuration file; `campanile config default` prints one with every setting
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// [node] data_dir
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// [http] listen
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// [rpc] listen
    #[arg(long, value_name = "ADDR")]
    rpc: Option<SocketAddr>,
    /// [auth] token_file
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// [secrets] key_file
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// [log] format
    #[arg(long, value_enum, value_name = "FORM")]
    log_format: Option<LogFormat>,
    /// [traces] endpoint
    #[arg(long, value_name = "URL")]
    traces: Option<String>,
    /// Stop when this process is not the parent any more: for programs that start a node
    #[arg(long, value_name = "PID", hide = true)]
    with_parent: Option<i32>,
}

const NO_TOKEN_FILE: &str = "\
no token file is configured, so nobody could call this node. Make a credential and name its file:
  campanile token new --name me --role operator --append tokens
  campanile server --token-file tokens        (or [auth] token_file in the configuration)
To try things on this machine without any of that: campanile dev";

/// Credential of the node's own executor. With a blank, so that no line of a token file can have it.
const OWN_EXECUTOR: &str = "own executor";

pub(super) fn run(args: Args) -> Result<(), Failure> {
    private::keep_memory_private();
    let with_parent = args.with_parent;
    let config = configured(args)?;
    if config.auth.token_file.is_empty() {
        return Err(Failure::usage(NO_TOKEN_FILE));
    }
    if config.cql().is_some() && !config.cluster.is_on() {
        // Else it would run on its own directory, and nobody would know.
        return Err(Failure::usage(
            "cql.contact_points needs cluster.name: a node without it is alone on its own directory",
        ));
    }
    let origins = config.http.origins().map_err(Failure::usage)?;
    let outbound = Outbound::configured(&config.executor.http_allow, &config.executor.http_ca_file);
    let outbound = outbound.map_err(|why| Failure::usage(format!("[executor] http_allow, http_ca_file: {why}")))?;
    logging::start(&config.log)?;
    zones::use_directory(&config.node.tzdb_dir).map_err(Failure::usage)?;
    let token_file = Path::new(&config.auth.token_file);
    let mut authenticator = Authenticator::from_file(token_file).map_err(|error| Failure::usage(error.to_string()))?;
    authenticator = authenticator.limited(config.auth.calls_per_sec);
    let own_executor = match config.executor.slots {
        0 => None,
        slots => {
            let token = new_token().map_err(Failure::here)?;
            let pools = vec![config.executor.pool.clone()];
            let caller = Caller { name: OWN_EXECUTOR.to_owned(), role: Role::Executor, tenant: None, pools };
            authenticator = authenticator.and(&token, caller);
            Some((token, config.executor.pool.clone(), slots))
        }
    };
    let channels = Channels::configured(&config.channels, &[])?;
    if let Some(channels) = &channels {
        let (token, caller) = channels.credential();
        authenticator = authenticator.and(token, caller);
    }
    let grace = Duration::from_secs(config.executor.stop_grace_sec);
    let metrics = record_metrics()?;
    let tls = config.tls.ports().map_err(|why| Failure::usage(format!("[tls] {why}")))?;
    let listens =
        [("http.listen", config.http.listen, tls.http.is_some()), ("rpc.listen", config.rpc.listen, tls.rpc.is_some())];
    for (setting, address, secure) in listens {
        if !address.ip().is_loopback() && !secure {
            tracing::warn!(%address, "{setting} is reachable from other machines, and tokens travel in clear: set [tls], or put TLS in front");
        }
    }
    let secrets = match config.secrets.key_file.as_str() {
        "" => KeyRing::default(),
        file => KeyRing::from_file(Path::new(file)).map_err(Failure::usage)?,
    };
    let tracer = traces::tracer(&config.traces, "node", &config.node.name)?;
    let options = |store| NodeOptions {
        name: config.node.name.clone(),
        store,
        http: config.http.listen,
        rpc: config.rpc.listen,
        tls: tls.clone(),
        authenticator,
        secrets: Arc::new(secrets),
        open_to_loopback: None,
        open_metrics: config.http.open_metrics,
        origins: origins.clone(),
        files: config.files(),
        metrics: Some(metrics.clone()),
        retention: config.retention(),
        linger_us: if config.cluster.is_on() { config.cluster.linger_us } else { config.journal.linger_us },
        tracer: tracer.clone(),
    };
    on_threads(config.node.threads, async {
        let store = if config.cluster.is_on() {
            NodeStoreOptions::Clustered(Box::new(node::join(&config).await.map_err(Failure::here)?))
        } else {
            config.store().into()
        };
        let node = Node::start(options(store)).await.map_err(Failure::here)?;
        tokio::spawn(keep_metrics(metrics.clone()));
        if let Some(certificate) = tls.certificate() {
            tokio::spawn(renew_when_told(certificate.clone(), hangups()?));
        }
        let stopped = told_to_stop()?;
        output::text(&format!("http={}\nrpc={}\n", node.http_addr(), node.rpc_addr()));
        let own = match own_executor {
            None => None,
            Some((token, pool, slots)) => {
                // Other nodes do not know its token.
                let builder = executor::builder(&node.rpc_addr().to_string(), &token, &pool, slots, outbound)
                    .follow(false)
                    .traced(&tracer)
                    .grace(grace);
                let built = over_own_tls(builder, &tls)?.id(format!("{}-own", config.node.name)).build();
                Some(built.map_err(|error| Failure::here(error.to_string()))?.start())
            }
        };
        let channels = channels.map(|channels| channels.start(&node, &config.node.name, &tls, &tracer)).transpose()?;
        tokio::select! {
            () = stopped => {}
            () = parent_gone(with_parent) => {}
        }
        drained([own, channels]).await;
        node.stop().await;
        traces::flush(tracer.clone()).await;
        Ok(())
    })
}

/// SIGHUP, which ends a program that does not ask for it.
fn hangups() -> Result<Signal, Failure> {
    signal(SignalKind::hangup()).map_err(|error| Failure::here(format!("signals: {error}")))
}

async fn renew_when_told(certificate: Arc<ServingCertificate>, mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        certificate.look_now();
    }
}

/// Until the process that is named is not the parent any more; without one, never.
pub(super) async fn parent_gone(parent: Option<i32>) {
    let Some(parent) = parent else { return std::future::pending().await };
    while rustix::process::getppid().is_some_and(|now| now.as_raw_pid() == parent) {
        tokio::time::sleep(PARENT).await;
    }
}

fn configured(args: Args) -> Result<Config, Failure> {
    let refused = |errors: crate::config::ConfigErrors| Failure::usage(errors.to_string());
    let mut config = Config::load(args.config.as_deref(), environment()).map_err(refused)?;
    let lay_over = |setting: &mut String, flag: Option<String>| {
        if let Some(flag) = flag {
            *setting = flag;
        }
    };
    lay_over(&mut config.node.data_dir, args.data);
    lay_over(&mut config.auth.token_file, args.token_file);
    lay_over(&mut config.secrets.key_file, args.key_file);
    lay_over(&mut config.traces.endpoint, args.traces);
    config.log.format = args.log_format.unwrap_or(config.log.format);
    config.http.listen = args.http.unwrap_or(config.http.listen);
    config.rpc.listen = args.rpc.unwrap_or(config.rpc.listen);
    config.check().map_err(refused)?;
    Ok(config)
}

/// The environment, without variables that are not text.
pub(super) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Metrics are recorded from here on.
pub(super) fn record_metrics() -> Result<PrometheusHandle, Failure> {
    let failed = |error| Failure::here(format!("metrics: {error}"));
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_ms".to_owned()), &measure::MS_BUCKETS)
        .and_then(|b| b.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &measure::SECOND_BUCKETS))
        .and_then(|b| {
            // A whole name goes before an ending.
            let runs = Matcher::Full("campanile_run_duration_ms".to_owned());
            b.set_buckets_for_metric(runs, &measure::DURATION_BUCKETS)
        })
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(failed)?;
    measure::describe();
    crate::node::measured::at_zero();
    Ok(handle)
}

/// Runs a node or an executor to its end.
pub(super) fn on_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    on_threads(0, work)
}

/// [`on_runtime`] with so many threads; 0: one for each processor.
pub(super) fn on_threads(threads: u16, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if threads > 0 {
        runtime.worker_threads(threads.into());
    }
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::here(format!("no threads to run on: {error}")))?;
    let done = runtime.block_on(async {
        refuse_large_files_by_error()?;
        work.await
    });
    // What does not end by itself must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

/// A write over the limit of file sizes gets an error, like one to a full disk, instead of the signal that ends the process.
fn refuse_large_files_by_error() -> Result<(), Failure> {
    // Once asked for it stays handled; programs that are started get the default back.
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    signal(kind).map(drop).map_err(|error| Failure::here(format!("signals: {error}")))
}

/// Keeps the summaries of the metrics small, for ever.
pub(super) async fn keep_metrics(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(METRICS_UPKEEP).await;
        metrics.run_upkeep();
    }
}

/// SIGINT or SIGTERM, from this call on: made before a node says that it is ready, so that whoever hears that can stop it. A second
/// one ends the process at once.
pub(super) fn told_to_stop() -> Result<impl Future<Output = ()>, Failure> {
    let failed = |error| Failure::here(format!("signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping; a second signal ends the process at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(130);
        });
    })
}
