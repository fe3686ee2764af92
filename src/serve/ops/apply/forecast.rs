//! What the changes of a plan mean: the next fires of each job before and after, changes of the clock ahead, minutes that get many
//! instants, and limits of tenants.
//!
//! Schedules are computed as the node computes them for its own jobs, in the place where texts of callers are read: within its time,
//! and not on the threads that serve calls. Nothing is changed here.

use super::super::{Answer, Operations, access};
use campanile_core::{cron, schedule::Schedule, spec};
use campanile_schema::{
    apply::{JobForecast, MinuteForecast, PlanAction, PlanForecast, PlanItem, TenantForecast},
    error::ErrorCode,
    job::{Blackout, JobSpec, Trigger, Window},
    limits::{
        FORECAST_CLOCK_DAYS, FORECAST_FIRES, FORECAST_FULL, FORECAST_INSTANTS, FORECAST_MINUTES, FORECAST_NAMED,
        FORECAST_TENANTS, LOAD_MINUTES,
    },
    stored::{StoredJob, StoredTrigger},
    time::Timestamp,
};
use campanile_security::auth::Caller;
use std::collections::BTreeMap;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// A trigger with what its meaning depends on: an `H` is drawn from the names, and windows remove instants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timed {
    tenant: String,
    name: String,
    trigger: Trigger,
    windows: Vec<Window>,
    blackouts: Vec<Blackout>,
}

impl Timed {
    /// None: a job that is paused is never due.
    pub fn of(spec: &JobSpec, is_paused: bool) -> Option<Self> {
        let timed = || Self {
            tenant: spec.tenant_id.clone(),
            name: spec.name.clone(),
            trigger: spec.trigger.clone(),
            windows: spec.windows.clone(),
            blackouts: spec.blackouts.clone(),
        };
        (!is_paused).then(timed)
    }
}

/// A job's trigger before a change and after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub before: Option<Timed>,
    pub after: Option<Timed>,
}

/// All that is computed of schedules.
struct Computed {
    /// Each with the sentences about all changes of the clock that are ahead.
    jobs: Vec<(JobForecast, Vec<String>)>,
    /// Instants that a minute gets, and those that it loses.
    minutes: BTreeMap<i64, (u64, u64)>,
    truncated: bool,
}

/// Fills in the forecasts of a plan's items, and gives that of the whole plan. `turns`: of each item that is not unchanged.
pub(super) async fn of(
    ops: &Operations,
    caller: &Caller,
    mut items: Vec<&mut PlanItem>,
    turns: Vec<Turn>,
) -> Answer<PlanForecast> {
    let now_ms = ops.scheduler.now_ms()?;
    let computed = ops.parsers.run(move |go_on| compute(&turns, now_ms, &|| go_on.now())).await?;
    let Computed { jobs, minutes, truncated } = computed;
    let changing = items.iter_mut().filter(|item| item.action != PlanAction::Unchanged);
    for (item, (forecast, clock)) in changing.zip(jobs) {
        // They are told apart, and for the time that a forecast looks at.
        item.hazards.retain(|hazard| !clock.contains(hazard));
        item.forecast = Some(forecast);
    }
    let items: Vec<&PlanItem> = items.iter().map(|item| &**item).collect();
    let tenants = tenants(ops, &items).await?;
    let minutes = fullest(ops, caller, minutes).await?;
    Ok(PlanForecast { minutes, tenants, truncated })
}

fn compute(turns: &[Turn], now_ms: i64, go_on: &dyn Fn() -> bool) -> Computed {
    let mut computed = Computed { jobs: Vec::with_capacity(turns.len()), minutes: BTreeMap::new(), truncated: false };
    let mut left = FORECAST_INSTANTS;
    for turn in turns {
        if !go_on() {
            computed.truncated = true;
            break;
        }
        let (before, after) = (compiled(turn.before.as_ref(), now_ms), compiled(turn.after.as_ref(), now_ms));
        let until = now_ms.saturating_add(FORECAST_CLOCK_DAYS * DAY_MS);
        let clock_changes =
            |until| turn.after.as_ref().map(|after| clock_changes(after, now_ms, until)).unwrap_or_default();
        let forecast = JobForecast {
            before: fires(before.as_ref(), now_ms),
            after: fires(after.as_ref(), now_ms),
            clock_changes: clock_changes(until),
        };
        computed.jobs.push((forecast, clock_changes(i64::MAX)));
        // A job that is due as before adds nothing to any minute.
        if turn.before == turn.after {
            continue;
        }
        let minutes = &mut computed.minutes;
        let added = count(after.as_ref(), now_ms, &mut left, |at| minutes.entry(at).or_default().0 += 1);
        let removed = count(before.as_ref(), now_ms, &mut left, |at| minutes.entry(at).or_default().1 += 1);
        computed.truncated |= !(added && removed);
    }
    computed
}

