//! Defects that can be switched on, to see that the proofs turn red. Only under the feature `faults`; never in a release.
//!
//! Process-wide: a node sets them at its start (`CAMPANILE_FAULT=mutation:NAME`), a test holds its own lock around them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mutation {
    /// The cursor passes instants without an entry in the ledger.
    ForgetOutcome,
    /// A new attempt gets the token of the one before.
    ReuseToken,
    /// Instants are taken for due three seconds before they are.
    FireEarly,
    /// A result is accepted whatever its token says.
    AcceptStale,
    /// Paused jobs, tenants and systems fire.
    ForgetPause,
    /// Every concurrency policy lets in as ALLOW does.
    ForgetPolicy,
    /// Some instants make two runs.
    DoubleFire,
    /// Some triggers by hand are acknowledged and forgotten.
    LostAck,
    /// The ledger says that some instants were skipped, whose runs it made.
    LedgerLie,
    /// The ledger says that some instants fired, and names runs that never were.
    PhantomRun,
    /// Some instants are skipped with a reason that the job's policy allows, and do not run.
    SkipPlausibly,
    /// Some runs end CANCELED at once, without a body and without a call.
    CancelUnasked,
    /// Some results of bodies that succeeded are recorded as TIMEOUT, and the runs are started again.
    InventTimeout,
    /// Some results of bodies that succeeded are recorded as CANCELED.
    InventCancel,
    /// Runs that fail are not tried again.
    NoRetry,
    /// Runs that fail are tried again at once.
    NoBackoff,
    /// Runs that fail for good are no dead letters.
    ForgetDeadLetter,
    /// Bodies get no params.
    DropParams,
    /// Some results in the history are not those that bodies handed in.
    ChangeResult,
    /// Jobs with a fixed delay are silent for a while after their creation.
    DelaySilent,
    /// Some attempts are sent a second time under the ids of a job and a run that do not exist.
    StrayBody,
    /// Failed runs of idempotent jobs ask for a person's word.
    AskUndue,
    /// Some instants fire eight seconds late, and their runs are recorded as made in time.
    FireLate,
    /// Some runs are recorded as made two seconds later than they were.
    MadeLater,
    /// QUEUE_ONE keeps every instant, and lets the newest go on first.
    NewestFirst,
    /// Some triggers by hand make two runs under one key.
    DoubleTrigger,
    /// Some triggers by hand make a second run under a key that nobody sent.
    PhantomTrigger,
    /// The ledger tells of some instants that were not due.
    ExtraOutcome,
    /// Some successful runs are started again in the same generation.
    AcceptTwice,
    /// Failed runs are tried again though no attempt is left.
    EndlessRetry,
    /// Deletes are acknowledged and forgotten.
    ForgetDelete,
    /// Some attempts are recorded as successful and never sent.
    InventSuccess,
    /// Some runs are sent to an executor twice, under two tokens.
    StartTwice,
    /// Some attempts are given up as lost while their executor is heard.
    LoseAtOnce,
    /// Jobs that are not idempotent are treated as if they were.
    ForgetIdempotence,
    /// Cancels are acknowledged and forgotten.
    ForgetCancel,
    /// Some runs that fail for good do not start their hook.
    ForgetHook,
    /// Some ends start their hooks twice.
    DoubleHook,
    /// Some nodes of DAGs get two runs.
    DoubleNode,
    /// Some runs of DAGs are not told that the run of a node has ended.
    ForgetEnd,
}

/// Where a defect says "some", the instants or moments that it hits lie in one second of so many: rare enough to look like a bug, often enough for a short run.
const ONE_SECOND_OF: i64 = 5;

