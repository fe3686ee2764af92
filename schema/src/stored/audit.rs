//! What is kept of a call that changed something, or was refused. Event format 2.

use crate::{
    ids::{JobId, RunId},
    text::Text,
    trace::{self, TraceContext},
};
use serde::{Deserialize, Serialize};

/// Who called, from where, and in which trace. Of a run that nobody called for only the trace is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrigin {
    /// Name of the credential. None: the token was not known.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Text>,
    /// IP address of the connection. None: the node itself called.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Text>,
    /// The caller's `X-Request-Id`, or the number that the node gave the request.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Text>,
    /// What comes of the call is a child of this span.
    #[serde(
        rename = "t",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::kept::deserialize"
    )]
    pub trace: Option<TraceContext>,
}

impl CallOrigin {
    /// Of a run that nobody called for.
    pub fn in_trace(trace: TraceContext) -> Self {
        Self { trace: Some(trace), ..Self::default() }
    }
    /// Somebody called, or it is not known that nobody did.
    pub fn is_of_a_call(&self) -> bool {
        let Self { who, address, request, trace } = self;
        who.is_some() || address.is_some() || request.is_some() || trace.is_none()
    }
}

/// One entry of the audit trail. Its time and its id name it: a later record with both replaces it, which only a higher `count` does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Random, or counted on from a random number for the items of one call.
    #[serde(rename = "i")]
    pub id: u64,
    #[serde(rename = "t")]
    pub at_ms: i64,
    #[serde(rename = "b")]
    pub origin: CallOrigin,
    /// Name of the operation in the table.
    #[serde(rename = "o")]
    pub operation: Text,
    /// None: it is about no tenant, so only operators may read it.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Text>,
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What it was about, if neither a job nor a run: a tenant, a node, a file.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// The error code of a refusal. None: it was done.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Text>,
    /// Equal refusals within a minute, or things that one call changed.
    #[serde(rename = "x", default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(n: &u64) -> bool {
    *n == 1
}
