//! What nodes tell each other of bulk operations.

use crate::{
    ids::BulkId,
    record::code,
    stored::{
        audit::CallOrigin,
        bulk::{BulkAction, BulkCounts, BulkItem, BulkPage, StoredBulk, StoredBulkFilter},
    },
    text::Text,
};
use serde::{Deserialize, Serialize};

/// Which jobs of a shard are asked for: those behind this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BulkLook {
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Text>,
    #[serde(rename = "w")]
    pub filter: StoredBulkFilter,
    /// Only those that this operation paused or resumed last.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<BulkId>,
    /// And those that this operation, whose walk has begun anew, paused or resumed before, however they fit now.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub own: Option<BulkId>,
    /// Not those that were made later.
    #[serde(rename = "c")]
    pub created_ms: i64,
    #[serde(rename = "a")]
    pub after: u64,
    #[serde(rename = "n")]
    pub limit: usize,
}

/// The jobs, and where the next look begins. None: the shard has no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkLooked {
    #[serde(rename = "i")]
    pub items: Vec<BulkItem>,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Items of a shard that are to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkWork {
    #[serde(rename = "b")]
    pub bulk: BulkId,
    #[serde(rename = "a", with = "code")]
    pub action: BulkAction,
    /// Of a delete with a grace, which pauses first.
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub graced: bool,
    /// The operation that is taken back.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<BulkId>,
    /// They may have been done before.
    #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    #[serde(rename = "i")]
    pub items: Vec<BulkItem>,
    #[serde(rename = "o")]
    pub by: CallOrigin,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkWorked {
    #[serde(rename = "c")]
    pub counts: BulkCounts,
    /// Those that could not be done now: they are to be done later.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<BulkItem>,
}

/// A call about bulk operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BulkCall {
    /// To the home shard, which gives it its id.
    #[serde(rename = "c")]
    Create(Box<StoredBulk>),
    #[serde(rename = "g")]
    Get(BulkId),
    /// Those of a tenant, or all.
    #[serde(rename = "l")]
    List {
        #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
        tenant: Option<Text>,
    },
    #[serde(rename = "x")]
    Abort {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
    /// Makes the operation that takes another one back.
    #[serde(rename = "u")]
    Undo {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "b")]
        by: CallOrigin,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
    /// A page begins: the one behind so many others.
    #[serde(rename = "b")]
    Begin {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "n")]
        pages: u64,
        #[serde(rename = "p")]
        page: BulkPage,
    },
    /// The page was done.
    #[serde(rename = "d")]
    Report {
        #[serde(rename = "i")]
        id: BulkId,
        #[serde(rename = "n")]
        pages: u64,
        #[serde(rename = "c")]
        counts: BulkCounts,
    },
    /// The deletion may begin if the grace is over.
    #[serde(rename = "r")]
    Proceed {
        #[serde(rename = "i")]
        id: BulkId,
    },
    /// To a shard with jobs.
    #[serde(rename = "k")]
    Look(Box<BulkLook>),
    #[serde(rename = "w")]
    Work(Box<BulkWork>),
}

/// Its answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BulkAnswer {
    #[serde(rename = "s")]
    State(Box<StoredBulk>),
    #[serde(rename = "l")]
    List(Vec<StoredBulk>),
    #[serde(rename = "k")]
    Looked(BulkLooked),
    #[serde(rename = "w")]
    Worked(BulkWorked),
}
