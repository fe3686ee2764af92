//! A run of a DAG as others than the node saw it: the graph that its caller wrote, the runs of its nodes, and when executors began and
//! ended their bodies. What the rules of nodes mean is computed here anew, from what `docs/graph-rules.md` says of them: a node runs when
//! nothing that is still to come can change that, and ends without a run when it can never run.

use super::history::{Body, History, Job, Run};
use crate::workload::dags::graph_of;
use campanile_schema::{
    graph::{GraphSpec, state::NodeRule},
    payload::Payload,
    record::{AttemptState, RunState},
};
use std::collections::HashMap;

/// How a node has ended, for those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Ok,
    Failed,
    Skipped,
    /// It has not.
    Open,
}

/// What a node's rule says about its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Run,
    /// It never runs, because of a failure.
    UpstreamFailed,
    /// It never runs, and nothing failed.
    Skip,
    Wait,
}

/// What is known of a node at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub class: Class,
    /// What its result says, which conditions ask about.
    pub rows: Option<i64>,
}

/// An edge seen from the node behind it.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    pub place: usize,
    /// The edge counts only while the parent's rows are more than this.
    above: Option<i64>,
}

/// See the module's text.
pub struct Dag<'a> {
    pub run: &'a Run,
    pub job: &'a Job,
    pub graph: &'a GraphSpec,
    pub parents: Vec<Vec<Parent>>,
    history: &'a History,
    /// Places of nodes, each behind its parents.
    order: Vec<usize>,
}

impl<'a> Dag<'a> {
    /// None: the run is not one of a DAG. An error: the graph is one that cannot be followed here.
    pub fn of(history: &'a History, run: &'a Run) -> Option<Result<Self, String>> {
        let job = history.jobs.get(&run.job_id)?;
        let graph = graph_of(&job.spec)?;
        // What was edited may have had another graph then.
        if job.versions.len() > 1 {
            return Some(Err("the DAG was edited".to_owned()));
        }
        Some(Self::new(history, run, job, graph))
    }

    fn new(history: &'a History, run: &'a Run, job: &'a Job, graph: &'a GraphSpec) -> Result<Self, String> {
        let places: HashMap<&str, usize> =
            graph.nodes.iter().zip(0..).map(|(node, at)| (node.id.as_str(), at)).collect();
        let place = |id: &str| places.get(id).copied().ok_or_else(|| format!("an edge names the node '{id}'"));
        let mut parents: Vec<Vec<Parent>> = graph.nodes.iter().map(|_| Vec::new()).collect();
        for edge in &graph.edges {
            let above = edge.when.as_deref().map(bound).transpose()?;
            let parent = Parent { place: place(&edge.from)?, above };
            parents.get_mut(place(&edge.to)?).into_iter().for_each(|of| of.push(parent));
        }
        let mut order: Vec<usize> = Vec::new();
        while order.len() < parents.len() {
            let is_next = |at: &usize| {
                let free = |parent: &Parent| order.contains(&parent.place);
                !order.contains(at) && parents.get(*at).is_some_and(|of| of.iter().all(free))
            };
            let next = (0..parents.len()).find(is_next).ok_or("its edges are a circle")?;
            order.push(next);
        }
        Ok(Self { run, job, graph, parents, history, order })
    }