fn stored(timed: &Timed, now_ms: i64) -> Option<StoredJob> {
    let mut spec = JobSpec::new(&timed.tenant, &timed.name, timed.trigger.clone());
    (spec.windows, spec.blackouts) = (timed.windows.clone(), timed.blackouts.clone());
    let trigger = spec::resolve_trigger(&spec, None, now_ms).ok()?;
    Some(StoredJob::from_spec(&spec, trigger, None))
}

fn compiled(timed: Option<&Timed>, now_ms: i64) -> Option<Schedule> {
    Schedule::compile(&stored(timed?, now_ms)?).ok()
}

/// A FIXED_DELAY has one: what comes after it depends on when its run ends.
fn fires(schedule: Option<&Schedule>, now_ms: i64) -> Vec<Timestamp> {
    let Some(schedule) = schedule else { return Vec::new() };
    let most = if schedule.is_fixed_delay() { 1 } else { FORECAST_FIRES };
    let next = |at: &i64| schedule.next(*at, Some(now_ms));
    std::iter::successors(next(&now_ms), next).take(most).map(Timestamp).collect()
}

/// Calls `add` with the minute of each instant of the next day. False: there are more than `left`.
fn count(schedule: Option<&Schedule>, now_ms: i64, left: &mut u64, mut add: impl FnMut(i64)) -> bool {
    let Some(schedule) = schedule.filter(|schedule| !schedule.is_fixed_delay()) else { return true };
    let until = now_ms.saturating_add(FORECAST_MINUTES * MINUTE_MS);
    let mut at = now_ms;
    while let Some(next) = schedule.next(at, None).filter(|next| *next <= until) {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        add(next.div_euclid(MINUTE_MS) * MINUTE_MS);
        at = next;
    }
    true
}

fn clock_changes(timed: &Timed, now_ms: i64, until: i64) -> Vec<String> {
    let Some(StoredTrigger::Cron { expr, dialect, zone, gap, overlap }) = stored(timed, now_ms).map(|job| job.trigger)
    else {
        return Vec::new();
    };
    let seed = campanile_schema::ids::name_hash(&timed.tenant, &timed.name);
    let Ok((expr, _)) = cron::CronExpr::parse(&expr, dialect, seed) else { return Vec::new() };
    cron::CronSchedule::new(expr, &zone, gap, overlap)
        .map(|schedule| cron::clock_hazards(&schedule, now_ms, until))
        .unwrap_or_default()
}

/// The minutes that get so many more instants than they lose that they are named, those that get most first.
fn full(minutes: BTreeMap<i64, (u64, u64)>) -> Vec<(i64, u64, u64)> {
    let more = |adds: u64, removes: u64| adds.saturating_sub(removes);
    let minutes = minutes.into_iter().map(|(at, (adds, removes))| (at, adds, removes));
    let mut full: Vec<_> = minutes.filter(|(_, adds, removes)| more(*adds, *removes) >= FORECAST_FULL).collect();
    full.sort_by_key(|(at, adds, removes)| (std::cmp::Reverse(more(*adds, *removes)), *at));
    full.truncate(FORECAST_NAMED);
    full
}