impl Mutation {
    pub const ALL: [Self; 40] = [
        Self::ForgetOutcome,
        Self::ReuseToken,
        Self::FireEarly,
        Self::AcceptStale,
        Self::ForgetPause,
        Self::ForgetPolicy,
        Self::DoubleFire,
        Self::LostAck,
        Self::LedgerLie,
        Self::PhantomRun,
        Self::SkipPlausibly,
        Self::CancelUnasked,
        Self::InventTimeout,
        Self::InventCancel,
        Self::NoRetry,
        Self::NoBackoff,
        Self::ForgetDeadLetter,
        Self::DropParams,
        Self::ChangeResult,
        Self::DelaySilent,
        Self::StrayBody,
        Self::AskUndue,
        Self::FireLate,
        Self::MadeLater,
        Self::NewestFirst,
        Self::DoubleTrigger,
        Self::PhantomTrigger,
        Self::ExtraOutcome,
        Self::AcceptTwice,
        Self::EndlessRetry,
        Self::ForgetDelete,
        Self::InventSuccess,
        Self::StartTwice,
        Self::LoseAtOnce,
        Self::ForgetIdempotence,
        Self::ForgetCancel,
        Self::ForgetHook,
        Self::DoubleHook,
        Self::DoubleNode,
        Self::ForgetEnd,
    ];

    /// As it is named in `CAMPANILE_FAULT=mutation:NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ForgetOutcome => "forget_outcome",
            Self::ReuseToken => "reuse_token",
            Self::FireEarly => "fire_early",
            Self::AcceptStale => "accept_stale",
            Self::ForgetPause => "forget_pause",
            Self::ForgetPolicy => "forget_policy",
            Self::DoubleFire => "double_fire",
            Self::LostAck => "lost_ack",
            Self::LedgerLie => "ledger_lie",
            Self::PhantomRun => "phantom_run",
            Self::SkipPlausibly => "skip_plausibly",
            Self::CancelUnasked => "cancel_unasked",
            Self::InventTimeout => "invent_timeout",
            Self::InventCancel => "invent_cancel",
            Self::NoRetry => "no_retry",
            Self::NoBackoff => "no_backoff",
            Self::ForgetDeadLetter => "forget_dead_letter",
            Self::DropParams => "drop_params",
            Self::ChangeResult => "change_result",
            Self::DelaySilent => "delay_silent",
            Self::StrayBody => "stray_body",
            Self::AskUndue => "ask_undue",
            Self::FireLate => "fire_late",
            Self::MadeLater => "made_later",
            Self::NewestFirst => "newest_first",
            Self::DoubleTrigger => "double_trigger",
            Self::PhantomTrigger => "phantom_trigger",
            Self::ExtraOutcome => "extra_outcome",
            Self::AcceptTwice => "accept_twice",
            Self::EndlessRetry => "endless_retry",
            Self::ForgetDelete => "forget_delete",
            Self::InventSuccess => "invent_success",
            Self::StartTwice => "start_twice",
            Self::LoseAtOnce => "lose_at_once",
            Self::ForgetIdempotence => "forget_idempotence",
            Self::ForgetCancel => "forget_cancel",
            Self::ForgetHook => "forget_hook",
            Self::DoubleHook => "double_hook",
            Self::DoubleNode => "double_node",
            Self::ForgetEnd => "forget_end",
        }
    }
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }
    fn bit(self) -> u64 {
        1 << self as u32
    }
}

static ACTIVE: AtomicU64 = AtomicU64::new(0);

/// Switches a defect on or off, for the whole process.
pub fn set(mutation: Mutation, on: bool) {
    if on {
        ACTIVE.fetch_or(mutation.bit(), Ordering::Relaxed);
    } else {
        ACTIVE.fetch_and(!mutation.bit(), Ordering::Relaxed);
    }
}

/// Whether a defect is switched on.
pub fn active(mutation: Mutation) -> bool {
    ACTIVE.load(Ordering::Relaxed) & mutation.bit() != 0
}

/// Whether a defect that is not in force all the time strikes at this instant.
pub fn strikes(mutation: Mutation, at_ms: i64) -> bool {
    active(mutation) && at_ms.div_euclid(1000).rem_euclid(ONE_SECOND_OF) == 0
}

static NO_DEADLINE: AtomicBool = AtomicBool::new(false);

/// Sessions of this process act on when their lease has run out.
pub fn ignore_deadlines() {
    NO_DEADLINE.store(true, Ordering::Relaxed);
}

/// Whether a lease never ends here.
pub fn has_no_deadline() -> bool {
    NO_DEADLINE.load(Ordering::Relaxed)
}
