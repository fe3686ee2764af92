//! What a node's rule says, given how its parents stand. The whole table is `docs/graph-rules.md`.
//!
//! Two principles make every line of it. A node runs as soon as its rule is met and no later end could change that, so ANY_* fire
//! while other parents still run. A node passes (it never runs) as soon as its rule can never be met: UPSTREAM_FAILED if a parent
//! failed, else SKIPPED. A node is SKIPPED only when all its parents have ended, because a parent that still runs may fail: so what
//! becomes of a node depends on how its parents end and not on the order in which they do.

use super::clauses::{Clause, kept};
use campanile_schema::graph::state::NodeRule;

/// How the parents of a node stand, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// SUCCESS, and the edge's condition, if any, is true.
    pub ok: u32,
    /// FAILED, CANCELED or UPSTREAM_FAILED, or the edge's condition could not be evaluated.
    pub failed: u32,
    /// SKIPPED, or the edge's condition is false.
    pub skipped: u32,
    /// Not ended.
    pub open: u32,
}

/// What comes of a waiting node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It depends on ends that are still to come.
    Wait,
    Run,
    /// It never runs, because of a failure.
    UpstreamFailed,
    /// It never runs, and nothing failed.
    Skip,
}

impl Verdict {
    /// As the table shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Run => "run",
            Self::UpstreamFailed => "UPSTREAM_FAILED",
            Self::Skip => "SKIPPED",
        }
    }
}

/// Judges a node. Constant time.
pub fn verdict(rule: NodeRule, counts: Counts) -> Verdict {
    let Counts { ok, failed, skipped, open } = counts;
    let ended = open == 0;
    let early = |clause| ended || kept(clause);
    match rule {
        NodeRule::AllSuccess => {
            let passed = failed > 0 || (skipped > 0 && kept(Clause::AllSuccessMeansAll));
            decided(ended && !passed, passed, counts)
        }
        NodeRule::AllDone => decided(ended || !kept(Clause::AllDoneWaits), false, counts),
        NodeRule::AnySuccess => decided(ok > 0 && early(Clause::AnySuccessIsEarly), ended && ok == 0, counts),
        NodeRule::AnyFailed => decided(failed > 0 && early(Clause::AnyFailedIsEarly), ended && failed == 0, counts),
        NodeRule::NoneFailed => {
            let passed = failed > 0 || (skipped > 0 && !kept(Clause::NoneFailedTakesSkipped));
            decided(ended && !passed, passed, counts)
        }
    }
}

/// `never`: the rule can never be met any more.
fn decided(run: bool, never: bool, counts: Counts) -> Verdict {
    let Counts { failed, skipped, open, .. } = counts;
    if run {
        Verdict::Run
    } else if !never {
        Verdict::Wait
    } else if failed > 0 && (skipped == 0 || kept(Clause::FailureOutweighsSkip)) {
        if open == 0 || kept(Clause::UpstreamFailedIsEarly) { Verdict::UpstreamFailed } else { Verdict::Wait }
    } else if open == 0 || !kept(Clause::SkipWaits) {
        Verdict::Skip
    } else {
        Verdict::Wait
    }
}

/// The table as Markdown, a row for each way in which parents can stand; `docs/graph-rules.md` holds exactly this (a test compares
/// them). Only whether there are such parents counts, not how many.
pub fn markdown() -> String {
    let names: Vec<&str> = NodeRule::ALL.iter().map(|rule| rule.as_str()).collect();
    let mut text = format!("| ok | failed | skipped | open | {} |\n", names.join(" | "));
    text += &format!("|---|---|---|---|{}\n", "---|".repeat(names.len()));
    for counts in all_counts() {
        let cells = NodeRule::ALL.iter().map(|rule| verdict(*rule, counts).as_str());
        let cells: Vec<&str> = cells.collect();
        let shown =
            [counts.ok, counts.failed, counts.skipped, counts.open].map(|n| if n > 0 { "some" } else { "none" });
        text += &format!("| {} | {} |\n", shown.join(" | "), cells.join(" | "));
    }
    text
}

/// All sixteen ways in which there can be parents of a kind or not, the node without parents first.
fn all_counts() -> impl Iterator<Item = Counts> {
    (0u32..16).map(|n| Counts { ok: n >> 3 & 1, failed: n >> 2 & 1, skipped: n >> 1 & 1, open: n & 1 })
}