    /// Runs of the node at a place: one, unless something is wrong.
    pub fn runs_of(&self, place: usize) -> Vec<&'a Run> {
        let of_dag = self.history.nodes_of.get(&self.run.run_id);
        let ids = u32::try_from(place).ok().and_then(|place| of_dag?.get(&place));
        ids.into_iter().flatten().filter_map(|id| self.history.runs.get(id)).collect()
    }

    pub fn node_run(&self, place: usize) -> Option<&'a Run> {
        self.runs_of(place).last().copied()
    }

    /// For people.
    pub fn name(&self, place: usize) -> &str {
        self.graph.nodes.get(place).map_or("?", |node| node.id.as_str())
    }

    /// How all nodes stood at a moment; where a rule says that a node runs and it has no run, it is open.
    pub fn at(&self, t_us: i64) -> Vec<Standing> {
        let open = Standing { class: Class::Open, rows: None };
        let mut all = vec![open; self.parents.len()];
        let reopened = self.reopens() > 0;
        for place in &self.order {
            let said = self.says(*place, &all);
            // A retry lets nodes that failed wait again, also behind those that do not let them run this time.
            let waits_again = |own: &Standing| reopened && own.class == Class::Failed && said != Says::Run;
            let standing = self.own(*place, t_us).filter(|own| !waits_again(own)).unwrap_or(match said {
                Says::Run | Says::Wait => open,
                Says::UpstreamFailed => Standing { class: Class::Failed, ..open },
                Says::Skip => Standing { class: Class::Skipped, ..open },
            });
            if let Some(slot) = all.get_mut(*place) {
                *slot = standing;
            }
        }
        all
    }

    /// What the rule of a node says about how all nodes stand.
    pub fn says(&self, place: usize, all: &[Standing]) -> Says {
        let rule = self.graph.nodes.get(place).map(|node| node.rule).unwrap_or_default();
        let parents = self.parents.get(place).map(Vec::as_slice).unwrap_or_default();
        let classes: Vec<Class> =
            parents.iter().filter_map(|parent| Some(over(*parent, all.get(parent.place)?))).collect();
        says(rule, &classes)
    }

    /// By the bodies of its run. None: it has no run.
    fn own(&self, place: usize, t_us: i64) -> Option<Standing> {
        let run = self.node_run(place)?;
        let standing = |class: Class, rows: Option<i64>| Some(Standing { class, rows });
        let bodies = self.history.bodies.get(&run.run_id).map(Vec::as_slice).unwrap_or_default();
        let Some(body) = bodies.iter().rfind(|body| body.start_us <= t_us) else {
            let before = run.ended_at.is_some_and(|at| us(at.0) <= t_us) && bodies.is_empty();
            // Only a cancel ends what has not begun.
            return standing(if before { Class::Failed } else { Class::Open }, None);
        };
        if ended_us(run, body) > t_us || goes_on(run, body) {
            return standing(Class::Open, None);
        }
        let state = run.attempt_of(body.token).map(|attempt| attempt.state);
        match state.or(body.end.map(|(_, outcome)| outcome)) {
            Some(AttemptState::Success) => standing(Class::Ok, rows(body.result.as_ref().or(run.result.as_ref()))),
            Some(_) | None => standing(Class::Failed, None),
        }
    }

    /// Something keeps nodes from starting besides their rules: a cancel, or a failure where one is enough.
    pub fn is_stopped(&self) -> bool {
        let failed = |class: Class| class == Class::Failed;
        let fails_fast = self.graph.fail_fast && self.at(i64::MAX).iter().any(|of| failed(of.class));
        self.is_canceled() || fails_fast || self.graph.timeout_sec.is_some() || self.job.deleted.is_some()
    }

    /// Somebody asked for it.
    pub fn is_canceled(&self) -> bool {
        self.job.canceled.iter().any(|asked| asked.run == self.run.run_id)
    }

    /// Calls that may have let it go on after an end.
    pub fn reopens(&self) -> u32 {
        self.job.reopened.iter().filter(|again| again.asked.run == self.run.run_id).map(|again| again.at_most).sum()
    }
}

fn us(ms: i64) -> i64 {
    ms.saturating_mul(1000)
}

/// Conditions of this workload: `parent.result.rows > 4`.
fn bound(when: &str) -> Result<i64, String> {
    let number = when.strip_prefix("parent.result.rows > ").and_then(|rest| rest.parse().ok());
    number.ok_or_else(|| format!("the condition '{when}'"))
}

/// What `rows` of a result says.
pub fn rows(result: Option<&Payload>) -> Option<i64> {
    result?.to_value().get("rows")?.as_i64()
}

