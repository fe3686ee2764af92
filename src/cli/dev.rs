//! `campanile dev`: a node with an executor and demo jobs on this machine, open to programs of this machine.
//!
//! Its address and token are in `dev.json` in the data directory, for its owner only; the other commands find the one
//! in the default directory by themselves.

use super::{
    demo,
    executor::HttpFlags,
    failure::Failure,
    fires, logging, output,
    own_executors::{Channels, drained, over_own_tls},
    private,
    remote::{DevFile, default_dev_dir},
    server::{environment, keep_metrics, on_threads, parent_gone, record_metrics, told_to_stop},
    traces,
};
use crate::{
    config::{Config, LogFormat},
    node::{Node, NodeOptions},
    zones,
};
use campanile_actions::{executor, executor::Traced, http_action::Outbound};
use campanile_ports::spans::Tracer;
use campanile_schema::trace;
use campanile_security::{
    auth::{Authenticator, Caller, Role, new_token},
    secrets::{KeyRing, new_key_line},
    tls::Ports,
};
use campanile_serve::ops::Operations;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Attempts that the node's own executor runs at once.
const SLOTS: u32 = 8;
const POOL: &str = "default";
/// Name of the node and of its executor.
const DEV: &str = "dev";

#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory of everything it stores [default: campanile/dev in the user's data directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of the HTTP API
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    http: SocketAddr,
    /// Address for executors and RPC clients
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7701")]
    rpc: SocketAddr,
    /// No demo jobs
    #[arg(long)]
    no_demo: bool,
    /// No executor in the node; start one with `campanile executor`
    #[arg(long)]
    no_executor: bool,
    #[command(flatten)]
    outbound: HttpFlags,
    /// Form of the log
    #[arg(long, value_enum, value_name = "FORM")]
    log_format: Option<LogFormat>,
    /// Send a trace of every run and of every change to this collector (OTLP over HTTP): http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    traces: Option<String>,
    /// End when this process, which started the node, is gone; for programs that start nodes
    #[arg(long, value_name = "PID", hide = true)]
    with_parent: Option<i32>,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    private::keep_memory_private();
    for address in [args.http, args.rpc] {
        if !address.ip().is_loopback() {
            let message = format!(
                "{address}: dev lets programs of this machine in without a token, so it only listens on loopback; for more use `campanile server`"
            );
            return Err(Failure::usage(message));
        }
    }
    let mut config = Config::load(None, environment()).map_err(|errors| Failure::usage(errors.to_string()))?;
    if std::env::var_os("CAMPANILE_LOG__LEVEL").is_none() {
        // The terminal is for the fires.
        "warn".clone_into(&mut config.log.level);
    }
    config.log.format = args.log_format.unwrap_or(config.log.format);
    if let Some(endpoint) = args.traces.clone() {
        config.traces.endpoint = endpoint;
        config.traces.sample_per_million = trace::ALL;
        config.check().map_err(|errors| Failure::usage(errors.to_string()))?;
    }
    let origins = config.http.origins().map_err(Failure::usage)?;
    let outbound = args.outbound.outbound()?;
    logging::start(&config.log)?;
    zones::use_directory(&config.node.tzdb_dir).map_err(Failure::usage)?;
    let dir = args.data.clone().unwrap_or_else(default_dev_dir);
    make_private(&dir)?;
    let token = match DevFile::read(&dir) {
        Some(file) => file.token,
        None => new_token().map_err(Failure::here)?,
    };
    let secrets = key_ring(&dir)?;
    let metrics = record_metrics()?;
    let tls = config.tls.ports().map_err(|why| Failure::usage(format!("[tls] {why}")))?;
    let mut store = config.store();
    store.dir = dir.join("node");
    let executor_token = new_token().map_err(Failure::here)?;
    let channels = Channels::configured(&config.channels, &args.outbound.allow)?;
    let tracer = traces::tracer(&config.traces, "node", DEV)?;
    let executor =
        Caller { name: "dev-executor".to_owned(), role: Role::Executor, tenant: None, pools: vec![POOL.to_owned()] };
    let known = [(&*token, developer()), (&*executor_token, executor)];
    let authenticator =
        Authenticator::fixed(known.into_iter().chain(channels.iter().map(Channels::credential)).collect());
    let options = NodeOptions {
        name: DEV.to_owned(),
        store: store.into(),
        http: args.http,
        rpc: args.rpc,
        tls: tls.clone(),
        authenticator,
        secrets: Arc::new(secrets),
        open_to_loopback: Some(developer()),
        open_metrics: true,
        origins,
        files: config.files(),
        metrics: Some(metrics.clone()),
        retention: config.retention(),
        linger_us: config.journal.linger_us,
        tracer: tracer.clone(),
    };
    on_threads(config.node.threads, async move {
        let node = Node::start(options).await.map_err(Failure::here)?;
        tokio::spawn(keep_metrics(metrics));
        let scheme = if tls.http.is_some() { "https" } else { "http" };
        let server = format!("{scheme}://{}", node.http_addr());
        let file = DevFile { server, rpc: node.rpc_addr().to_string(), token };
        file.write(&dir).map_err(|error| Failure::here(format!("{}: {error}", dir.display())))?;
        // The first lines are for programs: tests, editors, scripts.
        output::text(&format!("http={}\nrpc={}\ntoken={}\n", node.http_addr(), node.rpc_addr(), file.token));
        let own =
            if args.no_executor { None } else { Some(own_executor(&node, &executor_token, outbound, &tls, &tracer)?) };
        let channels = channels.map(|channels| channels.start(&node, DEV, &tls, &tracer)).transpose()?;
        let served = serve(&node, &file, &args).await;
        drained([own, channels]).await;
        node.stop().await;
        traces::flush(tracer).await;
        DevFile::forget(&dir);
        served
    })
}

