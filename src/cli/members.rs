//! `campanile cluster members|shards|plan|events|cordon|uncordon`: a running cluster, seen from one of its nodes.

use super::{
    change::{self, Change, DryRun},
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
    repeat,
};
use campanile_jobfiles::suggest::closest;
use campanile_schema::{
    error::ErrorCode,
    operations::{
        ClusterCordon, ClusterEvents, ClusterMembers, ClusterPlan, ClusterShards, ClusterUncordon, Operation, Row,
    },
};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Living nodes, as the asked one sees them
    Members {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Who owns each shard
    Shards {
        /// Only those of the node of this name
        #[arg(long)]
        node: Option<String>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Shards that are to move, and why
    Plan {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// What the asked node saw happen since its start, the newest first
    Events {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Give a node nothing new; it keeps what it has, also after a restart
    Cordon {
        /// Its name
        node: String,
        #[command(flatten)]
        change: Change,
    },
    /// Undo a node's cordon
    Uncordon {
        /// Its name
        node: String,
        #[command(flatten)]
        change: Change,
    },
}

const MEMBERS: &[Column] = &[
    Column::id("NODE", "name"),
    Column::state("STATE", "state"),
    Column::number("SHARDS", "shards"),
    Column::id("SESSION", "session").minor(3),
    Column::text("RELEASE", "build").minor(4),
    Column::id("HTTP", "http").minor(1),
    Column::id("RPC", "rpc").minor(2),
    Column::number("CLOCK MS", "clockOffsetMs").minor(5),
];
const SHARDS: &[Column] = &[
    Column::number("SHARD", "shard"),
    Column::id("NODE", "node"),
    Column::number("EPOCH", "epoch").minor(1),
    Column::id("SESSION", "session").minor(2),
    Column::number("SPANS", "spans").minor(3),
    Column::number("SNAPSHOT SEQ", "snapshotSeq").minor(4),
];
const MOVES: &[Column] = &[
    Column::number("SHARD", "shard"),
    Column::id("FROM", "from"),
    Column::id("TO", "to"),
    Column::text("WHY", "reason").minor(1),
];
const EVENTS: &[Column] = &[
    Column::time("AT", "at"),
    Column::text("WHAT", "kind"),
    Column::id("NODE", "node"),
    Column::number("SHARD", "shard").minor(1),
    Column::text("DETAIL", "detail").minor(2),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Members { watch } => repeat::list(watch, format, MEMBERS, || remote.get(ClusterMembers::PATH, &[])),
        Command::Shards { node, watch } => {
            let query = [("node", node)];
            repeat::list(watch, format, SHARDS, || remote.get(ClusterShards::PATH, &query))
        }
        Command::Plan { watch } => {
            repeat::drawn(watch, format, || remote.get(ClusterPlan::PATH, &[]), |plan| plan_text(plan, format))
        }
        Command::Events { watch } => repeat::list(watch, format, EVENTS, || remote.get(ClusterEvents::PATH, &[])),
        Command::Cordon { node, change } => mark(remote, &node, ("cordon", ClusterCordon::ROW), &change),
        Command::Uncordon { node, change } => mark(remote, &node, ("uncordon", ClusterUncordon::ROW), &change),
    }
}

fn plan_text(plan: &Value, format: Format) -> Result<(String, String), Failure> {
    if format != Format::Table {
        return Ok((output::one_text(format, plan, None)?, String::new()));
    }
    if plan["balanced"] == true {
        let told = format!("every shard is where it should be (at most {} on a node)\n", plan["cap"]);
        return Ok((told, String::new()));
    }
    output::list_text(format, &json!({"items": plan["moves"]}), MOVES, None)
}

fn mark(remote: &Remote, node: &str, (verb, row): (&str, &Row), change: &Change) -> Result<(), Failure> {
    if change.dry.dry_run {
        return would_mark(&remote.get(ClusterMembers::PATH, &[])?, node, verb);
    }
    remote.post(&row.path_of(encoded(node)), &change.body())?;
    output::said(&format!("{node}: {verb}ed"), &json!({"name": node, "done": verb}))
}

fn would_mark(members: &Value, node: &str, verb: &str) -> Result<(), Failure> {
    let members = members["items"].as_array().map_or(&[][..], Vec::as_slice);
    match members.iter().find(|member| member["name"] == node) {
        Some(member) => DryRun::told(&format!("{verb} {node} ({})", member["state"].as_str().unwrap_or("?"))),
        None => {
            let meant = closest(node, members.iter().filter_map(|member| member["name"].as_str()));
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            Err(change::refused(ErrorCode::NotFound, format!("no living node has the name '{node}'{meant}")))
        }
    }
}
