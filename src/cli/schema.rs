//! `campanile schema ...`: the tables of the CQL store that a cluster shares.

use super::{
    failure::{Failure, of_store},
    output::{self, Format},
    server::{environment, on_runtime},
};
use crate::config::Config;
use campanile_store::cql::{
    CqlOptions,
    schema::{self, Report},
};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Configuration file of a node: its [cql], [node] and [history] say what is made
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Print all statements as a script for a CQL shell; asks no server
    Print(Args),
    /// Make the keyspaces and tables, or bring them up to this release. Safe to repeat, and from several nodes at once
    Apply(Args),
    /// Say what is there and what is missing; changes nothing. Exit code 1: something is missing
    Check(Args),
}

pub(super) fn run(command: Command, format: Format) -> Result<(), Failure> {
    match command {
        Command::Print(args) => {
            let script = schema::print(&options(args.config)?).map_err(|e| of_store(&e))?;
            output::said(script.trim_end(), &json!({"script": script}))
        }
        Command::Apply(args) => {
            let options = options(args.config)?;
            if options.cluster.is_empty() {
                return Err(Failure::usage("the tables are a cluster's: set [cluster] name"));
            }
            on_runtime(async move {
                // Tells who waits for whom; a process that is started anew is another one.
                let who = format!("{} (process {})", options.node, std::process::id());
                let now_ms = jiff::Timestamp::now().as_millisecond();
                let report = schema::apply(&options, &who, now_ms).await.map_err(|e| of_store(&e))?;
                tell(&report, &options, format)
            })
        }
        Command::Check(args) => {
            let options = options(args.config)?;
            on_runtime(async move {
                let report = schema::check(&options).await.map_err(|e| of_store(&e))?;
                tell(&report, &options, format)?;
                if report.missing.is_empty() { Ok(()) } else { Err(Failure::here("run `campanile schema apply`")) }
            })
        }
    }
}

/// Where a cluster keeps its data, by the configuration.
pub(super) fn options(config: Option<PathBuf>) -> Result<CqlOptions, Failure> {
    let config = Config::load(config.as_deref(), environment()).map_err(|e| Failure::usage(e.to_string()))?;
    let without = "no store is named: set [cql] contact_points, in a file that --config names or as CAMPANILE_CQL__CONTACT_POINTS";
    config.cql().ok_or_else(|| Failure::usage(without))
}

fn tell(report: &Report, options: &CqlOptions, format: Format) -> Result<(), Failure> {
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    let names = |all: &[(i32, String)]| all.iter().map(|(n, name)| format!("{n:04} {name}")).collect::<Vec<_>>();
    match format {
        Format::Table => {
            for (known, word) in [(&report.applied, "applied"), (&report.missing, "missing")] {
                for name in names(known) {
                    output::text(&format!("{word}  {name}\n"));
                }
            }
            Ok(())
        }
        Format::Json | Format::Yaml => {
            let (applied, missing) = (names(&report.applied), names(&report.missing));
            output::one(format, &json!({"keyspace": options.keyspace, "applied": applied, "missing": missing}))
        }
    }
}
