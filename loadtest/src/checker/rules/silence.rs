//! A FIXED_DELAY job must continue: from its creation, and from each end of a run, of a pause or of a skipped instant,
//! at most its delay passes until its next event.

use super::facts::{entries, last_of, us};
use crate::checker::{Findings, History, Job, ViolationKind, closed};
use campanile_schema::job::Trigger;

/// What a job may be behind its delay before it counts as silent, microseconds.
const SLACK_US: i64 = 2_000_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    let Some(until_us) = history.meta.as_ref().map(|meta| us(meta.until_ms)) else { return };
    for job in history.jobs.values().filter(|job| !job.ledger.is_empty()) {
        // The longest delay, and the earliest end, of all definitions that it may have had.
        let mut of_versions = job.versions.iter().filter_map(|version| match &version.spec.trigger {
            Trigger::FixedDelay { every_sec, start_at, end_at, .. } => {
                Some((i64::try_from(*every_sec).ok()?.checked_mul(1_000_000)?, *start_at, *end_at))
            }
            Trigger::Cron { .. } | Trigger::FixedRate { .. } | Trigger::Once { .. } | Trigger::Manual {} => None,
        });
        let Some((mut every_us, mut start, mut end)) = of_versions.next() else { continue };
        for (every, begin, stop) in of_versions {
            every_us = every_us.max(every);
            start = start.max(begin);
            end = [end, stop].into_iter().flatten().min();
        }
        let end_us = end.map_or(until_us, |at| us(at.0).min(until_us));
        let end_us = job.deleted.map_or(end_us, |(sent_us, _)| sent_us.min(end_us));
        silent(history, job, every_us, (start.map_or(i64::MIN, |at| us(at.0)), end_us), found);
    }
}

fn silent(history: &History, job: &Job, every_us: i64, (start_us, end_us): (i64, i64), found: &mut Findings<'_>) {
    // Times in which it was not its turn, or in which something of it happened: its delay begins again after each.
    let mut busy: Vec<(i64, i64)> = vec![(i64::MIN, job.create_ack_us.max(start_us))];
    busy.extend(entries(job).map(|entry| (us(entry.logical_time.0), us(last_of(entry)))));
    let runs = history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id));
    busy.extend(runs.map(|run| (us(run.created_at.0), run.ended_at.map_or(i64::MAX, |at| us(at.0)))));
    busy.extend(job.all_pauses().map(|pause| (pause.sent_us, pause.over_us())));
    busy.extend(job.versions.iter().skip(1).map(|edit| (edit.sent_us, edit.ack_us.unwrap_or(i64::MAX))));
    busy.extend(job.reopened.iter().map(|again| (again.asked.sent_us, again.asked.ack_us.unwrap_or(i64::MAX))));
    // What a restore forgot may have been a run.
    busy.extend(history.outages.iter().filter(|o| o.restored).map(|outage| (outage.from_us, outage.to_us)));
    busy.sort_unstable();
    // Times in which nobody served it, or in which it waited for an opening; its delay goes on meanwhile.
    let shard = history.shard_of(job.id);
    let mut away: Vec<(i64, i64)> = history.outages.iter().map(|outage| (outage.from_us, outage.to_us)).collect();
    away.extend(history.disturbances.iter().filter(|d| d.is_about(shard)).map(|d| (d.from_us, d.to_us)));
    away.extend(closed_seconds(job, end_us));
    away.sort_unstable();
    let mut last_us = i64::MIN;
    for (from_us, to_us) in busy.into_iter().chain([(end_us, end_us)]) {
        let next_us = from_us.min(end_us);
        if last_us > i64::MIN && next_us > latest_us(&away, last_us.saturating_add(every_us)) {
            let text = format!(
                "nothing of job {} '{}' happened for {} ms after {}",
                job.id,
                job.spec.name,
                (next_us - last_us) / 1000,
                last_us / 1000
            );
            found.of_job(ViolationKind::DelaySilent, job.id, Some(last_us / 1000), text);
        }
        last_us = last_us.max(to_us);
    }
}

/// Seconds in which a window or a blackout may have made it wait. One that no calendar can read is in `outcomes`.
fn closed_seconds(job: &Job, end_us: i64) -> impl Iterator<Item = (i64, i64)> {
    let windowed: Vec<_> = job.versions.iter().map(|version| &version.spec).filter(|spec| spec.has_windows()).collect();
    let to_ms = if windowed.is_empty() { i64::MIN } else { end_us.div_euclid(1000) };
    let seconds = (job.create_sent_us.div_euclid(1_000_000)..=to_ms.div_euclid(1_000)).map(|second| second * 1_000);
    let is_closed = move |at_ms: &i64| windowed.iter().any(|spec| matches!(closed(spec, *at_ms), Ok(Some(_))));
    seconds.filter(is_closed).map(|at_ms| (us(at_ms), us(at_ms + 1_000)))
}

/// When what is due at `due_us` must have happened: soon after, or soon after somebody served the job again.
fn latest_us(away: &[(i64, i64)], due_us: i64) -> i64 {
    away.iter().fold(due_us.saturating_add(SLACK_US), |latest, (from_us, to_us)| {
        let covers = *from_us <= latest && *to_us >= due_us;
        if covers { latest.max(to_us.saturating_add(SLACK_US)) } else { latest }
    })
}
