//! What can happen to a job.

use super::make::{BASES, definition, ms};
use campanile_schema::{record::AttemptState, stored::StoredJob, view::ConfirmDecision};
use proptest::{collection::vec, prelude::*, sample::select};

/// One thing that happens. `pick` chooses among the runs that it fits, or among all when it fits none.
#[derive(Clone, Debug)]
pub enum Op {
    /// Time goes on and the shard wakes the job whenever it wants to be woken.
    Pass {
        ms: i64,
    },
    /// The same for a part of the schedule's own interval, eighths.
    PassInstants {
        eighths: i64,
    },
    /// Nobody wakes the job for some instants, then again.
    Outage {
        instants: i64,
    },
    ClockBack {
        ms: i64,
    },
    Start {
        pick: usize,
    },
    Finish {
        pick: usize,
        state: AttemptState,
    },
    /// A result with a token of before, or one that never was.
    FinishStale {
        pick: usize,
        state: AttemptState,
    },
    /// The same run is started and ended so again and again.
    Grind {
        state: AttemptState,
        times: usize,
    },
    Suspect {
        pick: usize,
    },
    Heard {
        pick: usize,
        again: bool,
    },
    Lost {
        pick: usize,
    },
    LostStale {
        pick: usize,
    },
    Cancel {
        pick: usize,
    },
    Confirm {
        pick: usize,
        decision: ConfirmDecision,
    },
    Trigger {
        key: Option<u8>,
        params: bool,
    },
    Pause,
    Resume,
    Replace {
        def: Box<StoredJob>,
        stale: bool,
    },
    Delete,
    Quarantine,
    Reopen {
        pick: usize,
        redrive: bool,
    },
    Discard {
        pick: usize,
    },
    TenantPause {
        on: bool,
    },
    QueueFull {
        on: bool,
    },
    /// Effects are lost; the job comes back from its bytes and owes what `pending` says.
    Crash,
}

/// A definition, when it is created, and what happens then.
#[derive(Clone, Debug)]
pub struct History {
    pub base_ms: i64,
    pub def: StoredJob,
    pub ops: Vec<Op>,
}

fn ended() -> impl Strategy<Value = AttemptState> {
    use AttemptState as A;
    select(vec![A::Success, A::Success, A::Failed, A::Failed, A::Failed, A::Timeout, A::Canceled, A::NotStarted])
}

fn op(base_ms: i64) -> impl Strategy<Value = Op> {
    let pick = any::<usize>();
    let decision = select(ConfirmDecision::ALL.to_vec());
    let time = prop_oneof![
        2 => (1i64..5_000).prop_map(|ms| Op::Pass { ms }),
        2 => (1i64..70_000).prop_map(|ms| Op::Pass { ms }),
        6 => (1i64..20).prop_map(|eighths| Op::PassInstants { eighths }),
        2 => (1i64..30).prop_map(|instants| Op::Outage { instants }),
        1 => (1i64..2_000).prop_map(|instants| Op::Outage { instants }),
        1 => (1i64..100_000).prop_map(|ms| Op::ClockBack { ms }),
    ];
    let attempt = prop_oneof![
        6 => pick.prop_map(|pick| Op::Start { pick }),
        6 => (pick, ended()).prop_map(|(pick, state)| Op::Finish { pick, state }),
        1 => (pick, ended()).prop_map(|(pick, state)| Op::FinishStale { pick, state }),
        1 => (ended(), 1usize..40).prop_map(|(state, times)| Op::Grind { state, times }),
        1 => pick.prop_map(|pick| Op::Suspect { pick }),
        1 => (pick, any::<bool>()).prop_map(|(pick, again)| Op::Heard { pick, again }),
        2 => pick.prop_map(|pick| Op::Lost { pick }),
        1 => pick.prop_map(|pick| Op::LostStale { pick }),
    ];
    let person = prop_oneof![
        2 => pick.prop_map(|pick| Op::Cancel { pick }),
        2 => (pick, decision).prop_map(|(pick, decision)| Op::Confirm { pick, decision }),
        3 => (proptest::option::of(0u8..4), any::<bool>()).prop_map(|(key, params)| Op::Trigger { key, params }),
        2 => (pick, any::<bool>()).prop_map(|(pick, redrive)| Op::Reopen { pick, redrive }),
        1 => pick.prop_map(|pick| Op::Discard { pick }),
        2 => Just(Op::Pause),
        3 => Just(Op::Resume),
        2 => (definition(base_ms), any::<bool>()).prop_map(|(def, stale)| Op::Replace { def: Box::new(def), stale }),
    ];
    let rest = prop_oneof![
        2 => any::<bool>().prop_map(|on| Op::TenantPause { on }),
        2 => prop::bool::weighted(0.3).prop_map(|on| Op::QueueFull { on }),
        3 => Just(Op::Crash),
        1 => Just(Op::Quarantine),
        1 => prop::bool::weighted(0.3).prop_map(|delete| if delete { Op::Delete } else { Op::Resume }),
    ];
    prop_oneof![8 => time, 10 => attempt, 4 => person, 2 => rest]
}

/// Any history.
pub fn history() -> impl Strategy<Value = History> {
    select(&BASES[..]).prop_flat_map(|base| {
        let base_ms = ms(base);
        (definition(base_ms), vec(op(base_ms), 1..70)).prop_map(move |(def, ops)| History { base_ms, def, ops })
    })
}
