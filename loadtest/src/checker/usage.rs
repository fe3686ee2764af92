//! Counts what callers did and what happened to jobs, where it was acknowledged or happened. A run in which something
//! never happened proves nothing about it, even if the verdict is good.

use super::history::History;
use crate::{
    run_dir::lines::Verb,
    workload::{
        dags::graph_of,
        worked::{BACKFILLED, BULKED},
    },
};
use campanile_schema::{
    graph::state::NodeState,
    job::Trigger,
    record::{AttemptState, Source},
    view::dag::DagNodeView,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// A run whose callers work for less than this need not show everything, milliseconds: the rarest call, a pause of the system, comes each 8
/// to 17 s.
pub const LONG_ENOUGH_MS: i64 = 30_000;

/// What is asked for only where jobs are there for it.
const OF_BACKFILLS: [Verb; 2] = [Verb::Backfill, Verb::CancelBackfill];
const OF_BULKS: [Verb; 3] = [Verb::BulkPause, Verb::BulkResume, Verb::BulkRetry];

/// What jobs have and no call of its own asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Feature {
    /// Bodies of jobs whose starts are spread.
    Jitter,
    /// Bodies of jobs that are due some time after their creation.
    Delay,
    /// Attempts that were ended by their time-out.
    Timeout,
    /// Bodies that got a secret.
    Secret,
    /// Bodies of nodes of DAGs.
    DagNode,
    /// Nodes of DAGs that never ran, as their rules and conditions say.
    DagPassed,
    /// Runs that undid what a failed run did.
    Compensation,
}

/// What there is only where there are DAGs.
const OF_DAGS: [Feature; 3] = [Feature::DagNode, Feature::DagPassed, Feature::Compensation];

/// How often everything was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls that were acknowledged.
    pub calls: BTreeMap<Verb, u64>,
    /// Bodies and attempts.
    pub features: BTreeMap<Feature, u64>,
    /// Some jobs are there to have their past run.
    #[serde(default)]
    pub backfilled: bool,
    /// Some jobs are there to be changed by bulk operations.
    #[serde(default)]
    pub bulked: bool,
    /// Some jobs are DAGs.
    #[serde(default)]
    pub dags: bool,
}

impl Usage {
    pub(super) fn of(history: &History) -> Self {
        let bodies = || history.bodies.values().flatten();
        let of_trigger = |wanted: fn(&Trigger) -> bool| {
            let has = |job: &u64| history.jobs.get(job).is_some_and(|job| wanted(&job.spec.trigger));
            bodies().filter(|body| has(&body.job)).count()
        };
        let is_late = |state| state == AttemptState::Timeout;
        let of_source = |wanted: Source| {
            let is_of = |run: &u64| history.runs.get(run).is_some_and(|run| run.source == wanted);
            bodies().filter(|body| is_of(&body.run)).count()
        };
        let passed = |node: &&DagNodeView| matches!(node.state, NodeState::Skipped | NodeState::UpstreamFailed);
        let features = [
            (Feature::Jitter, of_trigger(is_spread)),
            (Feature::Delay, of_trigger(|trigger| matches!(trigger, Trigger::Once { delay_sec: Some(1..), .. }))),
            (
                Feature::Timeout,
                history.runs.values().flat_map(|run| &run.attempts).filter(|a| is_late(a.state)).count(),
            ),
            (Feature::Secret, bodies().filter(|body| !body.secrets.is_empty()).count()),
            (Feature::DagNode, of_source(Source::Dag)),
            (Feature::DagPassed, history.dags.values().flat_map(|dag| &dag.nodes).filter(passed).count()),
            (Feature::Compensation, of_source(Source::Compensation)),
        ];
        Self {
            calls: history.calls_acknowledged.clone(),
            features: features.into_iter().map(|(feature, count)| (feature, count as u64)).collect(),
            backfilled: history.jobs.values().any(|job| job.spec.name.contains(BACKFILLED)),
            bulked: history.jobs.values().any(|job| job.spec.name.contains(BULKED)),
            dags: history.jobs.values().any(|job| graph_of(&job.spec).is_some()),
        }
    }