fn developer() -> Caller {
    Caller { name: "dev".to_owned(), role: Role::Operator, tenant: None, pools: Vec::new() }
}

fn own_executor(
    node: &Node,
    token: &str,
    outbound: Outbound,
    tls: &Ports,
    tracer: &Tracer,
) -> Result<campanile_client::ExecutorHandle, Failure> {
    let builder = executor::builder(&node.rpc_addr().to_string(), token, POOL, SLOTS, outbound).id(DEV).traced(tracer);
    Ok(over_own_tls(builder, tls)?.build().map_err(|error| Failure::here(error.to_string()))?.start())
}

/// Until it is told to stop.
async fn serve(node: &Node, file: &DevFile, args: &Args) -> Result<(), Failure> {
    let stopped = told_to_stop()?;
    let operations = Operations::new(node.scheduler().clone());
    let caller = developer();
    let mut text = format!("\nCampanile is ready. Console and API: {}/\n", file.server);
    if !args.no_demo {
        let jobs = demo::create(&operations, &caller).await?;
        text.push_str(&format!("Demo jobs: {jobs}\n"));
    }
    text.push_str(&what_next(args.no_demo, &server_flag(&file.server)));
    output::text(&text);
    tokio::select! {
        () = stopped => Ok(()),
        () = parent_gone(args.with_parent) => Ok(()),
        () = fires::show(&operations, &caller) => Ok(()),
    }
}

/// What to type in another terminal. `flag` goes before each command.
fn what_next(no_demo: bool, flag: &str) -> String {
    let second = if no_demo { "job create --name hello --every 10 --sh 'echo hello'" } else { "job runs demo/tick" };
    format!("In another terminal: campanile{flag} job list; campanile{flag} {second}\nStop with Ctrl-C.\n\n")
}

/// Names the node where a command without the flag would ask another one, as with `--data`.
fn server_flag(server: &str) -> String {
    let set = std::env::var("CAMPANILE_SERVER").ok().filter(|set| !set.is_empty());
    let asked = set.or_else(|| DevFile::read(&default_dev_dir()).map(|dev| dev.server));
    if asked.as_deref() == Some(server) { String::new() } else { format!(" --server {server}") }
}

/// The directory, for its owner only: it holds a token and a key.
fn make_private(dir: &Path) -> Result<(), Failure> {
    let made = campanile_ports::private::make_dir(dir);
    made.map_err(|error| Failure::here(format!("{}: cannot be made: {error}", dir.display())))
}

fn key_ring(dir: &Path) -> Result<KeyRing, Failure> {
    let path = dir.join("secrets.key");
    if !path.exists() {
        let line = new_key_line().map_err(Failure::here)?;
        super::credentials::write_private(&path, &format!("{line}\n"))?;
    }
    KeyRing::from_file(&path).map_err(Failure::here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_is_there_and_asks_this_node() {
        assert_eq!(
            what_next(false, ""),
            "In another terminal: campanile job list; campanile job runs demo/tick\nStop with Ctrl-C.\n\n"
        );
        let other = what_next(true, &server_flag("http://127.0.0.1:1"));
        assert!(other.contains("campanile --server http://127.0.0.1:1 job list"), "{other}");
        assert!(!other.contains("demo/"), "{other}");
    }
}
