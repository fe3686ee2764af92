//! Durable changes of jobs and runs, as a node copies them from another one for those who watch.

use crate::watch::{JobChange, RunChange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One change, and the labels that its job had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub what: ChangedItem,
    pub labels: BTreeMap<String, String>,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChangedItem {
    Run(RunChange),
    Job(JobChange),
}

impl Change {
    /// About what it takes in memory, bytes.
    pub fn bytes(&self) -> usize {
        let texts = match &self.what {
            ChangedItem::Run(run) => {
                let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                run.job_name.len() + run.tenant_id.len() + optional(&run.executor_id) + optional(&run.last_error)
            }
            ChangedItem::Job(job) => job.job_name.len() + job.tenant_id.len(),
        };
        let labels: usize = self.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        size_of::<Self>() + texts + labels
    }
}

/// A place in a node's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    pub log: u64,
    pub after: u64,
}

/// What a node answers another that asks for its changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    pub next: LogPlace,
    pub items: Vec<Change>,
    pub dropped: bool,
    pub more: bool,
}
