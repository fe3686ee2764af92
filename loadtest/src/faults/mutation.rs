//! Defects that a node with the feature `faults` can be given (mutations), and the violations by which each must be
//! found. A verdict that is red for another reason has not found the defect. `kill9` and `chaos` use these
//! expectations.

use crate::checker::{Verdict, ViolationKind};

/// Each defect once: its name in the program, on the command line and in `CAMPANILE_FAULT`, and what it must be found as.
macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident = $text:literal => [$($kind:ident),+];)+) => {
        /// A defect that is put into the node on purpose.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        #[value(rename_all = "snake_case")]
        pub enum Mutation { $($(#[$doc])* $name),+ }
        impl Mutation {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// As the node names it.
            pub fn name(self) -> &'static str { match self { $(Self::$name => $text),+ } }
            /// One of these must be among what is found.
            pub fn expected(self) -> &'static [ViolationKind] { match self { $(Self::$name => &[$(ViolationKind::$kind),+]),+ } }
        }
    };
}

mutations! {
    /// Some batches of the journal are not written.
    SkipAppend = "skip_append" => [TriggerLost, CreateLost, StartUnknown, TokenReused, StartedWhilePaused];
    /// Batches are acknowledged before they are written.
    AckBeforeSync = "ack_before_sync" => [TriggerLost, CreateLost, StartUnknown, TokenReused, StartedWhilePaused];
    /// Some triggers by hand are acknowledged and forgotten.
    LostAck = "lost_ack" => [TriggerLost];
    /// A new attempt gets the token of the one before.
    ReuseToken = "reuse_token" => [TokenReused];
    /// A result is accepted whatever its token says.
    AcceptStale = "accept_stale" => [StaleAccepted];
    /// Some instants have no outcome.
    ForgetOutcome = "forget_outcome" => [OutcomeMissing];
    /// Some instants make two runs.
    DoubleFire = "double_fire" => [RunDoubled];
    /// Instants fire before they are due.
    FireEarly = "fire_early" => [StartEarly];
    /// Paused jobs fire.
    ForgetPause = "forget_pause" => [StartedWhilePaused];
    /// Every concurrency policy lets in as ALLOW does.
    ForgetPolicy = "forget_policy" => [BodiesOverlap];
    /// Tenants get one permit more than their quota has.
    QuotaPlusOne = "quota_plus_one" => [QuotaExceeded];
    /// The ledger says that instants were skipped which ran.
    LedgerLie = "ledger_lie" => [SkippedYetRan];
    /// The ledger names runs that never were.
    PhantomRun = "phantom_run" => [RunMissing];
    /// Some instants are skipped with a reason that the policy allows.
    SkipPlausibly = "skip_plausibly" => [OutcomeUnjustified, QueueNotFull];
    /// Some runs end CANCELED at once, and nobody asked for it.
    CancelUnasked = "cancel_unasked" => [EndedWithoutCause];
    /// Some successful bodies are recorded as TIMEOUT and started again.
    InventTimeout = "invent_timeout" => [AttemptEndInvented];
    /// Some successful bodies are recorded as CANCELED.
    InventCancel = "invent_cancel" => [AttemptEndInvented];
    /// Failed runs are not tried again.
    NoRetry = "no_retry" => [RetryMissing];
    /// Failed runs are tried again at once.
    NoBackoff = "no_backoff" => [BackoffNotKept];
    /// Runs that failed for good are no dead letters.
    ForgetDeadLetter = "forget_dead_letter" => [DeadLetterWrong];
    /// Bodies get no params.
    DropParams = "drop_params" => [ParamsWrong];
    /// Some results in the history are not those of the bodies.
    ChangeResult = "change_result" => [PayloadChanged];
    /// Jobs with a fixed delay are silent after their creation.
    DelaySilent = "delay_silent" => [DelaySilent];
    /// Some attempts are sent a second time for a job that does not exist.
    StrayBody = "stray_body" => [BodyOfNobody];
    /// Failed runs of idempotent jobs wait for a person.
    AskUndue = "ask_undue" => [ConfirmationUndue];
    /// Some instants fire late and are recorded as made in time.
    FireLate = "fire_late" => [StartedLate];
    /// Some runs are recorded as made later than they were.
    MadeLater = "made_later" => [CreatedAtUntrue];
    /// QUEUE_ONE keeps every instant and lets the newest go first.
    NewestFirst = "newest_first" => [OrderBroken];
    /// Some triggers by hand make two runs under one key.
    DoubleTrigger = "double_trigger" => [TriggerDoubled];
    /// Some triggers by hand make a second run under another key.
    PhantomTrigger = "phantom_trigger" => [TriggerUnasked];
    /// Some triggers by hand are refused and run all the same.
    RefuseYetRun = "refuse_yet_run" => [TriggerRefusedYetRun];
    /// The ledger tells of instants that were not due.
    ExtraOutcome = "extra_outcome" => [OutcomeUndue];
    /// Some successful runs are started again in the same generation.
    AcceptTwice = "accept_twice" => [AcceptedTwice];
    /// Failed runs are tried again though no attempt is left.
    EndlessRetry = "endless_retry" => [AttemptsExceeded];
    /// Deletes are acknowledged and forgotten.
    ForgetDelete = "forget_delete" => [StartedAfterDelete];
    /// Some attempts are recorded as successful and never sent.
    InventSuccess = "invent_success" => [SuccessWithoutStart];
    /// Some runs are sent twice, under two tokens.
    StartTwice = "start_twice" => [DoubleStartUnexplained];
    /// Some attempts are given up as lost while their executor is heard.
    LoseAtOnce = "lose_at_once" => [LostWithoutCause];
    /// Jobs that are not idempotent are treated as if they were.
    ForgetIdempotence = "forget_idempotence" => [NotIdempotentAgain];
    /// Tenants' rates are not kept.
    ForgetRate = "forget_rate" => [RateExceeded];
    /// Cancels are acknowledged and forgotten.
    ForgetCancel = "forget_cancel" => [StartedAfterCancel];
    /// Some runs that fail for good do not start their hook.
    ForgetHook = "forget_hook" => [HookMissing];
    /// Some ends start their hooks twice.
    DoubleHook = "double_hook" => [HookDoubled, CompensationDoubled];
    /// Runs that fail start what is there for those that succeed.
    HookUnasked = "hook_unasked" => [HookUnasked];
    /// What a run did is undone each time that it fails.
    UndoTwice = "undo_twice" => [CompensationDoubled];
    /// Nodes that wait for all of their parents begin when the first one has ended.
    NodeEarly = "node_early" => [DagOrderBroken];
    /// A condition that is false keeps no node from running.
    NodeUndue = "node_undue" => [DagNodeUndue];
    /// Some nodes of DAGs get two runs.
    DoubleNode = "double_node" => [DagNodeDoubled];
    /// Some runs of DAGs are not told that the run of a node has ended.
    ForgetEnd = "forget_end" => [DagLeftBehind];
    /// A run of a DAG ends while runs of its nodes go on.
    DagEndsFirst = "dag_ends_first" => [DagLeftBehind];
    /// Runs of DAGs succeed whatever became of their nodes.
    DagSucceeds = "dag_succeeds" => [DagStateWrong];
    /// Backfills of what is missing run everything.
    BackfillAll = "backfill_all" => [BackfillUnasked];
    /// Backfills run more at once than was asked for.
    BackfillWide = "backfill_wide" => [BackfillTooMany];
}

/// Defects that are rules of the node which it breaks, as `CAMPANILE_FAULT` names them.
const BROKEN_RULES: [(Mutation, &str); 8] = [
    (Mutation::HookUnasked, "hooks:SuccessAlone"),
    (Mutation::UndoTwice, "hooks:CompensatedOnce;outbox:CompensationOnce"),
    (Mutation::NodeEarly, "graph:AllDoneWaits"),
    (Mutation::NodeUndue, "graph:FalseConditionSkips"),
    (Mutation::DagEndsFirst, "graph:OpenUntilChildrenEnd"),
    (Mutation::DagSucceeds, "graph:FailureFails"),
    (Mutation::BackfillAll, "backfill:OnlyMissing"),
    (Mutation::BackfillWide, "backfill:ParallelismHolds"),
];

impl Mutation {
    /// What `CAMPANILE_FAULT` is set to.
    pub fn fault(self) -> String {
        let rule = BROKEN_RULES.iter().find(|(mutation, _)| *mutation == self);
        rule.map_or_else(|| format!("mutation:{}", self.name()), |(_, rule)| (*rule).to_owned())
    }

    /// Attempts that must fail, of 100, so that the defect has something to strike.
    pub fn fail_percent(self) -> u32 {
        const OFTEN: [(Mutation, u32); 6] = [
            (Mutation::EndlessRetry, 60),
            (Mutation::ForgetDeadLetter, 60),
            (Mutation::ForgetIdempotence, 30),
            (Mutation::AskUndue, 30),
            (Mutation::NoRetry, 10),
            (Mutation::NoBackoff, 10),
        ];
        OFTEN.iter().find(|(mutation, _)| *mutation == self).map_or(0, |(_, percent)| *percent)
    }

    /// How often an executor must stand still for longer than its lease, so that its results come too late.
    pub fn freezes(self) -> u32 {
        u32::from(self == Self::AcceptStale)
    }

    /// Says whether the verdict is red for the right reason; the line for people, and for the table of `make mutations`.
    pub fn judge(self, verdict: &Verdict) -> (bool, String) {
        let is_expected = |kind: &ViolationKind| self.expected().contains(kind);
        let mut kinds: Vec<_> = verdict.found.iter().map(|f| (!is_expected(&f.kind), f)).collect();
        kinds.sort_by_key(|(other, _)| *other);
        let kinds: Vec<String> = kinds.iter().map(|(_, f)| format!("{:?} x {}", f.kind, f.count)).collect();
        let found = verdict.found.iter().any(|f| is_expected(&f.kind));
        let what = match (found, verdict.green) {
            (true, _) => format!("RED, found: {}", kinds.join(", ")),
            (false, true) => format!("GREEN, not found; wanted {:?}", self.expected()),
            (false, false) => format!("RED for another reason; wanted {:?}, got {}", self.expected(), kinds.join(", ")),
        };
        (found, format!("mutation {:<18} {what}", self.name()))
    }
}

/// Defects of nodes of a cluster, which only `chaos` switches on, and what they must be found as. Of those without a kind the
/// scenario itself must tell: a session that is lost.
const OF_CLUSTERS: [(&str, &[ViolationKind]); 6] = [
    // Two nodes act for one shard.
    (
        "mutation:ignore_deadline",
        &[
            ViolationKind::OutcomeDoubled,
            ViolationKind::RunWithoutInstant,
            ViolationKind::RunMissing,
            ViolationKind::RunDoubled,
            ViolationKind::StartUnknown,
        ],
    ),
    // Whoever takes a shard does not know what its last owner did: it is gone, or decided a second time.
    (
        "mutation:forget_tail",
        &[
            ViolationKind::OutcomeMissing,
            ViolationKind::OutcomeDoubled,
            ViolationKind::StartUnknown,
            ViolationKind::TriggerLost,
            ViolationKind::CreateLost,
            ViolationKind::TokenReused,
        ],
    ),
    ("mutation:limits_alone", &[ViolationKind::QuotaExceeded]),
    ("mutation:leave_at_deadline", &[]),
    // An LWT that was not answered is taken for applied: whoever claims so acts beside the owner.
    ("rule:ClaimReadBack", &[ViolationKind::OutcomeDoubled, ViolationKind::RunDoubled, ViolationKind::OutcomeMissing]),
    (
        "rule:HeartbeatReadBack",
        &[ViolationKind::OutcomeDoubled, ViolationKind::RunDoubled, ViolationKind::OutcomeMissing],
    ),
];

/// Kinds of violation one of which must be found with a defect, as `CAMPANILE_FAULT` names it; several stand with semicolons between.
pub fn expected_of(defect: &str) -> Vec<ViolationKind> {
    let of_one = |part: &str| {
        let of_node = Mutation::ALL.iter().copied().find(|m| part.strip_prefix("mutation:") == Some(m.name()));
        let of_cluster = || OF_CLUSTERS.iter().find(|(name, _)| *name == part).map_or(&[][..], |(_, kinds)| kinds);
        // What a node told before it was durable is gone with the node, and its shards are another's: instants are missing too.
        let more: &[ViolationKind] = match of_node {
            Some(Mutation::AckBeforeSync) => &[ViolationKind::OutcomeMissing],
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
        assert_eq!(Mutation::ALL, Mutation::value_variants());
        for mutation in Mutation::ALL {
            assert_eq!(Mutation::from_str(mutation.name(), false), Ok(*mutation));
            assert!(!mutation.expected().is_empty());
        }
    }

    #[test]
    fn every_defect_of_chaos_must_be_found_as_something() {
        for scenario in crate::chaos::scenario::Scenario::known() {
            let by_sessions = scenario.keeps_sessions && scenario.defect == "mutation:leave_at_deadline";
            assert!(by_sessions == expected_of(scenario.defect).is_empty(), "{}", scenario.name);
            for part in scenario.defect.split(';') {
                let known = OF_CLUSTERS.iter().any(|(name, _)| *name == part)
                    || Mutation::ALL.iter().any(|m| part.strip_prefix("mutation:") == Some(m.name()));
                assert!(known, "{part} of {} has no row", scenario.name);
            }
        }
    }

    #[test]
    fn red_for_another_reason_has_not_found_the_defect() {
        let verdict = |kind: Option<ViolationKind>| {
            let history = crate::checker::History::default();
            let mut findings = crate::checker::Findings::new(&history);
            kind.into_iter().for_each(|kind| findings.of_all(kind, "x"));
            findings.into_verdict()
        };
        assert!(Mutation::FireEarly.judge(&verdict(Some(ViolationKind::StartEarly))).0);
        assert!(!Mutation::FireEarly.judge(&verdict(Some(ViolationKind::ExportIncomplete))).0);
        assert!(!Mutation::FireEarly.judge(&verdict(None)).0);
    }
}
