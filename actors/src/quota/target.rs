//! Targets: named systems that bodies call. A run of a job with a target needs two permits, its tenant's and its target's, and gets both
//! in one moment or none: a permit of one that waited for the other would be missing to somebody.
//!
//! Such a run waits in its tenant's order like all others. When its turn has come and its target has no permit for it, it is *parked* at the
//! target, out of the way of the tenant's other runs. When the target has room again, as many runs as there is room for go back to their
//! places in the tenant's order.
//!
//! The limits of a target are a [`Quota`] under a key of its own, so sessions of a cluster borrow them like those of a tenant
//! (`borrow.rs`). Its breaker and its budget of retries ([`campanile_core::dispatch::target`]) are this node's, fed by the ends of attempts here.

use super::{Quotas, rank::QueueRank, target_state::health_terms, tenant::Quota};
use campanile_core::{
    dispatch::target::{Breaker, Refusal, Verdict},
    job::WaitingRun,
};
use campanile_schema::{
    ids::{RunId, ShardId},
    stored::{target_key, target_of},
    wait::WaitCode,
};
use std::sync::atomic::Ordering;

/// A run that has a permit of a target.
pub(super) struct TargetUse {
    /// The place of the target in [`Quotas::quotas`].
    target: usize,
    /// See [`TargetHealth::starts`].
    round: u64,
    retry: bool,
}

/// How the use of a target ends.
#[derive(Clone, Copy)]
pub(super) enum UseEnd {
    Ended(Verdict),
    /// The attempt did not begin: what it took is there again.
    NotStarted,
}

/// Why a target has no permit for a run.
enum TargetWait {
    Unknown,
    Health(Refusal),
    Concurrency,
    Rate,
}

impl Quota {
    /// Settings of its target, if it is of one, are those of its limits from now on.
    pub(super) fn set_health(&mut self) {
        if let Some(target) = &mut self.target {
            target.health.set_terms(health_terms(self.limit.target.unwrap_or_default()));
        }
        self.show_breaker();
    }

    /// Time has passed for its breaker, if it is of a target.
    pub(super) fn look_at_target(&mut self, now_ms: i64) {
        if let Some(target) = &mut self.target {
            target.health.look(now_ms);
            self.show_breaker();
        }
    }

    fn show_breaker(&self) {
        if let Some(target) = &self.target {
            let state = match target.health.breaker() {
                Breaker::Closed => 0,
                Breaker::Recovering { .. } => 1,
                Breaker::Open { .. } => 2,
            };
            self.gauge.breaker.store(state, Ordering::Relaxed);
        }
    }

    /// Why the target has no permit for a run now. None: it has one.
    fn refuses(&self, run: RunId, retry: bool) -> Option<TargetWait> {
        if !self.known {
            return Some(TargetWait::Unknown);
        }
        let health = self.target.as_ref().and_then(|target| target.health.refuses(retry));
        health.map(TargetWait::Health).or_else(|| {
            let lacks = || if self.has_permit(run) { TargetWait::Rate } else { TargetWait::Concurrency };
            (!self.may_start(run)).then(lacks)
        })
    }

    fn park(&mut self, place: QueueRank, run: Box<WaitingRun>) {
        self.places.insert(run.run, place);
        self.gauge.waiting.fetch_add(1, Ordering::Relaxed);
        match &mut self.target {
            Some(target) if run.retry => target.retries.insert(place, run),
            Some(_) | None => self.waiting.insert(place, run),
        };
    }

    /// Takes the next parked run out; `retries`: whether it may be one.
    fn unpark(&mut self, retries: bool) -> Option<(QueueRank, Box<WaitingRun>)> {
        let first = self.next_place();
        let target = self.target.as_mut()?;
        let retry = target.retries.first_key_value().filter(|_| retries).map(|(place, _)| *place);
        let is_retry = match (retry, first) {
            (Some(retry), Some(first)) => retry < first,
            (retry, _) => retry.is_some(),
        };
        let (place, run) = if is_retry {
            target.retries.pop_first()?
        } else {
            let place = first?;
            (place, self.waiting.remove(&place)?)
        };
        self.places.remove(&run.run);
        self.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        Some((place, run))
    }

