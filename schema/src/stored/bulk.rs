//! A bulk operation, as its home shard holds it and as events change it. Event format 2.

use crate::{
    ids::{BulkId, JobId},
    job::upper_enum,
    record::code,
    stored::audit::CallOrigin,
    text::Text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// What a bulk operation does with each of its items.
    BulkAction {
        Pause = "PAUSE" = 0,
        Resume = "RESUME" = 1,
        Trigger = "TRIGGER" = 2,
        Delete = "DELETE" = 3,
        /// Cancels open runs.
        Cancel = "CANCEL" = 4,
        /// Runs failed runs again.
        Retry = "RETRY" = 5,
        /// The same of dead letters.
        Redrive = "REDRIVE" = 6,
    } default Pause);

impl BulkAction {
    /// Its items are jobs; otherwise they are runs.
    pub fn is_of_jobs(self) -> bool {
        match self {
            Self::Pause | Self::Resume | Self::Trigger | Self::Delete => true,
            Self::Cancel | Self::Retry | Self::Redrive => false,
        }
    }

    /// What takes it back.
    pub fn undone_by(self) -> Option<Self> {
        match self {
            Self::Pause | Self::Delete => Some(Self::Resume),
            Self::Resume => Some(Self::Pause),
            Self::Trigger | Self::Cancel | Self::Retry | Self::Redrive => None,
        }
    }
}

upper_enum!(/// How a bulk operation stands.
    BulkState {
        Running = "RUNNING" = 0,
        /// The jobs are paused; they are deleted when the grace is over.
        Waiting = "WAITING" = 1,
        /// It was aborted, and finishes the page that it had begun.
        Aborting = "ABORTING" = 2,
        Aborted = "ABORTED" = 3,
        Done = "DONE" = 4,
    } default Running);

impl BulkState {
    pub fn is_final(self) -> bool {
        match self {
            Self::Aborted | Self::Done => true,
            Self::Running | Self::Waiting | Self::Aborting => false,
        }
    }
}

/// Which jobs or runs it is about: all that fit every part that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBulkFilter {
    /// The code of a status.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Codes of states.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<u8>,
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The code of a source.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub source: Option<u8>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Where the walk over the items stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkPlace {
    /// Behind this job or run of a shard.
    #[serde(rename = "s")]
    Shard {
        #[serde(rename = "s")]
        shard: u16,
        #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
        after: u64,
        /// Of the run behind which it stands.
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        created_ms: Option<i64>,
    },
    /// At this page of a list of the read model.
    #[serde(rename = "p")]
    Page {
        #[serde(rename = "t")]
        token: String,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A job, or a run with the generation that is to be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkItem {
    #[serde(rename = "i")]
    pub id: u64,
    #[serde(rename = "g", default, skip_serializing_if = "is_none")]
    pub generation: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_none(n: &u32) -> bool {
    *n == 0
}

/// Why an item was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkFailure {
    #[serde(rename = "i")]
    pub id: u64,
    #[serde(rename = "c")]
    pub code: Text,
    #[serde(rename = "m")]
    pub message: Text,
}

/// What became of items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCounts {
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    pub done: u64,
    /// They were that way already, or are gone.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub unchanged: u64,
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Runs that were left as they are, because their compensation was started. Nothing but a person runs these again.
    #[serde(rename = "cp", default, skip_serializing_if = "is_zero")]
    pub compensated: u64,
    /// The first that failed.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<BulkFailure>,
}

/// A page that has begun: its items are being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkPage {
    #[serde(rename = "i")]
    pub items: Vec<BulkItem>,
    /// Where the next page begins. None: this is the last one.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<BulkPlace>,
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredBulk {
    #[serde(rename = "i")]
    pub id: BulkId,
    #[serde(rename = "a", with = "code")]
    pub action: BulkAction,
    /// None: of all tenants.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Text>,
    #[serde(rename = "w")]
    pub filter: StoredBulkFilter,
    #[serde(rename = "b")]
    pub by: CallOrigin,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// Jobs and runs that were made after it are not its items.
    #[serde(rename = "ca")]
    pub created_ms: i64,
    #[serde(rename = "s", with = "code")]
    pub state: BulkState,
    /// Items that were counted when it was accepted.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub matched: u64,
    /// There were more than are counted.
    #[serde(rename = "mm", default, skip_serializing_if = "std::ops::Not::not")]
    pub matched_more: bool,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<BulkPlace>,
    /// Pages that have begun.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub pages: u64,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub page: Option<BulkPage>,
    /// The walk has begun anew, because the store was moved: items may have been done before.
    #[serde(rename = "v", default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    #[serde(rename = "r", default)]
    pub counts: BulkCounts,
    /// Of a delete that pauses first.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<i64>,
    /// When the deletion may begin; None: the jobs are not paused yet.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub delete_at_ms: Option<i64>,
    /// The deletion has begun; `counts` is of it.
    #[serde(rename = "dd", default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// The operation that this one takes back.
    #[serde(rename = "uo", default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<BulkId>,
    /// The operation that takes this one back.
    #[serde(rename = "ub", default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<BulkId>,
    /// Who aborted it and why.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<Text>,
    #[serde(rename = "ea", default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
}

/// What happened to a bulk operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BulkChange {
    #[serde(rename = "c")]
    Created {
        #[serde(rename = "b")]
        bulk: Box<StoredBulk>,
    },
    /// These items are being done.
    #[serde(rename = "b")]
    Begun {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "p")]
        page: BulkPage,
    },
    /// They were done.
    #[serde(rename = "d")]
    Done {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "c")]
        counts: BulkCounts,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "x")]
    Aborted {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// The grace is over.
    #[serde(rename = "g")]
    Deleting {
        #[serde(rename = "i")]
        id: BulkId,
    },
    #[serde(rename = "u")]
    Undone {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "b")]
        by: BulkId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "f")]
    Forgotten {
        #[serde(rename = "i")]
        id: BulkId,
    },
}

/// On a job: the bulk operation that paused or resumed it last, unless somebody else did it since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkMark {
    #[serde(rename = "i")]
    pub bulk: BulkId,
    /// The job was paused already, and is a part of the operation all the same.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The operation that this one has taken back here. What arrives late of that one changes nothing.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub undid: Option<BulkId>,
}
