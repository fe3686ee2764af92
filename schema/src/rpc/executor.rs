//! Messages between executors and nodes. Executors pull: they give credit, and the node sends at most that many
//! assignments. Messages with many items have short field names. Both sides ignore unknown fields.

use crate::{
    ids::{Epoch, ExecutorSession, JobId, RunId, ShardId, Token},
    job::{Action, OnLostContact},
    kinds::{ActionKind, Kinds},
    limits::RESULT_BYTES,
    payload::Payload,
    record::{AttemptState, Source, code},
    text::Text,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `executor.register`: who an executor is and what it can do. A new session for each process start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "RegisterForm", into = "RegisterForm")]
pub struct Register {
    /// Stable name, shown to people; 1..128 characters.
    pub executor_id: String,
    /// Random, kept over reconnects of the same process.
    pub session: ExecutorSession,
    pub pools: Vec<String>,
    /// Attempts that it runs at once at most.
    pub slots: u32,
    /// Handler names it has; empty with `any_handler` for all.
    pub handlers: Vec<String>,
    pub any_handler: bool,
    /// Kinds of action that it runs besides its handlers; see [`Register::runs`].
    pub kinds: Kinds,
    pub labels: BTreeMap<String, String>,
    /// Cores, MiB, MiB; 0 = not limited.
    pub cpu: f64,
    pub memory_mb: u64,
    pub storage_mb: u64,
    /// How long a body that is told to stop may take before it is killed, seconds, at most `STOP_GRACE_MAX_SEC`. Absent: an
    /// executor of a release that did not say it.
    pub stop_grace_sec: Option<f64>,
}

impl Register {
    /// All kinds of action that it runs. HANDLER is told by the names of handlers.
    pub fn runs(&self) -> Kinds {
        self.kinds.and_if(self.any_handler || !self.handlers.is_empty(), ActionKind::Handler)
    }
}

/// [`Register`] as it is sent. Each kind that releases before the set of kinds knew has a field of its own, as those releases
/// read and write it. A field that a reader does not know is ignored, so a further kind needs one more field here.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisterForm {
    executor_id: String,
    session: ExecutorSession,
    pools: Vec<String>,
    slots: u32,
    #[serde(default)]
    handlers: Vec<String>,
    #[serde(default)]
    any_handler: bool,
    #[serde(default)]
    commands: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    http: bool,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    cpu: f64,
    #[serde(default)]
    memory_mb: u64,
    #[serde(default)]
    storage_mb: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_grace_sec: Option<f64>,
}

impl From<RegisterForm> for Register {
    fn from(form: RegisterForm) -> Self {
        Self {
            executor_id: form.executor_id,
            session: form.session,
            pools: form.pools,
            slots: form.slots,
            handlers: form.handlers,
            any_handler: form.any_handler,
            kinds: Kinds::NONE.and_if(form.commands, ActionKind::Command).and_if(form.http, ActionKind::Http),
            labels: form.labels,
            cpu: form.cpu,
            memory_mb: form.memory_mb,
            storage_mb: form.storage_mb,
            stop_grace_sec: form.stop_grace_sec,
        }
    }
}

impl From<Register> for RegisterForm {
    fn from(register: Register) -> Self {
        Self {
            executor_id: register.executor_id,
            session: register.session,
            pools: register.pools,
            slots: register.slots,
            handlers: register.handlers,
            any_handler: register.any_handler,
            commands: register.kinds.has(ActionKind::Command),
            http: register.kinds.has(ActionKind::Http),
            labels: register.labels,
            cpu: register.cpu,
            memory_mb: register.memory_mb,
            storage_mb: register.storage_mb,
            stop_grace_sec: register.stop_grace_sec,
        }
    }
}

/// Answer: the epochs that the executor must honour. Also `executor.epochs` from the node, when it has taken shards over: honour
/// these too, and announce again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    pub cluster_id: u64,
    /// Every shard that the node owns, with its epoch: announce to these.
    pub epochs: Vec<(ShardId, Epoch)>,
}

/// `executor.credit`: the whole present credit (it replaces what was given before), void 2 s after `stampMs` on the executor's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credit {
    /// CLOCK_BOOTTIME of the executor in ms; echoed in each assignment made with it.
    pub stamp_ms: u64,
    /// Free slots.
    pub slots: u32,
    /// Assignments that came over this connection so far. The node takes those that it has chosen for this executor beyond
    /// this count off `slots`: they were under way when the credit was written. An executor that does not count is sent some
    /// in vain, which it refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Live load for scoring, 0.0..=1.0.
    #[serde(default)]
    pub load: f32,
}

/// `executor.heartbeat`, every 2 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    pub running: u32,
}

/// An attempt that an executor holds: running, or ended with a result that no owner has called durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "k")]
    pub token: Token,
}

/// `executor.announce`: after each registration and for each new epoch, everything it holds. The list is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announce {
    pub held: Vec<Held>,
    /// More follows; the announcement counts when the last part is in.
    #[serde(default)]
    pub more: bool,
}

/// Answer: attempts that the executor must stop, because they were replaced or ended meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    #[serde(default)]
    pub stop: Vec<Held>,
}

