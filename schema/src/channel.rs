//! Channels: jobs that tell somebody outside. Nodes run them in a pool of their own.

use crate::text::Text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pool in which nodes run channels. No job and no credential can name it.
pub const CHANNEL_POOL: &str = "~channels";
/// Name of the executor's credential that a node has for it. With a blank, so that no line of a token file can have it.
pub const CHANNEL_CREDENTIAL: &str = "own channels";
/// Begins the name under which the channels of a tenant have their permits, so that they are not those of its other jobs.
const PERMITS: char = '~';

/// Under which name the channels of a tenant have their permits.
pub fn permits_of(tenant: &str) -> Text {
    format!("{PERMITS}{tenant}").into()
}

/// Whether permits under this name are those of channels. No tenant has such a name.
pub fn is_of_channels(permits: &str) -> bool {
    permits.starts_with(PERMITS)
}

/// The channel of a tenant that tells callers how their runs have ended: a job that only nodes make, and no list shows.
pub const CALLBACK_JOB: &str = "~callback";

/// Whether a job of this name is one that only nodes make. No caller can name a job so.
pub fn is_hidden(job: &str) -> bool {
    job.starts_with('~')
}

/// Who is told when a run has ended: a webhook of the run alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Callback {
    /// As that of a webhook. It is stored encrypted, because it may hold a token.
    pub url: String,
    /// What the message is signed with; it is not signed when there is none. Stored encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

crate::redacted_debug!(Callback {} hides { url, secret });
