//! How a run of a DAG has ended, once all of its nodes have.

use super::{
    clauses::{Clause, kept},
    run::{EdgeMark, GraphRun},
};
use campanile_schema::{
    graph::state::{NodeRule, NodeState, StopCause},
    record::RunState,
};

impl GraphRun {
    /// CANCELED if a person canceled it, TIMEOUT if it reached its timeout, FAILED if a failure was left unhandled, else SUCCESS. Looks
    /// at every edge, once for each end of the whole run.
    pub(super) fn outcome(&self) -> RunState {
        if self.is_stopped_by(StopCause::Cancel) && kept(Clause::CanceledWins) {
            return RunState::Canceled;
        }
        if self.is_stopped_by(StopCause::Timeout) && kept(Clause::TimeoutWins) {
            return RunState::Timeout;
        }
        let mut failures = (0..).zip(&self.nodes).filter(|(_, node)| node.state().is_failure()).map(|(at, _)| at);
        let failed = match (failures.next(), kept(Clause::EachFailureHandled)) {
            (None, _) => false,
            (Some(first), true) => !self.is_handled(first) || failures.any(|node| !self.is_handled(node)),
            (Some(first), false) => !self.is_handled(first) && failures.all(|node| !self.is_handled(node)),
        };
        if failed && kept(Clause::FailureFails) { RunState::Failed } else { RunState::Success }
    }

    /// A node behind it ran because of its failure, and succeeded.
    fn is_handled(&self, node: u32) -> bool {
        kept(Clause::HandlerMakesGood)
            && self.graph.children(node).iter().any(|child| {
                let by_rule = match self.graph.node(child.node).rule {
                    NodeRule::AnyFailed | NodeRule::AllDone => true,
                    NodeRule::AllSuccess | NodeRule::AnySuccess | NodeRule::NoneFailed => !kept(Clause::HandlerByRule),
                };
                let late = self.marks.get(&child.edge) == Some(&EdgeMark::Late);
                by_rule
                    && self.node(child.node).state() == NodeState::Success
                    && !(late && kept(Clause::HandlerRanBecauseOfIt))
            })
    }
}
