//! A random history of one tenant's permits: lists of holders, and the rate held against the times at which runs started.

use super::{Random, Violation, ViolationKind};
use campanile_core::{
    dispatch::permit::{Loan, TenantLimits, TenantPermits},
    ownership::borrowed::Borrowed,
};
use campanile_schema::{
    ids::{Epoch, RunId, SessionId, ShardId},
    loan::Level,
};
use std::collections::BTreeMap;

const SHARDS: u16 = 4;
const RUNS: u64 = 40;
/// Sums of times and rates are not exact.
const SLACK: f64 = 1e-6;
/// A bucket is full after so long, whatever the rates of these plays are, ms.
const FULL_MS: i64 = 4_000;

struct Play {
    random: Random,
    permits: TenantPermits,
    now_ms: i64,
    concurrent: u32,
    rate: f64,
    /// Every run that has a permit.
    holders: Vec<RunId>,
    /// In a cluster: shards that are served here, and runs of those that are not served any more and whose permits nobody has moved.
    lent: Option<(u32, u32)>,
    served: Vec<ShardId>,
    handed_over: BTreeMap<ShardId, u32>,
    /// When runs started by the rate, ms.
    started: Vec<i64>,
    version: u64,
}

/// Plays so many steps; the first thing that is wrong ends it.
pub fn play(seed: u64, steps: u64) -> Result<(), Violation> {
    let mut play = Play::new(seed);
    for _ in 0..steps {
        play.step()?;
    }
    Ok(())
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rate = random.one_of(&[0.0, 0.5, 2.0, 7.5]);
        let mut permits = TenantPermits::new(SHARDS);
        permits.start_rate(rate);
        let lent = random.chance(50).then_some((5, 5));
        if lent.is_some() {
            permits.loan = Some(Loan { borrowed: Borrowed::new(SessionId(1)), share: 5 });
        }
        let mut play = Self {
            random,
            permits,
            now_ms: 10_000,
            concurrent: 3,
            rate,
            holders: Vec::new(),
            lent,
            served: Vec::new(),
            handed_over: BTreeMap::new(),
            started: Vec::new(),
            version: 0,
        };
        play.permits.refill(play.now_ms, play.limits());
        play.level(5);
        play
    }

    fn limits(&self) -> TenantLimits {
        TenantLimits { concurrent: self.concurrent, rated: self.rate > 0.0 }
    }

    fn level(&mut self, permits: u32) {
        if let (Some(loan), Some((level, _))) = (&mut self.permits.loan, &mut self.lent) {
            self.version += 1;
            loan.borrowed.level(Level { version: self.version, permits });
            *level = permits;
        }
    }

    fn step(&mut self) -> Result<(), Violation> {
        let run = RunId(self.random.below(RUNS));
        let shard = ShardId(self.random.below(u64::from(SHARDS)) as u16);
        match self.random.below(100) {
            0..45 => return self.asks(run),
            45..55 => self.is_adopted(run),
            55..75 => self.ends(run),
            75..85 => {
                self.now_ms += self.random.below(1_500) as i64;
                self.permits.refill(self.now_ms, self.limits());
            }
            85..87 => return self.is_idle(),
            87..91 => self.concurrent = self.random.below(6) as u32,
            91..94 => {
                let permits = self.random.below(7) as u32;
                self.level(permits);
            }
            94..98 => self.takes_over(shard),
            _ => self.hands_over(shard),
        }
        Ok(())
    }

    /// Whether there is a permit, without the rate.
    fn has_permit(&self, run: RunId) -> bool {
        match self.lent {
            _ if self.concurrent == 0 => true,
            None => self.holders.len() < self.concurrent as usize,
            Some((level, share)) => {
                let of_served = self.holders.iter().filter(|run| self.served.contains(&run.shard(SHARDS))).count();
                let used = of_served as u32 + self.handed_over.values().sum::<u32>();
                self.served.contains(&run.shard(SHARDS)) && used < level.min(share)
            }
        }
    }

    fn asks(&mut self, run: RunId) -> Result<(), Violation> {
        if self.holders.contains(&run) {
            return Ok(());
        }
        let (granted, has_permit) = (self.permits.may_start(run, self.limits()), self.has_permit(run));
        if granted && !has_permit || !granted && has_permit && self.rate <= 0.0 {
            let told = format!("{run:?} of {:?}: granted {granted}, by {} holders", self.limits(), self.holders.len());
            return Err(Violation::of(ViolationKind::Permit, told));
        }
        if granted {
            self.permits.start(run, self.limits());
            self.holders.push(run);
            return self.rate_is_kept();
        }
        Ok(())
    }

    /// In no stretch of time do more runs start than fit into a full bucket and what flows in meanwhile.
    fn rate_is_kept(&mut self) -> Result<(), Violation> {
        if self.rate <= 0.0 {
            return Ok(());
        }
        self.started.push(self.now_ms);
        for (at, since_ms) in self.started.iter().enumerate() {
            let runs = (self.started.len() - at) as f64;
            let most = self.rate.max(1.0) + self.rate * (self.now_ms - since_ms) as f64 / 1000.0;
            if runs > most + SLACK {
                let told = format!("{runs} runs in {} ms at {} per second", self.now_ms - since_ms, self.rate);
                return Err(Violation::of(ViolationKind::Rate, told));
            }
        }
        Ok(())
    }

    /// When nothing started for long, the rate allows a run.
    fn is_idle(&mut self) -> Result<(), Violation> {
        self.now_ms += FULL_MS;
        self.permits.refill(self.now_ms, self.limits());
        let free = (0..RUNS).map(RunId).find(|run| !self.holders.contains(run) && self.has_permit(*run));
        match free {
            Some(run) if !self.permits.may_start(run, self.limits()) => {
                Err(Violation::of(ViolationKind::Rate, format!("{run:?} is refused after {FULL_MS} ms")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// It runs already, as its shard says; perhaps it says so twice.
    fn is_adopted(&mut self, run: RunId) {
        self.permits.hold(run);
        if !self.holders.contains(&run) {
            self.holders.push(run);
        }
    }

    fn ends(&mut self, run: RunId) {
        self.permits.release(run);
        self.holders.retain(|holder| *holder != run);
    }

    fn takes_over(&mut self, shard: ShardId) {
        let again = self.served.contains(&shard);
        self.permits.take_over(shard, Epoch(self.version + 1), again);
        if !again {
            self.served.push(shard);
        }
    }

    fn hands_over(&mut self, shard: ShardId) {
        let runs = self.holders.iter().filter(|run| run.shard(SHARDS) == shard).count() as u32;
        self.permits.hand_over(shard);
        self.holders.retain(|run| run.shard(SHARDS) != shard);
        if self.served.contains(&shard) {
            *self.handed_over.entry(shard).or_default() += runs;
        }
        self.served.retain(|served| *served != shard);
    }
}
