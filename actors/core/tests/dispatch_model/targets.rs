//! A random history of one target: its breaker against a simple implementation of the same words, its retries against the list of all
//! attempts that have started.

use super::{Random, Violation, ViolationKind};
use campanile_core::dispatch::target::{Breaker, HealthTerms, TargetHealth, Verdict};

/// The limits of the documentation, and not those of the program.
const WINDOW_MS: i64 = 10_000;
const RESERVE: f64 = 10.0;
const RETRY_EVERY_MS: f64 = 60_000.0;
const SAVED: f64 = 100.0;
const LONGEST: i64 = 8;
const ROOM: u32 = 256;
/// The reserve is whole after so long, ms.
const FULL_MS: i64 = 600_000;
/// Sums of parts are not exact.
const SLACK: f64 = 1e-6;

/// An attempt that runs.
struct Running {
    round: u64,
    /// Openings of all time when it began.
    openings: usize,
    retry: bool,
}

/// What the words of the guide say, by the shortest way.
struct Plain {
    terms: HealthTerms,
    /// None: it is not open.
    open_until_ms: Option<i64>,
    /// None: it does not recover.
    room: Option<u32>,
    /// Openings of all time, and since it was closed.
    openings: usize,
    in_a_row: u32,
    /// Attempts that ended in the window: when, and whether they failed.
    ended: Vec<(i64, bool)>,
    window_began_ms: i64,
}

impl Plain {
    fn look(&mut self, now_ms: i64) {
        if self.open_until_ms.is_some_and(|until| now_ms >= until) {
            (self.open_until_ms, self.room) = (None, Some(1));
        }
    }

    /// `under_way`: attempts that began since the last opening.
    fn holds_back(&self, under_way: usize) -> bool {
        self.open_until_ms.is_some() || self.room.is_some_and(|room| under_way >= room as usize)
    }

    fn open(&mut self, now_ms: i64) {
        let times = (0..self.in_a_row).fold(1, |times: i64, _| (times * 2).min(LONGEST));
        self.open_until_ms = Some(now_ms + self.terms.open_ms * times);
        (self.room, self.ended) = (None, Vec::new());
        (self.openings, self.in_a_row) = (self.openings + 1, self.in_a_row + 1);
    }

    fn ends(&mut self, openings: usize, verdict: Verdict, now_ms: i64) {
        if openings != self.openings || self.open_until_ms.is_some() {
            return;
        }
        match (self.room, verdict) {
            (_, Verdict::Silent) => {}
            (None, verdict) => self.counts(verdict == Verdict::Failed, now_ms),
            (Some(ROOM), Verdict::Worked) => {
                (self.room, self.in_a_row, self.ended, self.window_began_ms) = (None, 0, Vec::new(), 0);
            }
            (Some(room), Verdict::Worked) => self.room = Some(room + 1),
            (Some(1), Verdict::Failed) => self.open(now_ms),
            (Some(room), Verdict::Failed) => self.room = Some(room / 2),
        }
    }

    fn counts(&mut self, failed: bool, now_ms: i64) {
        if now_ms - self.window_began_ms >= WINDOW_MS {
            (self.ended, self.window_began_ms) = (Vec::new(), now_ms);
        }
        self.ended.push((now_ms, failed));
        let failures = self.ended.iter().filter(|(_, failed)| *failed).count();
        let share = failures as f64 / self.ended.len() as f64;
        let enough = self.ended.len() >= self.terms.min_attempts as usize;
        if enough && self.terms.failure_percent > 0 && share * 100.0 >= f64::from(self.terms.failure_percent) - SLACK {
            self.open(now_ms);
        }
    }
}

struct Play {
    random: Random,
    now_ms: i64,
    health: TargetHealth,
    plain: Plain,
    running: Vec<Running>,
    /// When first attempts and retries started.
    firsts: Vec<i64>,
    retries: Vec<i64>,
    /// Attempts that fail now, and that are retries, of a hundred.
    trouble: u64,
    retry_share: u64,
}

/// Plays so many steps; the first thing that is wrong ends it.
pub fn play(seed: u64, steps: u64) -> Result<(), Violation> {
    let mut random = Random::new(seed);
    let terms = HealthTerms {
        retry_percent: random.one_of(&[0, 10, 50, 100]),
        failure_percent: random.one_of(&[0, 30, 50, 100]),
        min_attempts: random.one_of(&[1, 3, 10]),
        open_ms: random.one_of(&[500, 3_000]),
    };
    let plain = Plain {
        terms,
        open_until_ms: None,
        room: None,
        openings: 0,
        in_a_row: 0,
        ended: Vec::new(),
        window_began_ms: 0,
    };
    let mut play = Play {
        random,
        now_ms: 20_000,
        health: TargetHealth::new(terms),
        plain,
        running: Vec::new(),
        firsts: Vec::new(),
        retries: Vec::new(),
        trouble: 0,
        retry_share: 0,
    };
    play.pass(0);
    for _ in 0..steps {
        play.step()?;
    }
    Ok(())
}

