//! `campanile cluster members|shards|plan|events|cordon|uncordon`: a running cluster, seen from one of its nodes.

use super::{
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Living nodes, as the asked one sees them
    Members,
    /// Who owns each shard
    Shards {
        /// Only those of the node of this name
        #[arg(long)]
        node: Option<String>,
    },
    /// Shards that are to move, and why
    Plan,
    /// What the asked node saw happen since its start, the newest first
    Events,
    /// Give a node nothing new; it keeps what it has, also after a restart
    Cordon {
        /// Its name
        node: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Undo a node's cordon
    Uncordon {
        /// Its name
        node: String,
        #[arg(long)]
        reason: Option<String>,
    },
}

const MEMBERS: &[Column] = &[
    ("NODE", "name"),
    ("STATE", "state"),
    ("SHARDS", "shards"),
    ("SESSION", "session"),
    ("RELEASE", "build"),
    ("HTTP", "http"),
    ("RPC", "rpc"),
    ("CLOCK MS", "clockOffsetMs"),
];
const SHARDS: &[Column] = &[
    ("SHARD", "shard"),
    ("NODE", "node"),
    ("EPOCH", "epoch"),
    ("SESSION", "session"),
    ("SPANS", "spans"),
    ("SNAPSHOT SEQ", "snapshotSeq"),
];
const MOVES: &[Column] = &[("SHARD", "shard"), ("FROM", "from"), ("TO", "to"), ("WHY", "reason")];
const EVENTS: &[Column] = &[("AT", "at"), ("WHAT", "kind"), ("NODE", "node"), ("SHARD", "shard"), ("DETAIL", "detail")];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Members => output::list(format, &remote.get("/api/v1/cluster/members", &[])?, MEMBERS),
        Command::Shards { node } => {
            output::list(format, &remote.get("/api/v1/cluster/shards", &[("node", node)])?, SHARDS)
        }
        Command::Plan => plan(remote, format),
        Command::Events => output::list(format, &remote.get("/api/v1/cluster/events", &[])?, EVENTS),
        Command::Cordon { node, reason } => mark(remote, &node, "cordon", reason),
        Command::Uncordon { node, reason } => mark(remote, &node, "uncordon", reason),
    }
}

fn plan(remote: &Remote, format: Format) -> Result<(), Failure> {
    let mut plan = remote.get("/api/v1/cluster/plan", &[])?;
    if format != Format::Table {
        return output::one(format, &plan);
    }
    if plan["balanced"] == true {
        output::text(&format!("every shard is where it should be (at most {} on a node)\n", plan["cap"]));
        return Ok(());
    }
    output::list(format, &json!({"items": plan["moves"].take()}), MOVES)
}

fn mark(remote: &Remote, node: &str, verb: &str, reason: Option<String>) -> Result<(), Failure> {
    remote.post(&format!("/api/v1/cluster/members/{}/{verb}", encoded(node)), &json!({"reason": reason}))?;
    output::text(&format!("{node}: {verb}ed\n"));
    Ok(())
}
