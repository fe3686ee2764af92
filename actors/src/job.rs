//! The job actor: a job while it is active. It owns the job's state and handles one command after the other. Its shard
//! makes its decisions durable.
//!
//! Its turns run in the task of its shard and not in a task of its own, because a decision takes less time than a
//! message (ADR 0009). The properties of an actor hold nevertheless: nobody else changes the state, commands are
//! handled in order, and a panic ends only its turn. The state is then the one before the turn, the command is refused,
//! and other jobs are not affected.
//!
//! Never here: I/O, time (the context brings it), sending anything to executors.

use crate::tenants::TenantGauge;
use campanile_core::{
    job::{Command, Context, Decision, Job, decide_next},
    reject::Rejection,
};
use campanile_schema::{job::JobStatus, text::Text};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// See the module's text.
pub struct JobActor {
    pub job: Job,
    /// CLOCK_BOOTTIME ms of its last turn.
    pub used_ms: i64,
    /// Turns that ended in a panic, one after the other.
    pub panics: u32,
    pub tenant: Text,
    pub gauge: Arc<TenantGauge>,
}

/// How a turn ended.
pub enum Turn {
    Decided(Decision),
    Rejected(Rejection),
    /// The panic's message. Nothing changed.
    Panicked(String),
}

/// What becomes of the job after a turn.
pub enum After {
    /// Something of it is open.
    Busy,
    /// Nothing of it runs: it may become bytes.
    Idle,
    /// Deleted, and nothing of it runs.
    Gone,
}

impl JobActor {
    /// Decides a command and applies what was decided.
    pub fn turn(&mut self, command: &Command, context: &Context) -> Turn {
        let job = &self.job;
        // The job is only read in there, so a panic cannot leave it half changed.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(feature = "faults")]
            campanile_ports::faults::panic_if_poisoned(job, command);
            decide_next(job, command, context)
        }));
        match turn {
            Ok(Ok((decision, next))) => {
                crate::measure::decision(&self.job, &next, &decision.events);
                self.job = next;
                self.panics = 0;
                Turn::Decided(decision)
            }
            Ok(Err(rejection)) => {
                self.panics = 0;
                Turn::Rejected(rejection)
            }
            Err(panic) => {
                self.panics += 1;
                Turn::Panicked(message(&*panic))
            }
        }
    }

    pub fn after(&self) -> After {
        if !self.job.hot.runs.is_empty() {
            After::Busy
        } else if self.job.hot.status == JobStatus::Deleted {
            After::Gone
        } else {
            After::Idle
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
