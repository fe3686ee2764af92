//! What nodes tell each other of the jobs, runs and tenants of a shard: parts of the calls to shards and of their answers.

use crate::{
    graph::state::NodeState,
    ids::Digest,
    peer::lending::Counts,
    record::code,
    stored::{StoredJob, TenantRecord},
    text::Text,
};
use serde::{Deserialize, Serialize};

/// A create that comes with a caller's key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CreateKey {
    /// Digest of the tenant and the key.
    pub key: Digest,
    /// Digest of the request.
    pub print: Digest,
}

/// What to do with a run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FinalAction {
    Reopen {
        redrive: bool,
        reason: Option<String>,
        /// Also if the run was compensated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    Discard,
    /// As [`Self::Reopen`], only if the run has ended in this generation. Format 2.
    ReopenOnce {
        generation: u32,
        redrive: bool,
        reason: Option<String>,
    },
}

/// What a person does with a run of a DAG, whether it has ended or not. Nodes are named by their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GraphAction {
    /// Runs these nodes again, and with `and_after` all that comes after them.
    #[serde(rename = "r")]
    Retry {
        #[serde(rename = "n")]
        nodes: Vec<String>,
        #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
        and_after: bool,
        /// Who asks, and why.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Sets the state of a node: SUCCESS or SKIPPED.
    #[serde(rename = "m")]
    Mark {
        #[serde(rename = "n")]
        node: String,
        #[serde(rename = "s", with = "code")]
        state: NodeState,
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Runs the node again whose place in the graph this is: its run was named.
    #[serde(rename = "p")]
    RetryPlace {
        #[serde(rename = "n")]
        place: u32,
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// No further node of an open run starts.
    #[serde(rename = "h")]
    Pause {
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// ... until this.
    #[serde(rename = "u")]
    Resume {
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Runs all nodes again that failed or were canceled.
    #[serde(rename = "f")]
    RetryFailed {
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// What to do with the messages of a run that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutboxAction {
    Resend,
    Discard,
}

/// What the home shard of a tenant knows of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantFacts {
    pub limits: Option<TenantRecord>,
    pub paused: bool,
    /// Of all sessions of a cluster; None: the node is alone.
    pub counts: Option<Counts>,
    /// The tenant itself is paused, not only the whole system.
    #[serde(default)]
    pub paused_itself: bool,
}

/// How many jobs and open runs of a tenant a shard has.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TenantUse {
    /// Not deleted.
    pub jobs: u64,
    /// Also of deleted jobs.
    pub open_runs: u64,
}

/// What is to be known of a job before a stretch of its past is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillFacts {
    /// Without its secrets.
    #[serde(rename = "d")]
    pub definition: Box<StoredJob>,
    #[serde(rename = "a")]
    pub created_ms: i64,
    /// Every instant up to here is decided.
    #[serde(rename = "c")]
    pub cursor_ms: i64,
    /// The job's shard has decided so many frames: what the read model shows of fewer is less than what the job knows.
    #[serde(rename = "q")]
    pub seq: u64,
    /// The job never had a backfill.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
}

/// What a person does with a backfill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackfillAction {
    #[serde(rename = "p")]
    Pause {
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
    #[serde(rename = "r")]
    Resume,
    #[serde(rename = "x")]
    Cancel {
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
}