/// One assignment. Refuse it (NOT_STARTED) when the credit is void, the epoch is below the highest seen for (cluster, shard),
/// or the token is below the highest seen for the run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "jn")]
    pub job_name: Text,
    #[serde(rename = "t")]
    pub tenant: Text,
    #[serde(rename = "n")]
    pub attempt: u32,
    #[serde(rename = "g")]
    pub generation: u32,
    #[serde(rename = "k")]
    pub token: Token,
    #[serde(rename = "h")]
    pub shard: ShardId,
    #[serde(rename = "e")]
    pub epoch: Epoch,
    #[serde(rename = "c")]
    pub cluster_id: u64,
    /// Stamp of the credit that it uses.
    #[serde(rename = "cs")]
    pub credit_stamp_ms: u64,
    #[serde(rename = "o", with = "code")]
    pub source: Source,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub logical_time: Option<Timestamp>,
    #[serde(rename = "to")]
    pub timeout_sec: u64,
    #[serde(rename = "lc", with = "code", default)]
    pub on_lost_contact: OnLostContact,
    #[serde(rename = "a")]
    pub action: Action,
    #[serde(rename = "p")]
    pub params: Payload,
    /// Opened by the node for this attempt; never logged.
    #[serde(rename = "s", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// W3C traceparent: what the body does is a child of this span.
    #[serde(rename = "tp", default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Reserved: last checkpoint of the attempt before.
    #[serde(rename = "ck", default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Payload>,
}

crate::redacted_debug!(Assignment {
    run, job, job_name, tenant, attempt, generation, token, shard, epoch, cluster_id, credit_stamp_ms, source,
    logical_time, timeout_sec, on_lost_contact, action, params, traceparent, checkpoint,
} hides { secrets });

impl Assignment {
    /// What to be idempotent with: `runId/generation`, the same for all attempts.
    pub fn invocation_id(&self) -> String {
        format!("{}/{}", self.run, self.generation)
    }
}

/// `executor.assign`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assign {
    pub items: Vec<Assignment>,
}

/// How an attempt ended, from its executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "k")]
    pub token: Token,
    /// SUCCESS, FAILED, CANCELED (stopped on request), TIMEOUT (stopped by itself) or NOT_STARTED.
    #[serde(rename = "s", with = "code")]
    pub state: AttemptState,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub max_rss_kb: Option<u64>,
    /// With FAILED: trying again would be in vain, so the run ends now, however many attempts its policy has left.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

/// Error code of an attempt that its executor stopped because it shut down.
pub const EXECUTOR_SHUTDOWN: &str = "EXECUTOR_SHUTDOWN";
/// Error code of an attempt that its executor stopped because no node answered (`onLostContact: STOP`).
pub const LOST_CONTACT: &str = "LOST_CONTACT";
/// Error code of a SUCCESS whose result was not kept.
pub const RESULT_TOO_LARGE: &str = "RESULT_TOO_LARGE";

impl Ended {
    /// Takes a result over [`RESULT_BYTES`] away and says so in the attempt: the work is done, and to fail it for the size
    /// of its answer would do it again. True = it was taken away.
    pub fn drop_large_result(&mut self) -> bool {
        let Some(bytes) = self.result.as_ref().map(|result| result.len()).filter(|bytes| *bytes > RESULT_BYTES) else {
            return false;
        };
        self.result = None;
        self.error_code.get_or_insert_with(|| RESULT_TOO_LARGE.to_owned());
        self.error_message
            .get_or_insert_with(|| format!("the result of {bytes} bytes is not kept; at most {RESULT_BYTES} are"));
        true
    }
}

/// `executor.finish`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finish {
    pub items: Vec<Ended>,
    /// The credit from now on, so that one message does both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<Credit>,
}

/// Answer, item by item: what became of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FinishOutcome {
    /// Durable: forget it.
    #[serde(rename = "d")]
    Durable,
    /// Refused, the token is not the newest or the run is final: forget it.
    #[serde(rename = "s")]
    Stale,
    /// Not taken now (overload, not ready): send it again later.
    #[serde(rename = "a")]
    Again,
}

/// Answer of `executor.finish`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    pub outcomes: Vec<FinishOutcome>,
}

/// `executor.log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogChunk {
    pub run: RunId,
    pub token: Token,
    pub attempt: u32,
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

/// `executor.drain`: no more assignments; the session ends when nothing runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drain {}

/// `executor.stop` from the node: stop these bodies and finish them as CANCELED.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    pub items: Vec<Held>,
    /// An operator said that these bodies have ended: their slots are free, and nothing more is to be told of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Held>,
}

/// A node of a cluster, as executors reach it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAddress {
    /// Its name, as its hello says it.
    pub node: String,
    /// `host:port` of its RPC port. It is TLS where the connection is over which this is told.
    pub address: String,
}

/// `executor.members` from a node of a cluster, after a registration and whenever it changes: all nodes that it knows to live, itself
/// among them. It replaces what the same node said before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNodes {
    pub nodes: Vec<NodeAddress>,
}

/// `executor.hint` from the node, after a registration and whenever it changes: an executor moves credit to nodes where runs wait. It ends
/// with its connection. A node that has not said it is of an older release, and nothing is known of what waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    /// Runs of its pools wait, and the credit that it gave this node is used up.
    pub waiting: bool,
}
