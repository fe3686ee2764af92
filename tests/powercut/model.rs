//! What a caller knows of its jobs and runs: what was acknowledged, and what may or may not have happened because no answer
//! came. An answer, also a later read, settles what was open; it then stays so.

use crate::plan::Plan;
use campanile_ports::LedgerRow;
use campanile_schema::{
    ids::{JobId, RunId},
    job::{JobStatus, JobView},
    record::RunState,
    view::RunView,
};
use std::collections::BTreeMap;

/// A call without an answer.
#[derive(Clone, Debug)]
pub enum Open {
    Status(JobStatus),
    Replaced(Plan),
}

#[derive(Clone, Debug, Default)]
pub struct Run {
    pub generation: u32,
    /// Calls without an answer that may have raised the generation.
    pub reopened: u32,
    pub ended: Option<(u32, RunState)>,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub text: String,
    /// None: asked for, not answered.
    pub run: Option<RunId>,
}

pub struct Job {
    pub id: JobId,
    pub tenant: String,
    pub name: String,
    /// By version, from 1.
    pub plans: Vec<Plan>,
    pub status: JobStatus,
    pub open: Option<Open>,
    pub created_ms: Option<i64>,
    pub keys: Vec<Key>,
    pub runs: BTreeMap<RunId, Run>,
    /// As it was last read: it only grows.
    pub ledger: Vec<LedgerRow>,
    /// Runs of the ledger that were held against their instants.
    pub fired: BTreeMap<RunId, i64>,
}

impl Job {
    pub fn new(id: JobId, tenant: &str, name: &str, plan: Plan) -> Self {
        Self {
            id,
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            plans: vec![plan],
            status: JobStatus::Enabled,
            open: None,
            created_ms: None,
            keys: Vec::new(),
            runs: BTreeMap::new(),
            ledger: Vec::new(),
            fired: BTreeMap::new(),
        }
    }

    pub fn version(&self) -> u64 {
        self.plans.len() as u64
    }

    pub fn is_deleted(&self) -> bool {
        self.status == JobStatus::Deleted
    }

    /// The node shows the job.
    pub fn seen(&mut self, view: &JobView) -> Result<(), String> {
        match self.open.take() {
            Some(Open::Status(status)) if view.status == status => self.status = status,
            Some(Open::Replaced(plan)) if view.version == self.version() + 1 => self.plans.push(plan),
            Some(Open::Status(_) | Open::Replaced(_)) | None => {}
        }
        let created_ms = *self.created_ms.get_or_insert(view.created_at.0);
        let mark = format!("{{\"mark\":{}}}", self.plans[self.plans.len() - 1].mark);
        let same = view.status == self.status
            && view.version == self.version()
            && view.created_at.0 == created_ms
            && view.spec.name == self.name
            && view.spec.tenant_id == self.tenant
            && view.spec.params.0 == mark
            && view.quarantine_reason.is_none();
        if same {
            return Ok(());
        }
        Err(format!(
            "job {} '{}' should be {} at version {} with {mark}, created at {created_ms}, but is {view:?}",
            self.id,
            self.name,
            self.status,
            self.version()
        ))
    }

    /// The node says that there is no such job.
    pub fn missing(&mut self) -> Result<(), String> {
        if let Some(Open::Status(JobStatus::Deleted)) = self.open {
            self.status = JobStatus::Deleted;
        }
        self.open = None;
        if self.is_deleted() {
            return Ok(());
        }
        Err(format!("job {} '{}' is gone", self.id, self.name))
    }

    /// The node shows a run of the job.
    pub fn run_seen(&mut self, view: &RunView) -> Result<(), String> {
        if view.job_id != self.id {
            return Err(format!("a run of job {} turned up as {view:?}", self.id));
        }
        for pair in view.attempts.windows(2) {
            if pair[1].token <= pair[0].token || pair[1].attempt != pair[0].attempt + 1 {
                return Err(format!("attempts and their tokens do not rise together: {view:?}"));
            }
        }
        let run = self.runs.entry(view.run_id).or_insert_with(|| Run { generation: 1, ..Run::default() });
        if !(run.generation..=run.generation + run.reopened).contains(&view.generation) {
            return Err(format!(
                "generation {} (+{}) was known, but the run is {view:?}",
                run.generation, run.reopened
            ));
        }
        // Calls come one after the other: what was open is settled by now.
        run.reopened = 0;
        run.generation = view.generation;
        if let Some((generation, state)) = run.ended
            && generation == view.generation
            && state != view.state
        {
            return Err(format!("it had ended as {state}, but is {view:?}"));
        }
        if view.state.is_final() {
            run.ended = Some((view.generation, view.state));
        }
        Ok(())
    }
}