/// The full minutes, with what is due in them already as far as that is counted.
async fn fullest(ops: &Operations, caller: &Caller, minutes: BTreeMap<i64, (u64, u64)>) -> Answer<Vec<MinuteForecast>> {
    let full = full(minutes);
    if full.is_empty() {
        return Ok(Vec::new());
    }
    let load = ops.scheduler.load(access::scope(caller, None)?, LOAD_MINUTES).await?;
    let due: BTreeMap<i64, u64> = load.items.iter().map(|minute| (minute.at.ms(), minute.count)).collect();
    let named = |(at, adds, removes): (i64, u64, u64)| MinuteForecast {
        at: Timestamp(at),
        adds,
        removes,
        due: due.get(&at).copied(),
    };
    Ok(full.into_iter().map(named).collect())
}

async fn tenants(ops: &Operations, items: &[&PlanItem]) -> Answer<Vec<TenantForecast>> {
    let mut changes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for item in items {
        let (created, deleted) = match item.action {
            PlanAction::Create => (1, 0),
            PlanAction::Delete => (0, 1),
            PlanAction::Change | PlanAction::Unchanged => continue,
        };
        let sum = changes.entry(&item.tenant_id).or_default();
        *sum = (sum.0 + created, sum.1 + deleted);
    }
    let mut found = Vec::new();
    for (tenant, (created, deleted)) in changes.into_iter().take(FORECAST_TENANTS) {
        let (jobs, max_jobs) = match ops.scheduler.tenant(tenant).await {
            Ok(view) => (view.jobs, view.quota.max_jobs),
            // It is there as soon as it has a job.
            Err(error) if error.known() == ErrorCode::NotFound => (0, 0),
            Err(error) => return Err(error),
        };
        // Jobs are created before others are deleted.
        let most = jobs + created;
        let after = most.saturating_sub(deleted);
        let exceeds = max_jobs > 0 && most > max_jobs && created > 0;
        found.push(TenantForecast { tenant_id: tenant.to_owned(), jobs, after, max_jobs, exceeds });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2027-03-01T00:00:00Z.
    const NOW: i64 = 1_803_859_200_000;

    fn timed(trigger: Trigger) -> Option<Timed> {
        Timed::of(&JobSpec::new("t", "job", trigger), false)
    }
    fn berlin(expr: &str) -> Trigger {
        let mut trigger = Trigger::cron(expr);
        if let Trigger::Cron { timezone, .. } = &mut trigger {
            "Europe/Berlin".clone_into(timezone);
        }
        trigger
    }

    #[test]
    fn fires_clock_changes_and_minutes_of_a_change() {
        let turn = Turn { before: timed(Trigger::cron("0 * * * *")), after: timed(berlin("30 2 * * *")) };
        let computed = compute(&[turn], NOW, &|| true);
        let [(job, _)] = computed.jobs.as_slice() else { panic!("one job") };
        assert_eq!((job.before.len(), job.after.len()), (20, 20));
        assert_eq!(job.before[0], Timestamp(NOW + 3_600_000));
        assert_eq!(job.after[0].to_string(), "2027-03-01T01:30:00.000Z");
        assert_eq!(job.clock_changes.len(), 3, "{:?}", job.clock_changes);
        assert!(job.clock_changes[0].contains("2027-03-28"), "{:?}", job.clock_changes);
        // 24 instants go, one comes; in the last hour of the day none is left.
        let adds: u64 = computed.minutes.values().map(|(adds, _)| adds).sum();
        let removes: u64 = computed.minutes.values().map(|(_, removes)| removes).sum();
        assert_eq!((adds, removes, computed.truncated), (1, 24, false));
    }

    #[test]
    fn what_windows_remove_is_in_no_minute() {
        let mut spec = JobSpec::new("t", "job", Trigger::cron("0 * * * *"));
        let before = Timed::of(&spec, false);
        let window = serde_json::json!({"effect": "DENY", "to": "12:00"});
        spec.windows = vec![serde_json::from_value(window).unwrap()];
        let turn = Turn { before, after: Timed::of(&spec, false) };
        let computed = compute(&[turn], NOW, &|| true);
        assert_eq!(computed.jobs[0].0.after[0].to_string(), "2027-03-01T12:00:00.000Z");
        let adds: u64 = computed.minutes.values().map(|(adds, _)| adds).sum();
        let removes: u64 = computed.minutes.values().map(|(_, removes)| removes).sum();
        assert_eq!((adds, removes), (12, 24));
    }

    /// Across both changes of the clock of 2027 in Berlin the fires are those that the node computes for the job itself.
    #[test]
    fn fires_before_and_after_follow_the_clock_of_the_zone() {
        let turn = Turn { before: timed(berlin("0 12 * * *")), after: timed(berlin("30 2 * * *")) };
        let fires_from = |day: i64| {
            let computed = compute(std::slice::from_ref(&turn), NOW + day * DAY_MS + DAY_MS / 2, &|| true);
            let shown = |fires: &[Timestamp]| fires.iter().take(3).map(ToString::to_string).collect::<Vec<_>>();
            (shown(&computed.jobs[0].0.before), shown(&computed.jobs[0].0.after))
        };
        let (before, after) = fires_from(25);
        assert_eq!(before, ["2027-03-27T11:00:00.000Z", "2027-03-28T10:00:00.000Z", "2027-03-29T10:00:00.000Z"]);
        // 02:30 of the 28th does not exist: it is due at 03:00.
        assert_eq!(after, ["2027-03-27T01:30:00.000Z", "2027-03-28T01:00:00.000Z", "2027-03-29T00:30:00.000Z"]);
        let (before, after) = fires_from(242);
        assert_eq!(before, ["2027-10-30T10:00:00.000Z", "2027-10-31T11:00:00.000Z", "2027-11-01T11:00:00.000Z"]);
        // 02:30 of the 31st comes twice: it is due at the first.
        assert_eq!(after, ["2027-10-30T00:30:00.000Z", "2027-10-31T00:30:00.000Z", "2027-11-01T01:30:00.000Z"]);
    }

    #[test]
    fn a_job_whose_schedule_stays_adds_nothing_and_one_that_moves_adds_and_removes() {
        let stays = Turn { before: timed(berlin("0 2 * * *")), after: timed(berlin("0 2 * * *")) };
        assert!(compute(&[stays], NOW, &|| true).minutes.is_empty());
        let moves = Turn { before: timed(berlin("0 2 * * *")), after: timed(berlin("0 3 * * *")) };
        let two = NOW + 3_600_000;
        let moved = compute(&[moves.clone(), moves], NOW, &|| true).minutes;
        assert_eq!(moved, BTreeMap::from([(two, (0, 2)), (two + 3_600_000, (2, 0))]));
    }

    #[test]
    fn full_minutes_are_those_that_get_more_than_they_lose() {
        let minutes = BTreeMap::from([(0, (59, 0)), (1, (100, 40)), (2, (100, 41)), (3, (70, 0)), (4, (0, 500))]);
        assert_eq!(full(minutes), [(3, 70, 0), (1, 100, 40)]);
        let many = (0..30).map(|at| (at, (60, 0))).collect();
        assert_eq!(full(many).len(), FORECAST_NAMED);
    }

    #[test]
    fn changes_of_the_clock_beyond_13_months_are_left_out() {
        let turn = Turn { before: None, after: timed(berlin("30 2 * * *")) };
        // From the day after the change of March 2027 on: October, March.
        let from = NOW + 28 * DAY_MS;
        let told = compute(&[turn], from, &|| true).jobs[0].0.clock_changes.clone();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("2027-10-31"), "{told:?}");
        assert!(told[1].contains("2028-03-26"), "{told:?}");
    }

    #[test]
    fn a_forecast_looks_at_so_many_instants_and_says_so() {
        let every_second = || Turn { before: None, after: timed(Trigger::cron("* * * * * *")) };
        let turns: Vec<Turn> = (0..30).map(|_| every_second()).collect();
        let computed = compute(&turns, NOW, &|| true);
        assert!(computed.truncated);
        assert_eq!(computed.jobs.len(), 30, "the fires of each are shown all the same");
        assert!(compute(&turns, NOW, &|| false).truncated);
    }

    #[test]
    fn a_paused_job_is_not_due() {
        let spec = JobSpec::new("t", "job", Trigger::cron("0 * * * *"));
        assert!(Timed::of(&spec, true).is_none());
        assert!(fires(None, NOW).is_empty());
        let delay = compiled(timed(Trigger::fixed_delay(60)).as_ref(), NOW);
        assert_eq!(fires(delay.as_ref(), NOW), [Timestamp(NOW + 60_000)]);
    }
}
