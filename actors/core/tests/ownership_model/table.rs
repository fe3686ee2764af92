//! How often each transition and each fault was taken.

use campanile_core::ownership::Transition;
use std::{collections::BTreeMap, fmt::Write};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What goes wrong in the world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $name,)* }
        impl Fault {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

faults!(
    /// An LWT never reaches the store; its sender hears of a timeout.
    LwtLost,
    /// An LWT is executed; its sender hears of a timeout.
    LwtAnswerLost,
    /// An LWT is executed long after its sender heard of a timeout.
    LwtLate,
    /// An LWT is executed twice; its sender hears the second answer.
    LwtDoubled,
    /// A read times out.
    ReadLost,
    /// A row of the journal reaches one replica; the others later or never.
    WritePartial,
    /// A row of the journal reaches no replica in time.
    WriteLate,
    /// The store does nothing for some time.
    StoreStalled,
    /// A process stops for less than its lease.
    ShortPause,
    /// A process stops for longer than its lease.
    LongPause,
    Crash,
    /// All processes crash at once.
    CrashOfAll,
    /// A crashed process comes back and knows that its predecessor is gone.
    RestartKnowing,
    /// A crashed process comes back and knows nothing of its predecessor.
    RestartAfresh,
    /// A node gives all its shards away and ends its session.
    Drain,
    /// A node gives its session up: a row could not be written.
    GiveUp,
    /// A node sees members that are gone, or misses one that lives.
    WrongHints,
    /// The message of a hand-over is lost.
    NoticeLost,
    /// A request to the quota, or its answer, is lost.
    RequestLost,
    /// A request to the quota, or its answer, comes twice.
    RequestDoubled,
    /// The projection stands still for some time.
    ProjectionStalled,
);

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub transitions: BTreeMap<Transition, u64>,
    pub faults: BTreeMap<Fault, u64>,
    pub steps: u64,
    pub acknowledged: u64,
    pub loads: u64,
    /// Of these, those that could go on with what was read before the claim; and those that could not.
    pub read_ahead: u64,
    pub read_in_vain: u64,
    pub moves_of_permits: u64,
}

impl Table {
    pub fn took(&mut self, transition: Transition) {
        *self.transitions.entry(transition).or_default() += 1;
    }

    pub fn fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (transition, count) in &other.transitions {
            *self.transitions.entry(*transition).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        self.steps += other.steps;
        self.acknowledged += other.acknowledged;
        self.loads += other.loads;
        self.read_ahead += other.read_ahead;
        self.read_in_vain += other.read_in_vain;
        self.moves_of_permits += other.moves_of_permits;
    }

    /// Every transition and fault with its count, and those that were taken less often than wanted.
    pub fn rows(&self) -> Vec<(String, u64)> {
        let transitions = Transition::ALL.iter().map(|t| (format!("{t:?}"), self.transitions.get(t)));
        let faults = Fault::ALL.iter().map(|f| (format!("fault: {f:?}"), self.faults.get(f)));
        transitions.chain(faults).map(|(name, count)| (name, count.copied().unwrap_or(0))).collect()
    }

    pub fn rarer_than(&self, least: u64) -> Vec<(String, u64)> {
        self.rows().into_iter().filter(|(_, count)| *count < least).collect()
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, count) in self.rows() {
            let _ = writeln!(text, "{name:<32}{count:>12}");
        }
        let _ = writeln!(
            text,
            "steps {}, rows acknowledged {}, shards loaded {} ({} read ahead, {} in vain), requests to the quota decided {}",
            self.steps, self.acknowledged, self.loads, self.read_ahead, self.read_in_vain, self.moves_of_permits
        );
        text
    }
}
