//! Which hooks the end of a run starts, and how many runs each of them may lead to in turn.
//!
//! **Problem.** Jobs may be hooks of each other. Without a limit one failure could start runs for ever, or a thousand at once.
//!
//! **Budget.** A run to which no hook has led is a *root*: it may lead to [`HOOK_BUDGET`] runs of hooks. When it ends and starts `n` of
//! them, what is left is divided among these; each keeps its part and divides it again. So all runs that follow from one end of a root
//! are never more than the budget. A hook for which nothing is left is not started, and the run says so. The runs of a DAG's nodes are
//! roots if the DAG run is one; else they and the DAG run share its part. The hooks of a deadline that was missed get half of what is
//! the run's, and those of its end the rest. Besides, `MESSAGE_DEPTH` bounds the length of a chain.
//!
//! **Compensation.** It undoes what the run did. It is started once for the run: its key has no generation, and the run remembers it,
//! because keys do not live for ever. Such a run is started again only with `force`.
//!
//! **What this never does:** deliver messages (`crate::outbox`), or look at other jobs.

pub mod rules;

use campanile_schema::{
    error::ErrorCode,
    hooks::HookKind,
    ids::RunId,
    limits::HOOK_BUDGET,
    record::{RunRecord, RunState},
    stored::{StoredHook, StoredJob},
};
pub use rules::Rule;
use rules::kept;

use crate::reject::Rejection;

/// A hook that the end of a run starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DueHook<'a> {
    pub hook: &'a StoredHook,
    /// Its number among the hooks of the job.
    pub number: u32,
    /// Runs of hooks to which its run may lead. None: the budget of the ended run is used up, and it is not started.
    pub budget: Option<u32>,
}

/// The hooks of a run that ends like this, in the order of their numbers.
pub fn due<'a>(def: &'a StoredJob, record: &RunRecord) -> Vec<DueHook<'a>> {
    let compensated = record.compensated && kept(Rule::CompensatedOnce);
    let mut due = Vec::new();
    for kind in HookKind::ALL.into_iter().filter(|kind| starts(*kind, record)) {
        for (place, hook) in (0..).zip(def.hooks_of(kind)) {
            if !(hook.compensation && compensated) {
                due.push(DueHook { hook, number: kind.number(place), budget: None });
            }
        }
    }
    divide(own_budget(record.budget, nodes_of(def)) - spent_on_deadline(def, Some(record)), &mut due);
    due
}

fn nodes_of(def: &StoredJob) -> usize {
    def.graph().map_or(0, |graph| graph.nodes.len())
}

/// What the hooks of a deadline may lead to: half of what is the run's own. `record`: None, there is no run.
pub fn budget_of_deadline(def: &StoredJob, record: Option<&RunRecord>) -> u32 {
    own_budget(record.and_then(|record| record.budget), nodes_of(def)) / 2
}

/// The part of the run's own budget that is not for the hooks of its end, because it has missed a deadline.
fn spent_on_deadline(def: &StoredJob, record: Option<&RunRecord>) -> u32 {
    let missed = |record: &&RunRecord| record.timing.as_ref().is_some_and(|timing| timing.missed_ms.is_some());
    record
        .filter(missed)
        .filter(|_| kept(Rule::DeadlineShares))
        .map_or(0, |record| budget_of_deadline(def, Some(record)))
}

/// These hooks, with the parts that each of them gets of a budget.
pub(crate) fn divided<'a>(budget: u32, hooks: Vec<(&'a StoredHook, u32)>) -> Vec<DueHook<'a>> {
    let mut due: Vec<DueHook<'a>> =
        hooks.into_iter().map(|(hook, number)| DueHook { hook, number, budget: None }).collect();
    divide(budget, &mut due);
    due
}

fn starts(kind: HookKind, record: &RunRecord) -> bool {
    let state = record.state;
    match kind {
        HookKind::Failure => match state {
            RunState::Failed => true,
            RunState::Timeout => kept(Rule::FailureIsBoth),
            RunState::Canceled => !kept(Rule::CanceledIsSilent),
            RunState::Success
            | RunState::Skipped
            | RunState::Pending
            | RunState::Queued
            | RunState::Running
            | RunState::RetryWait
            | RunState::SuspectedLost
            | RunState::NeedsConfirmation => false,
        },
        HookKind::Success => state == RunState::Success || (state == RunState::Failed && !kept(Rule::SuccessAlone)),
        HookKind::Timeout => state == RunState::Timeout && kept(Rule::TimeoutBesides),
        HookKind::DeadLetter => record.dead_letter || (state == RunState::Failed && !kept(Rule::DeadLetterOnly)),
        // Before the end, if at all.
        HookKind::Deadline => false,
    }
}

/// The first ones get one of the budget each, and what is left in equal parts.
fn divide(budget: u32, due: &mut [DueHook<'_>]) {
    let started = u32::try_from(due.len()).unwrap_or(u32::MAX).min(budget);
    let started = if kept(Rule::BudgetHolds) { started } else { due.len() as u32 };
    let left = budget.saturating_sub(started);
    for (place, due) in (0..started).zip(due) {
        let more = u32::from(place < left % started);
        due.budget = Some(if kept(Rule::BudgetIsDivided) { left / started + more } else { left });
    }
}

/// Of a run with this budget itself; of a run of a DAG without that of its nodes.
fn own_budget(budget: Option<u32>, nodes: usize) -> u32 {
    let of_nodes = of_node(budget, nodes).unwrap_or(0).saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX));
    budget.unwrap_or(HOOK_BUDGET).saturating_sub(of_nodes)
}

/// Budget of the run of each node of a DAG run that has this one. None: they are roots.
pub fn of_node(budget: Option<u32>, nodes: usize) -> Option<u32> {
    let parts = u32::try_from(nodes).unwrap_or(u32::MAX).saturating_add(1);
    budget.map(|budget| if kept(Rule::NodesShare) { budget / parts } else { budget })
}

/// Refuses to start a run again that was undone, unless it is forced.
pub fn ask_if_undone(run: RunId, force: bool) -> Result<(), Rejection> {
    if force || !kept(Rule::ReopenAsks) {
        return Ok(());
    }
    let why = format!(
        "the compensation of run {run} was started, which undoes what the run did: trigger the job anew; or, if the run may go on all \
         the same, retry it with force (campanile run retry {run} --force)"
    );
    Err(Rejection::new(ErrorCode::Compensated, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(budget: u32, hooks: usize) -> Vec<Option<u32>> {
        let hook =
            StoredHook { job: "a".into(), params: campanile_schema::payload::Payload::default(), compensation: false };
        let mut due = vec![DueHook { hook: &hook, number: 0, budget: None }; hooks];
        divide(budget, &mut due);
        due.into_iter().map(|due| due.budget).collect()
    }

    #[test]
    fn a_budget_is_divided_without_a_rest_and_never_exceeded() {
        assert_eq!(divided(64, 3), [Some(21), Some(20), Some(20)]);
        assert_eq!(divided(2, 3), [Some(0), Some(0), None]);
        assert_eq!(divided(0, 1), [None]);
        assert_eq!(divided(64, 0), []);
    }

    #[test]
    fn a_run_of_a_dag_shares_with_its_nodes_what_a_hook_left_it() {
        assert_eq!((of_node(None, 3), own_budget(None, 3)), (None, HOOK_BUDGET), "all of them are roots");
        assert_eq!((of_node(Some(21), 3), own_budget(Some(21), 3)), (Some(5), 6));
        assert_eq!((of_node(Some(21), 1_000), own_budget(Some(21), 1_000)), (Some(0), 21));
    }
}