    /// Adds what another run used.
    pub fn add(&mut self, other: &Self) {
        other.calls.iter().for_each(|(verb, count)| *self.calls.entry(*verb).or_default() += count);
        self.backfilled |= other.backfilled;
        self.bulked |= other.bulked;
        self.dags |= other.dags;
        other.features.iter().for_each(|(feature, count)| *self.features.entry(*feature).or_default() += count);
    }

    /// What was never used, a line of text each; `except`: what could not be.
    pub fn missing(&self, except: &[Verb]) -> Vec<String> {
        let unused = |count: Option<&u64>| count.is_none_or(|count| *count == 0);
        let has_jobs = |verb: &Verb| {
            (self.backfilled || !OF_BACKFILLS.contains(verb)) && (self.bulked || !OF_BULKS.contains(verb))
        };
        let is_owed = |verb: &&Verb| !except.contains(verb) && has_jobs(verb);
        let verbs = Verb::value_variants().iter().filter(is_owed).filter(|verb| unused(self.calls.get(verb)));
        let is_met = |feature: &&Feature| self.dags || !OF_DAGS.contains(feature);
        let features = Feature::value_variants().iter().filter(is_met);
        let features = features.filter(|feature| unused(self.features.get(feature)));
        verbs
            .map(|verb| format!("no call {verb:?} was accepted"))
            .chain(features.map(|feature| format!("{feature:?} was never met")))
            .collect()
    }
}

fn is_spread(trigger: &Trigger) -> bool {
    match trigger {
        Trigger::Cron { jitter_sec, .. } | Trigger::FixedRate { jitter_sec, .. } => *jitter_sec > 0,
        Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => false,
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = Verb::value_variants().iter();
        let calls = verbs.map(|verb| format!("{verb:?} {}", self.calls.get(verb).copied().unwrap_or(0)));
        let features = Feature::value_variants().iter();
        let met = features.map(|feature| format!("{feature:?} {}", self.features.get(feature).copied().unwrap_or(0)));
        write!(
            f,
            "calls accepted: {}; met: {}",
            calls.collect::<Vec<_>>().join(", "),
            met.collect::<Vec<_>>().join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Usage {
        Usage {
            calls: Verb::value_variants().iter().map(|verb| (*verb, 1)).collect(),
            features: Feature::value_variants().iter().map(|feature| (*feature, 1)).collect(),
            backfilled: true,
            bulked: true,
            dags: true,
        }
    }

    #[test]
    fn each_verb_and_feature_that_was_never_used_is_named() {
        assert_eq!(whole().missing(&[]), [""; 0]);
        for verb in Verb::value_variants() {
            for absent in [None, Some(0)] {
                let mut usage = whole();
                usage.calls.remove(verb);
                usage.calls.extend(absent.map(|none| (*verb, none)));
                assert_eq!(usage.missing(&[]), [format!("no call {verb:?} was accepted")]);
                assert_eq!(usage.missing(&[*verb]), [""; 0], "it could not be used");
            }
        }
        for feature in Feature::value_variants() {
            let mut usage = whole();
            usage.features.insert(*feature, 0);
            assert_eq!(usage.missing(&[]), [format!("{feature:?} was never met")]);
        }
        let all = Verb::value_variants().len() + Feature::value_variants().len();
        let all_kinds = Usage { backfilled: true, bulked: true, dags: true, ..Usage::default() };
        assert_eq!(all_kinds.missing(&[]).len(), all);
        let without = all - OF_BACKFILLS.len() - OF_BULKS.len() - OF_DAGS.len();
        let missing = Usage::default().missing(&[]).len();
        assert_eq!(missing, without, "there are no backfills, no DAGs, and nobody who asks for bulk operations");
    }

    #[test]
    fn what_one_run_leaves_out_another_one_may_show() {
        let (mut first, mut second) = (whole(), whole());
        first.calls.remove(&Verb::Confirm);
        second.features.remove(&Feature::Secret);
        let mut sum = Usage::default();
        sum.add(&first);
        assert_eq!(sum.missing(&[]), ["no call Confirm was accepted"]);
        sum.add(&second);
        assert_eq!(sum.missing(&[]), [""; 0]);
        assert_eq!((sum.calls.get(&Verb::Edit), sum.calls.get(&Verb::Confirm)), (Some(&2), Some(&1)));
    }
}
