//! Defects that a node with the feature `faults` can be given, and what each must turn red. A verdict that is red for another
//! reason has not found the defect.

use crate::checker::{Kind, Verdict};

/// A defect that is put into the node on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Mutation {
    /// Some batches of the journal are not written.
    SkipAppend,
    /// Batches are acknowledged before they are written.
    AckBeforeSync,
    /// Some triggers by hand are acknowledged and forgotten.
    LostAck,
    /// A new attempt gets the token of the one before.
    ReuseToken,
    /// A result is accepted whatever its token says.
    AcceptStale,
    /// Some instants have no outcome.
    ForgetOutcome,
    /// Some instants make two runs.
    DoubleFire,
    /// Instants fire before they are due.
    FireEarly,
    /// Paused jobs fire.
    ForgetPause,
    /// Every concurrency policy lets in as ALLOW does.
    ForgetPolicy,
    /// Tenants get one permit more than their quota has.
    QuotaPlusOne,
    /// The ledger says that instants were skipped which ran.
    LedgerLie,
    /// The ledger names runs that never were.
    PhantomRun,
}

impl Mutation {
    pub const ALL: [Self; 13] = [
        Self::SkipAppend,
        Self::AckBeforeSync,
        Self::LostAck,
        Self::ReuseToken,
        Self::AcceptStale,
        Self::ForgetOutcome,
        Self::DoubleFire,
        Self::FireEarly,
        Self::ForgetPause,
        Self::ForgetPolicy,
        Self::QuotaPlusOne,
        Self::LedgerLie,
        Self::PhantomRun,
    ];

    /// As the node names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SkipAppend => "skip_append",
            Self::AckBeforeSync => "ack_before_sync",
            Self::LostAck => "lost_ack",
            Self::ReuseToken => "reuse_token",
            Self::AcceptStale => "accept_stale",
            Self::ForgetOutcome => "forget_outcome",
            Self::DoubleFire => "double_fire",
            Self::FireEarly => "fire_early",
            Self::ForgetPause => "forget_pause",
            Self::ForgetPolicy => "forget_policy",
            Self::QuotaPlusOne => "quota_plus_one",
            Self::LedgerLie => "ledger_lie",
            Self::PhantomRun => "phantom_run",
        }
    }

    /// One of these must be among what is found.
    pub fn expected(self) -> &'static [Kind] {
        match self {
            // What was told to callers and executors is gone after the next kill.
            Self::SkipAppend | Self::AckBeforeSync => {
                &[Kind::TriggerLost, Kind::CreateLost, Kind::StartUnknown, Kind::TokenReused, Kind::StartedWhilePaused]
            }
            Self::LostAck => &[Kind::TriggerLost],
            Self::ReuseToken => &[Kind::TokenReused],
            Self::AcceptStale => &[Kind::StaleAccepted],
            Self::ForgetOutcome => &[Kind::OutcomeMissing],
            Self::DoubleFire => &[Kind::RunDoubled],
            Self::FireEarly => &[Kind::StartEarly],
            Self::ForgetPause => &[Kind::StartedWhilePaused],
            Self::ForgetPolicy => &[Kind::BodiesOverlap],
            Self::QuotaPlusOne => &[Kind::QuotaExceeded],
            Self::LedgerLie => &[Kind::SkippedYetRan],
            Self::PhantomRun => &[Kind::RunMissing],
        }
    }

    /// How often an executor must stand still for longer than its lease, so that its results come too late.
    pub fn freezes(self) -> u32 {
        u32::from(self == Self::AcceptStale)
    }

    /// Says whether the verdict is red for the right reason; the line for people, and for the table of `make mutations`.
    pub fn judge(self, verdict: &Verdict) -> (bool, String) {
        let is_expected = |kind: &Kind| self.expected().contains(kind);
        let mut kinds: Vec<_> = verdict.found.iter().map(|f| (!is_expected(&f.kind), f)).collect();
        kinds.sort_by_key(|(other, _)| *other);
        let kinds: Vec<String> = kinds.iter().map(|(_, f)| format!("{:?} x {}", f.kind, f.count)).collect();
        let found = verdict.found.iter().any(|f| is_expected(&f.kind));
        let what = match (found, verdict.green) {
            (true, _) => format!("RED, found: {}", kinds.join(", ")),
            (false, true) => format!("GREEN, not found; wanted {:?}", self.expected()),
            (false, false) => format!("RED for another reason; wanted {:?}, got {}", self.expected(), kinds.join(", ")),
        };
        (found, format!("mutation {:<16} {what}", self.name()))
    }
}

