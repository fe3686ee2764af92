//! Which executor may report about an attempt. This module alone decides it: results, announcements and log chunks of
//! executors all go through it.
//!
//! An attempt belongs to the credential for which it was started, whichever session of that credential reports. The
//! fencing token alone proves nothing: it is a counter, and other executors can guess it. An attempt that an earlier
//! release started names no credential. It belongs to any credential that may serve its job's pool, and then to the
//! first one that announces it.

use super::state::Job;
use crate::channels::Placed;
use campanile_schema::{
    ids::{ExecutorSession, RunId, Token},
    text::Text,
};
use serde::{Deserialize, Serialize};

/// An executor session, as the node that holds its connection knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimant {
    pub session: ExecutorSession,
    /// Name of the credential that it said hello with.
    pub credential: Text,
    /// Pools that the credential may serve; None: all.
    pub pools: Option<Vec<Text>>,
}

impl Claimant {
    /// Whether the credential may run jobs of this pool.
    pub fn serves(&self, pool: &str) -> bool {
        self.pools.as_ref().is_none_or(|pools| pools.iter().any(|own| own == pool))
    }
}

/// Whether the run has an open attempt that belongs to the claimant. Its token is not compared here.
pub(crate) fn owns(job: &Job, run: RunId, by: &Claimant) -> bool {
    job.run(run).filter(|open| open.has_body()).is_some_and(|open| match &open.credential {
        Some(credential) => *credential == by.credential,
        None => by.serves(&job.def.place()),
    })
}

/// Whether the claimant holds exactly this attempt.
pub fn holds(job: &Job, run: RunId, token: Token, attempt: u32, by: &Claimant) -> bool {
    owns(job, run, by)
        && job.run(run).and_then(|open| open.attempt()).is_some_and(|own| own.token == token && own.attempt == attempt)
}