    /// Why a parked run waits.
    fn why_parked(&self, run: RunId, now_ms: i64) -> Option<String> {
        let target = self.target.as_ref()?;
        let retry = target.retries.contains_key(self.places.get(&run)?);
        let (_, name) = target_of(&self.name)?;
        let waiting = self.waiting.len() + target.retries.len();
        // There may be room, which those before it have not taken yet.
        let wait = self.refuses(run, retry).unwrap_or_else(|| match target.health.breaker() {
            Breaker::Recovering { room } => TargetWait::Health(Refusal::Recovering { room }),
            Breaker::Closed | Breaker::Open { .. } if retry => TargetWait::Health(Refusal::RetryBudget),
            Breaker::Closed | Breaker::Open { .. } if self.limit.max_concurrent_runs > 0 => TargetWait::Concurrency,
            Breaker::Closed | Breaker::Open { .. } => TargetWait::Rate,
        });
        let (held, all) = (self.permits.held(), self.limit.max_concurrent_runs);
        Some(match wait {
            TargetWait::Unknown => WaitCode::Starting.because("the node asks for the target's limits"),
            TargetWait::Health(Refusal::Open { until_ms }) => WaitCode::TargetBreakerOpen.because(format!(
                "attempts at target '{name}' failed, and none starts for {} s more; {waiting} runs wait",
                (until_ms - now_ms).max(0) as u64 / 1_000 + 1
            )),
            TargetWait::Health(Refusal::Recovering { room }) => WaitCode::TargetRecovering.because(format!(
                "target '{name}' comes back: at most {room} attempts at once until more of them have worked; {waiting} runs wait"
            )),
            TargetWait::Health(Refusal::RetryBudget) => WaitCode::TargetRetryBudget.because(format!(
                "retries at target '{name}' are at most {} % of first attempts; {} retries wait",
                target.health.terms().retry_percent,
                target.retries.len()
            )),
            TargetWait::Concurrency => WaitCode::TargetConcurrency.because(format!(
                "{held} runs of this node use target '{name}', which takes {all} at once over all nodes; {waiting} runs wait"
            )),
            TargetWait::Rate => WaitCode::TargetRate.because(format!(
                "at most {} runs a second start at target '{name}'; {waiting} runs wait",
                self.limit.max_triggers_per_sec
            )),
        })
    }
}

impl Quotas {
    fn target_index(&mut self, tenant: &str, target: &str) -> usize {
        self.of(&target_key(tenant, target))
    }

    /// The next run of a tenant, whose turn it is, has a target: it gets both permits, or is parked. `back`: so many runs of backfills may
    /// still start.
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub(super) fn start_or_park(
        &mut self,
        index: usize,
        place: QueueRank,
        granted: &mut Vec<Box<WaitingRun>>,
        back: &mut usize,
    ) {
        let Some(run) = self.quotas[index].waiting.remove(&place) else { return };
        self.forget_returned(run.run);
        let target = self.target_index(&run.tenant, run.target.as_deref().unwrap_or_default());
        // Its rate permits and its breaker are those of now, however long nobody has asked.
        self.quotas[target].refill(self.now_ms);
        if self.quotas[target].refuses(run.run, run.retry).is_some() {
            self.parked.insert(run.run, target);
            self.quotas[target].park(place, run);
            self.note(target);
            return;
        }
        *back -= usize::from(run.backfill);
        self.quotas[index].start(place, run.run);
        self.quotas[target].start(place, run.run);
        if let Some(state) = &mut self.quotas[target].target {
            let round = state.health.starts(run.retry);
            self.uses.insert(run.run, TargetUse { target, round, retry: run.retry });
        }
        granted.push(run);
    }