/// Defects of nodes of a cluster, which only `chaos` switches on, and what they must be found as. Of those without a kind the
/// scenario itself must tell: a session that is lost.
const OF_CLUSTERS: [(&str, &[Kind]); 6] = [
    // Two nodes act for one shard.
    (
        "mutation:ignore_deadline",
        &[Kind::OutcomeDoubled, Kind::RunWithoutInstant, Kind::RunMissing, Kind::RunDoubled, Kind::StartUnknown],
    ),
    // Whoever takes a shard does not know what its last owner did.
    (
        "mutation:forget_tail",
        &[Kind::OutcomeMissing, Kind::StartUnknown, Kind::TriggerLost, Kind::CreateLost, Kind::TokenReused],
    ),
    ("mutation:limits_alone", &[Kind::QuotaExceeded]),
    ("mutation:leave_at_deadline", &[]),
    // An LWT that was not answered is taken for applied: whoever claims so acts beside the owner.
    ("rule:ClaimReadBack", &[Kind::OutcomeDoubled, Kind::RunDoubled, Kind::OutcomeMissing]),
    ("rule:HeartbeatReadBack", &[Kind::OutcomeDoubled, Kind::RunDoubled, Kind::OutcomeMissing]),
];

/// Kinds of violation one of which must be found with a defect, as `CAMPANILE_FAULT` names it; several stand with semicolons between.
pub fn expected_of(defect: &str) -> Vec<Kind> {
    let of_one = |part: &str| {
        let of_node = Mutation::ALL.into_iter().find(|m| part.strip_prefix("mutation:") == Some(m.name()));
        let of_cluster = || OF_CLUSTERS.iter().find(|(name, _)| *name == part).map_or(&[][..], |(_, kinds)| kinds);
        // What a node told before it was durable is gone with the node, and its shards are another's: instants are missing too.
        let more: &[Kind] = match of_node {
            Some(Mutation::AckBeforeSync) => &[Kind::OutcomeMissing],
            Some(_) | None => &[],
        };
        [of_node.map_or_else(of_cluster, Mutation::expected), more].concat()
    };
    defect.split(';').flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_on_the_command_line_are_those_of_the_node() {
        assert_eq!(Mutation::ALL.as_slice(), Mutation::value_variants());
        for mutation in Mutation::ALL {
            assert_eq!(Mutation::from_str(mutation.name(), false), Ok(mutation));
            assert!(!mutation.expected().is_empty());
        }
    }

    #[test]
    fn every_defect_of_chaos_must_be_found_as_something() {
        for scenario in crate::chaos::scenario::Scenario::all() {
            let by_sessions = scenario.keeps_sessions && scenario.defect == "mutation:leave_at_deadline";
            assert!(by_sessions != !expected_of(scenario.defect).is_empty(), "{}", scenario.name);
            for part in scenario.defect.split(';') {
                let known = OF_CLUSTERS.iter().any(|(name, _)| *name == part)
                    || Mutation::ALL.iter().any(|m| part.strip_prefix("mutation:") == Some(m.name()));
                assert!(known, "{part} of {} has no row", scenario.name);
            }
        }
    }

    #[test]
    fn red_for_another_reason_has_not_found_the_defect() {
        let verdict = |kind: Option<Kind>| {
            let history = crate::checker::History::default();
            let mut findings = crate::checker::Findings::new(&history);
            kind.into_iter().for_each(|kind| findings.of_all(kind, "x"));
            findings.into_verdict()
        };
        assert!(Mutation::FireEarly.judge(&verdict(Some(Kind::StartEarly))).0);
        assert!(!Mutation::FireEarly.judge(&verdict(Some(Kind::ExportIncomplete))).0);
        assert!(!Mutation::FireEarly.judge(&verdict(None)).0);
    }
}
