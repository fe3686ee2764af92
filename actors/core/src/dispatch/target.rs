//! The health of a target, which is a named system that bodies call: a database, a partner's API. A node keeps it for each target
//! that its jobs name, from the ends of attempts.
//!
//! Two things protect a target that is in trouble. The *breaker* stops attempts while most of them fail. It is in one of three states:
//!
//! - *closed*: attempts start as the limits of the target allow;
//! - *open*: nothing starts until a time; each opening in a row lasts twice as long as the one before, up to a limit;
//! - *recovering*: one attempt starts. Each attempt that works makes room for one more at once, so their number doubles with each
//!   round of them, and a backlog does not come down on the target in one moment. A failure halves the room, and the failure of a
//!   lone attempt opens the breaker again.
//!
//! The *retry budget* bounds what retries add to the load: each first attempt pays for a part of one retry. A small reserve, which
//! comes back with time, lets a target with little traffic retry too.
//!
//! Invariants: retries that have started are never more than the reserve, what first attempts have paid for, and what time has
//! brought; nothing starts while the breaker is open; the end of an attempt that began before the breaker opened says nothing about
//! the target of now. `tests/dispatch_model/targets.rs` compares it with a simple implementation.
//!
//! It never reads a clock. Limits to runs at once and to a rate are [`super::permit`]'s.

use super::rules::{Rule, kept};
use campanile_schema::limits::{
    TARGET_OPEN_TIMES, TARGET_RETRIES_SAVED, TARGET_RETRY_EVERY_MS, TARGET_RETRY_RESERVE, TARGET_ROOM, TARGET_WINDOW_MS,
};

/// What is set for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthTerms {
    /// Retries among a hundred first attempts.
    pub retry_percent: u32,
    /// The breaker opens when so many of a hundred attempts fail. 0: it never does.
    pub failure_percent: u32,
    /// Attempts of a window that must have ended before the breaker opens.
    pub min_attempts: u32,
    /// How long it is open at first, ms.
    pub open_ms: i64,
}

/// What the end of an attempt says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Worked,
    Failed,
    /// The attempt was canceled, lost with its executor, refused, or failed by its own fault.
    Silent,
}

/// State of the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    Closed,
    /// Until this time, CLOCK_BOOTTIME ms.
    Open {
        until_ms: i64,
    },
    /// So many attempts may run at once.
    Recovering {
        room: u32,
    },
}

/// Why an attempt may not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Open { until_ms: i64 },
    Recovering { room: u32 },
    RetryBudget,
}

/// Attempts that ended in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began_ms: i64,
    ended: u32,
    failed: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct TargetHealth {
    terms: HealthTerms,
    breaker: Breaker,
    /// Rises when the breaker opens: what began earlier does not count any more.
    round: u64,
    /// Attempts of this round that run.
    under_way: u32,
    /// Openings since it was closed last.
    openings: u32,
    window: Window,
    /// Retries that may start.
    budget: f64,
    /// Last look at the clock. None: there was none.
    looked_ms: Option<i64>,
}

impl TargetHealth {
    pub fn new(terms: HealthTerms) -> Self {
        Self {
            terms,
            breaker: Breaker::Closed,
            round: 0,
            under_way: 0,
            openings: 0,
            window: Window::default(),
            budget: f64::from(TARGET_RETRY_RESERVE),
            looked_ms: None,
        }
    }

    pub fn terms(&self) -> HealthTerms {
        self.terms
    }

    /// They hold from the next attempt on. Without a breaker nothing is held back any more.
    pub fn set_terms(&mut self, terms: HealthTerms) {
        self.terms = terms;
        if terms.failure_percent == 0 {
            self.close();
        }
    }

    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// Time has passed; `now_ms` is CLOCK_BOOTTIME.
    pub fn look(&mut self, now_ms: i64) {
        let passed = self.looked_ms.map_or(0, |before| now_ms - before).max(0);
        self.looked_ms = Some(now_ms);
        let reserve = f64::from(TARGET_RETRY_RESERVE);
        if self.budget < reserve {
            self.budget = (self.budget + passed as f64 / TARGET_RETRY_EVERY_MS as f64).min(reserve);
        }
        if let Breaker::Open { until_ms } = self.breaker
            && (now_ms >= until_ms || !kept(Rule::OpenBreakerHolds))
        {
            let room = if kept(Rule::TargetComesBackSlowly) { 1 } else { TARGET_ROOM };
            self.breaker = Breaker::Recovering { room };
        }
    }