impl Play {
    fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        self.health.look(self.now_ms);
        self.plain.look(self.now_ms);
    }

    fn step(&mut self) -> Result<(), Violation> {
        match self.random.below(100) {
            0..40 => {
                for _ in 0..=self.random.below(30) {
                    let retry = self.random.chance(self.retry_share);
                    self.asks(retry)?;
                }
            }
            40..70 => {
                for _ in 0..=self.random.below(20) {
                    self.one_ends();
                }
            }
            70..75 => self.one_is_given_back(),
            75..92 => {
                let ms = self.random.below(1_500) as i64;
                self.pass(ms);
            }
            92..94 => return self.is_idle(),
            _ => {
                self.trouble = self.random.one_of(&[0, 0, 5, 60, 100]);
                self.retry_share = self.random.one_of(&[0, 30, 100]);
            }
        }
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.running.iter().filter(|running| running.openings == self.plain.openings).count()
    }

    fn asks(&mut self, retry: bool) -> Result<(), Violation> {
        let (refused, holds_back) = (self.health.refuses(retry), self.plain.holds_back(self.under_way()));
        let by_breaker = self.health.refuses(false).is_some();
        let state: Breaker = self.health.breaker();
        if by_breaker != holds_back || (refused.is_none() && self.health.room() == 0) {
            let told = format!("{state:?} refuses: {by_breaker}, it should: {holds_back}, at {}", self.now_ms);
            return Err(Violation::of(ViolationKind::Breaker, told));
        }
        if refused.is_some() {
            return Ok(());
        }
        let round = self.health.starts(retry);
        self.running.push(Running { round, openings: self.plain.openings, retry });
        if retry {
            self.retries.push(self.now_ms)
        } else {
            self.firsts.push(self.now_ms)
        }
        if retry { self.budget_is_kept() } else { Ok(()) }
    }

    /// In no stretch of time do more retries start than can be saved up and what first attempts and time bring meanwhile; and from the
    /// beginning, no more than the reserve and that.
    fn budget_is_kept(&self) -> Result<(), Violation> {
        let begun = (20_000, RESERVE);
        let stretches = self.retries.iter().map(|since| (*since, SAVED)).chain([begun]);
        for (since_ms, before) in stretches {
            let retries = self.retries.iter().filter(|at| **at >= since_ms).count() as f64;
            let firsts = self.firsts.iter().filter(|at| **at >= since_ms).count() as f64;
            let by_firsts = firsts * f64::from(self.plain.terms.retry_percent) / 100.0;
            let most = before + by_firsts + (self.now_ms - since_ms) as f64 / RETRY_EVERY_MS;
            if retries > most + SLACK {
                let told =
                    format!("{retries} retries and {firsts} first attempts since {since_ms}, at {}", self.now_ms);
                return Err(Violation::of(ViolationKind::Retry, told));
            }
        }
        Ok(())
    }

    fn one_ends(&mut self) {
        let Some(index) = self.random.index(self.running.len()) else { return };
        let Running { round, openings, .. } = self.running.swap_remove(index);
        let verdict = match self.random.chance(10) {
            true => Verdict::Silent,
            false if self.random.chance(self.trouble) => Verdict::Failed,
            false => Verdict::Worked,
        };
        self.health.ends(round, verdict, self.now_ms);
        self.plain.ends(openings, verdict, self.now_ms);
    }

    fn one_is_given_back(&mut self) {
        let Some(index) = self.random.index(self.running.len()) else { return };
        let Running { round, retry, .. } = self.running.swap_remove(index);
        self.health.gives_back(round, retry);
        if retry {
            self.retries.pop();
        }
        // A first attempt stays in the list: it may have paid for a retry that runs already.
    }

    /// After a long time a retry may start, whatever was before, unless the breaker holds it back.
    fn is_idle(&mut self) -> Result<(), Violation> {
        self.pass(FULL_MS);
        if !self.plain.holds_back(self.under_way()) && self.health.refuses(true).is_some() {
            let told = format!("a retry is refused after {FULL_MS} ms: {:?}", self.health.refuses(true));
            return Err(Violation::of(ViolationKind::Retry, told));
        }
        Ok(())
    }
}

/// What an outage and its end cost.
#[derive(Debug)]
pub struct Recovery {
    pub failed_while_down: usize,
    /// From the first attempt that worked.
    pub worked_off_ms: i64,
    pub ideal_ms: i64,
}

/// A target is down for a minute, and each attempt then fails after 50 ms; one that works takes 50 ms too. 4,000 runs wait, of which
/// `limit` may run at once.
pub fn recovery(limit: usize) -> Recovery {
    const BACKLOG: usize = 4_000;
    const TAKES_MS: i64 = 50;
    const DOWN_MS: i64 = 60_000;
    let terms = HealthTerms { retry_percent: 10, failure_percent: 50, min_attempts: 10, open_ms: 10_000 };
    let mut health = TargetHealth::new(terms);
    let (mut done, mut failed_while_down, mut first_ms, mut now_ms) = (0, 0, None, 0);
    let mut running: Vec<(i64, u64)> = Vec::new();
    while done < BACKLOG {
        let (over, runs): (Vec<_>, Vec<_>) = running.into_iter().partition(|(ends_ms, _)| *ends_ms <= now_ms);
        running = runs;
        for (ends_ms, round) in over {
            let is_down = ends_ms <= DOWN_MS;
            health.ends(round, if is_down { Verdict::Failed } else { Verdict::Worked }, now_ms);
            failed_while_down += usize::from(is_down);
            done += usize::from(!is_down);
            if !is_down {
                first_ms.get_or_insert(now_ms);
            }
        }
        health.look(now_ms);
        while running.len() < limit && running.len() + done < BACKLOG && health.refuses(false).is_none() {
            running.push((now_ms + TAKES_MS, health.starts(false)));
        }
        now_ms += 10;
        assert!(now_ms < 3_600_000, "it does not come back: {health:?}");
    }
    let ideal_ms = BACKLOG.div_ceil(limit) as i64 * TAKES_MS;
    Recovery { failed_while_down, worked_off_ms: now_ms - first_ms.unwrap_or_default(), ideal_ms }
}