    /// Runs for which a target has room go back to their places in the order of its tenant.
    pub(super) fn unpark(&mut self, target: usize) {
        let quota = &self.quotas[target];
        let Some(state) = quota.target.as_ref().filter(|_| quota.known) else { return };
        let tenant = state.tenant;
        let mut retries = state.health.retries_left();
        let room = state.health.room().min(quota.permits.room(quota.limits()));
        for _ in 0..room {
            let Some((place, run)) = self.quotas[target].unpark(retries > 0) else { break };
            retries -= usize::from(run.retry);
            self.parked.remove(&run.run);
            self.returned.insert(run.run, target);
            if let Some(state) = &mut self.quotas[target].target {
                state.returned += 1;
            }
            self.quotas[tenant].waiting.insert(place, run);
            self.touch(tenant);
        }
    }

    /// A run that a target has let go starts, is parked again, or is given up.
    fn forget_returned(&mut self, run: RunId) {
        if !self.returned.is_empty()
            && let Some(target) = self.returned.remove(&run)
            && let Some(state) = &mut self.quotas[target].target
        {
            state.returned = state.returned.saturating_sub(1);
        }
    }

    /// The run is given up: it is not parked any more.
    pub(super) fn leave_target(&mut self, run: RunId) {
        self.forget_returned(run);
        if !self.parked.is_empty()
            && let Some(target) = self.parked.remove(&run)
        {
            self.quotas[target].unwant(run);
            self.touch(target);
        }
    }

    /// The permit of the run's target, if it has one, is there for others. Jobs without a target cost one look at an empty table.
    pub(super) fn release_target(&mut self, run: RunId, end: UseEnd) {
        if self.uses.is_empty() {
            return;
        }
        let Some(TargetUse { target, round, retry }) = self.uses.remove(&run) else { return };
        let now_ms = self.now_ms;
        let quota = &mut self.quotas[target];
        let limits = quota.limits();
        match end {
            UseEnd::Ended(_) => quota.permits.release(run),
            UseEnd::NotStarted => quota.permits.give_back(run, limits),
        }
        if let Some(state) = &mut quota.target {
            let before = state.health.breaker();
            match end {
                UseEnd::Ended(verdict) => state.health.ends(round, verdict, now_ms),
                UseEnd::NotStarted => state.health.gives_back(round, retry),
            }
            if matches!(state.health.breaker(), Breaker::Open { .. }) && !matches!(before, Breaker::Open { .. }) {
                metrics::counter!("campanile_target_breaker_opened_total").increment(1);
                tracing::warn!(target_key = %quota.name, "attempts at a target fail: its breaker is open");
            }
        }
        quota.show_running();
        quota.show_breaker();
        self.touch(target);
    }

    /// A body that runs already uses a target.
    pub(super) fn adopt_target(&mut self, tenant: &str, target: &str, run: RunId) {
        if self.uses.contains_key(&run) {
            return;
        }
        let target = self.target_index(tenant, target);
        self.quotas[target].hold(run);
        if let Some(state) = &mut self.quotas[target].target {
            let round = state.health.adopts();
            self.uses.insert(run, TargetUse { target, round, retry: false });
        }
    }

    /// The runs of a shard are another node's. What they hold of limits is counted there; the health of targets does not hear of their ends.
    pub(super) fn shard_leaves_targets(&mut self, shard: ShardId, shards: u16) {
        let quotas = &mut self.quotas;
        self.parked.retain(|run, _| run.shard(shards) != shard);
        self.returned.retain(|run, target| {
            let stays = run.shard(shards) != shard;
            if let (false, Some(state)) = (stays, &mut quotas[*target].target) {
                state.returned = state.returned.saturating_sub(1);
            }
            stays
        });
        self.uses.retain(|run, used| {
            let stays = run.shard(shards) != shard;
            if let (false, Some(state)) = (stays, &mut quotas[used.target].target) {
                state.health.ends(used.round, Verdict::Silent, self.now_ms);
            }
            stays
        });
    }

    /// Why a run is parked; None: it is not.
    pub(super) fn why_parked(&self, run: RunId) -> Option<String> {
        self.quotas[*self.parked.get(&run)?].why_parked(run, self.now_ms)
    }
}