    /// Attempts that may start now, as far as the breaker says.
    pub fn room(&self) -> usize {
        match self.breaker {
            Breaker::Closed => usize::MAX,
            Breaker::Open { .. } => 0,
            Breaker::Recovering { room } => room.saturating_sub(self.under_way) as usize,
        }
    }

    /// Retries that may start now, as far as the budget says.
    pub fn retries_left(&self) -> usize {
        if kept(Rule::RetriesAreFew) { self.budget.max(0.0) as usize } else { usize::MAX }
    }

    /// Why an attempt may not start now; `retry`: the run has failed before.
    pub fn refuses(&self, retry: bool) -> Option<Refusal> {
        match self.breaker {
            Breaker::Open { until_ms } => Some(Refusal::Open { until_ms }),
            Breaker::Recovering { room } if self.room() == 0 => Some(Refusal::Recovering { room }),
            Breaker::Closed | Breaker::Recovering { .. } => {
                (retry && self.retries_left() == 0).then_some(Refusal::RetryBudget)
            }
        }
    }

    /// An attempt starts. Gives what its end has to name.
    pub fn starts(&mut self, retry: bool) -> u64 {
        if retry {
            if kept(Rule::RetryIsSpent) {
                self.budget -= 1.0;
            }
        } else {
            let saved = self.budget + f64::from(self.terms.retry_percent) / 100.0;
            let most = f64::from(TARGET_RETRIES_SAVED);
            self.budget = if kept(Rule::RetriesSavedAreFinite) { saved.min(most) } else { saved };
        }
        self.adopts()
    }

    /// An attempt runs already: it is neither paid for nor pays.
    pub fn adopts(&mut self) -> u64 {
        self.under_way += 1;
        self.round
    }

    /// The attempt was not started after all: what it took is there again.
    pub fn gives_back(&mut self, round: u64, retry: bool) {
        if retry {
            self.budget = (self.budget + 1.0).min(f64::from(TARGET_RETRIES_SAVED));
        } else {
            self.budget = (self.budget - f64::from(self.terms.retry_percent) / 100.0).max(0.0);
        }
        self.is_over(round);
    }

    /// The attempt that began in this round ended.
    pub fn ends(&mut self, round: u64, verdict: Verdict, now_ms: i64) {
        if self.is_over(round) {
            match self.breaker {
                Breaker::Closed => self.count(verdict, now_ms),
                Breaker::Open { .. } => {}
                Breaker::Recovering { room } => self.recovers(room, verdict, now_ms),
            }
        }
    }

    /// Whether the end of an attempt of this round counts.
    fn is_over(&mut self, round: u64) -> bool {
        let counts = round == self.round || !kept(Rule::OldEndsSayNothing);
        if counts {
            self.under_way = self.under_way.saturating_sub(1);
        }
        counts
    }

    fn count(&mut self, verdict: Verdict, now_ms: i64) {
        if now_ms - self.window.began_ms >= TARGET_WINDOW_MS {
            self.window = Window { began_ms: now_ms, ..Window::default() };
        }
        let failed = match verdict {
            Verdict::Worked => 0,
            Verdict::Failed => 1,
            Verdict::Silent => return,
        };
        self.window.ended += 1;
        self.window.failed += failed;
        let Window { ended, failed, .. } = self.window;
        let percent = self.terms.failure_percent;
        let many = u64::from(failed) * 100 >= u64::from(percent) * u64::from(ended);
        if percent > 0 && ended >= self.terms.min_attempts && many && kept(Rule::BreakerOpens) {
            self.open(now_ms);
        }
    }

    fn recovers(&mut self, room: u32, verdict: Verdict, now_ms: i64) {
        match verdict {
            Verdict::Worked if room >= TARGET_ROOM => self.close(),
            Verdict::Worked => self.breaker = Breaker::Recovering { room: room + 1 },
            Verdict::Failed if room <= 1 && kept(Rule::ProbeDecides) => self.open(now_ms),
            Verdict::Failed => {
                let room = if kept(Rule::FailureHalvesTheRoom) { room / 2 } else { room };
                self.breaker = Breaker::Recovering { room: room.max(1) };
            }
            Verdict::Silent => {}
        }
    }

    fn open(&mut self, now_ms: i64) {
        let times = if kept(Rule::OpensForLonger) { 1_i64 << self.openings.min(30) } else { 1 };
        let until_ms = now_ms + self.terms.open_ms * times.min(TARGET_OPEN_TIMES);
        self.openings += 1;
        self.round += 1;
        self.under_way = 0;
        self.breaker = Breaker::Open { until_ms };
    }

    fn close(&mut self) {
        self.breaker = Breaker::Closed;
        self.openings = 0;
        self.window = Window::default();
    }
}