/// When a body was over. Its executor may not have lived to write that, or the run may have ended without it.
fn ended_us(run: &Run, body: &Body) -> i64 {
    let attempt = run.attempt_of(body.token);
    let recorded_us = attempt.and_then(|attempt| attempt.ended_at).map_or(i64::MAX, |at| us(at.0));
    let by_itself = attempt.is_none_or(|attempt| match attempt.state {
        AttemptState::Success | AttemptState::Failed | AttemptState::Running | AttemptState::NotStarted => true,
        AttemptState::Timeout | AttemptState::Canceled | AttemptState::Lost => false,
    });
    match body.end {
        Some((at_us, _)) if by_itself => at_us,
        Some((at_us, _)) => at_us.min(recorded_us),
        None => recorded_us,
    }
}

/// The run did not end with this body: another attempt of its generation follows.
fn goes_on(run: &Run, body: &Body) -> bool {
    let later = run.attempts.iter().any(|other| other.generation == body.generation && other.token > body.token);
    later || (run.generation == body.generation && !is_final(run.state))
}

pub fn is_final(state: RunState) -> bool {
    match state {
        RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => true,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => false,
    }
}

/// How a parent counts over its edge.
fn over(parent: Parent, standing: &Standing) -> Class {
    match (standing.class, parent.above) {
        (Class::Ok, Some(above)) if standing.rows.is_none_or(|rows| rows <= above) => Class::Skipped,
        (class, _) => class,
    }
}

/// What the parents that have ended so, and those that are open, leave a rule.
fn says(rule: NodeRule, parents: &[Class]) -> Says {
    let with = |open: Class| {
        let ended = parents.iter().map(|class| if *class == Class::Open { open } else { *class });
        at_the_end(rule, &ended.collect::<Vec<_>>())
    };
    let first = with(Class::Ok);
    if !parents.contains(&Class::Open) {
        return first;
    }
    // It is about the ends themselves.
    let waits = rule == NodeRule::AllDone;
    let decided = with(Class::Failed) == first && with(Class::Skipped) == first;
    if decided && !waits { first } else { Says::Wait }
}

fn at_the_end(rule: NodeRule, parents: &[Class]) -> Says {
    let has = |wanted: Class| parents.contains(&wanted);
    let is_met = match rule {
        NodeRule::AllSuccess => parents.iter().all(|class| *class == Class::Ok),
        NodeRule::AllDone => true,
        NodeRule::AnySuccess => has(Class::Ok),
        NodeRule::AnyFailed => has(Class::Failed),
        NodeRule::NoneFailed => !has(Class::Failed),
    };
    match (is_met, has(Class::Failed)) {
        (true, _) => Says::Run,
        (false, true) => Says::UpstreamFailed,
        (false, false) => Says::Skip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the documents, which the node's own code has printed.
    #[test]
    fn rules_mean_here_what_the_documents_say() {
        let text = include_str!("../../../docs/graph-rules.md");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("| none") || line.starts_with("| some"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), 16);
        for row in rows {
            let classes = [Class::Ok, Class::Failed, Class::Skipped, Class::Open];
            let parents: Vec<Class> =
                classes.into_iter().zip(&row).filter(|(_, cell)| **cell == "some").map(|(class, _)| class).collect();
            for (rule, cell) in NodeRule::ALL.iter().zip(row.iter().skip(4)) {
                let wanted = match *cell {
                    "run" => Says::Run,
                    "wait" => Says::Wait,
                    "SKIPPED" => Says::Skip,
                    _ => Says::UpstreamFailed,
                };
                assert_eq!(says(*rule, &parents), wanted, "{rule:?} of {parents:?}");
            }
        }
    }

    #[test]
    fn a_condition_is_followed_or_told() {
        assert_eq!(bound("parent.result.rows > 4"), Ok(4));
        assert!(bound("parent.result.rows > x").is_err());
        assert!(bound("size(parent.result) > 4").is_err());
    }
}
