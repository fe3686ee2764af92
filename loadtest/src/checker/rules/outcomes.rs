//! Every due instant of every enabled job ends in exactly one recorded outcome, and nothing else does; the ledger's pages and
//! entries join.

use super::{
    facts::{entries, jitter_us, last_of, misfire, told_closed, waits_for_a_person},
    windows::{Expect, expect},
};
use crate::checker::{Findings, History, Job, Oracle, OracleError, ViolationKind, closed};
use campanile_schema::{
    event::SkipReason,
    job::{ConcurrencyPolicy, MisfirePolicy, Trigger},
    record::Source,
};
use std::{collections::BTreeMap, mem::discriminant};

pub fn check(history: &History, found: &mut Findings<'_>) {
    let Some(until_ms) = history.meta.as_ref().map(|m| m.until_ms) else {
        return;
    };
    let first_us = history.jobs.values().map(|j| j.create_sent_us).min().unwrap_or(0);
    let mut oracle = Oracle::new(first_us / 1000 - 1, until_ms);
    for job in history.jobs.values() {
        if job.ledger.is_empty() {
            continue;
        }
        pages_join(job, found);
        if let [only] = job.versions.as_slice()
            && let Trigger::Once { at: None, delay_sec: Some(delay_sec), .. } = &only.spec.trigger
        {
            once_after(job, i64::try_from(*delay_sec).unwrap_or(i64::MAX / 2_000_000), until_ms, found);
            continue;
        }
        match due_of(&mut oracle, job, until_ms) {
            Ok(Some(due)) => by_instant(job, &due, until_ms, held_after(history, job), found),
            Ok(None) => {
                let every = job.versions.iter().filter_map(|version| match &version.spec.trigger {
                    Trigger::FixedDelay { every_sec, .. } => i64::try_from(*every_sec).ok()?.checked_mul(1000),
                    Trigger::Cron { .. } | Trigger::FixedRate { .. } | Trigger::Once { .. } | Trigger::Manual {} => {
                        None
                    }
                });
                if let Some(every_ms) = every.min() {
                    delays(history, job, every_ms, found);
                }
            }
            Err(error) => found.of_job(ViolationKind::NotCheckable, job.id, None, error.0),
        }
    }
}

/// An instant of a trigger.
struct Due {
    at_ms: i64,
    /// The definition that has it was certainly in force.
    sure: bool,
    /// What windows and blackouts may say of it: one answer of each definition that has it.
    closed: Vec<Option<SkipReason>>,
}

impl Due {
    /// It is owed an outcome only when what comes after it has one: the ledger tells it with the next run.
    fn may_be_closed(&self) -> bool {
        self.closed.iter().any(Option::is_some)
    }
}

/// Due instants of all definitions that a job had, ascending. None: the clock does not give them.
fn due_of(oracle: &mut Oracle, job: &Job, until_ms: i64) -> Result<Option<Vec<Due>>, OracleError> {
    if let [only] = job.versions.as_slice() {
        let Some(due) = oracle.due(&only.spec, only.sent_us.div_euclid(1000), until_ms)? else { return Ok(None) };
        let of = |at_ms: i64| Ok::<_, OracleError>(Due { at_ms, sure: true, closed: vec![closed(&only.spec, at_ms)?] });
        return due.into_iter().map(of).collect::<Result<_, _>>().map(Some);
    }
    let mut all: BTreeMap<i64, Due> = BTreeMap::new();
    for (n, version) in job.versions.iter().enumerate() {
        let later = job.versions.get(n + 1..).unwrap_or_default();
        let to_us = later.iter().find_map(|edit| edit.ack_us).unwrap_or(i64::MAX);
        let sure_to_us = later.first().map_or(i64::MAX, |edit| edit.sent_us);
        let to_ms = until_ms.min(to_us.div_euclid(1000));
        let Some(due) = oracle.due(&version.spec, version.sent_us.div_euclid(1000), to_ms)? else {
            return if job.versions.iter().all(|v| discriminant(&v.spec.trigger) == discriminant(&version.spec.trigger))
            {
                Ok(None)
            } else {
                Err(OracleError("an edit changed the kind of the trigger".to_owned()))
            };
        };
        for at in due {
            let at_us = at.saturating_mul(1000);
            let sure = version.ack_us.is_some_and(|ack_us| at_us > ack_us) && at_us < sure_to_us;
            let known = all.entry(at).or_insert(Due { at_ms: at, sure: false, closed: Vec::new() });
            known.sure |= sure || (n == 0 && at_us < sure_to_us);
            known.closed.push(closed(&version.spec, at)?);
        }
    }
    Ok(Some(all.into_values().collect()))
}

/// ONCE with a delay: one instant, at the delay after a moment between the request and its acknowledgement.
fn once_after(job: &Job, delay_sec: i64, until_ms: i64, found: &mut Findings<'_>) {
    let delay_ms = delay_sec.saturating_mul(1000);
    let from_ms = job.create_sent_us.div_euclid(1000).saturating_add(delay_ms);
    let to_ms = job.create_ack_us.div_euclid(1000).saturating_add(delay_ms + 1);
    found.counts.due_instants += 1;
    let mut count = 0;
    for entry in entries(job) {
        *found.counts.outcomes.entry(entry.outcome.to_string()).or_default() += entry.count;
        count += entry.count;
        if entry.logical_time.0 < from_ms || last_of(entry) > to_ms {
            let text = format!(
                "{} for {}; job {} is due once, between {from_ms} and {to_ms}",
                entry.outcome, entry.logical_time, job.id
            );
            found.of_job(ViolationKind::OutcomeUndue, job.id, Some(entry.logical_time.0), text);
        }
    }
    if count > 1 {
        let text = format!("job {}, which is due once, has {count} outcomes", job.id);
        found.of_job(ViolationKind::OutcomeDoubled, job.id, Some(from_ms), text);
    }
    let required = [from_ms, to_ms].into_iter().all(|at| matches!(expect(job, at), Expect::Required | Expect::Paused));
    if count == 0 && required && to_ms <= until_ms {
        let text = format!("job {}, which is due between {from_ms} and {to_ms}, has no outcome", job.id);
        found.of_job(ViolationKind::OutcomeMissing, job.id, Some(to_ms), text);
    }
}

fn pages_join(job: &Job, found: &mut Findings<'_>) {
    for pair in job.ledger.windows(2) {
        if let [before, after] = pair
            && before.to != after.from
        {
            let text = format!("a page ends at {} and the next begins at {}", before.to, after.from);
            found.of_job(ViolationKind::LedgerNotJoined, job.id, Some(after.from.0), text);
        }
    }
    for page in &job.ledger {
        let mut before = page.from.0;
        for entry in &page.items {
            let (first, last) = (entry.logical_time.0, last_of(entry));
            if first > last || last > page.to.0 || first < page.from.0 {
                let text =
                    format!("an entry for {}..{} in a page ({}, {}]", entry.logical_time, last, page.from, page.to);
                found.of_job(ViolationKind::LedgerNotJoined, job.id, Some(first), text);
            } else if first < before {
                let text = format!("the entry at {} is not after the one before it", entry.logical_time);
                found.of_job(ViolationKind::LedgerNotJoined, job.id, Some(first), text);
            }
            before = before.max(last);
        }
    }
}

/// Up to where the ledger must be told. Missed instants that must all be fired, one after the other, are not decided while
/// a run before them waits for a person: they stay due.
fn held_after(history: &History, job: &Job) -> i64 {
    let in_turn = job.spec.concurrency_policy != ConcurrencyPolicy::Allow
        && misfire(&job.spec.trigger) == Some(MisfirePolicy::FireAllMissed);
    match job.ledger.last() {
        Some(page) if in_turn && waits_for_a_person(history, job.id) => page.to.0,
        Some(_) | None => i64::MAX,
    }
}

fn by_instant(job: &Job, instants: &[Due], until_ms: i64, held_after_ms: i64, found: &mut Findings<'_>) {
    let due: Vec<i64> = instants.iter().map(|due| due.at_ms).collect();
    found.counts.due_instants += due.len() as u64;
    let mut outcomes = vec![0_u32; due.len()];
    for entry in entries(job) {
        *found.counts.outcomes.entry(entry.outcome.to_string()).or_default() += entry.count;
        let (first, last) = (entry.logical_time.0, last_of(entry));
        let start = due.partition_point(|t| *t < first);
        let end = due.partition_point(|t| *t <= last);
        let covered = (end - start) as u64;
        let what = entry.outcome;
        if covered == 0 {
            let text = format!(
                "{what} for {}, which is no due instant of job {} '{}'",
                entry.logical_time, job.id, job.spec.name
            );
            found.of_job(ViolationKind::OutcomeUndue, job.id, Some(first), text);
            continue;
        }
        // Near an edit only some of them were due.
        let these = instants.get(start..end).unwrap_or_default();
        let told = told_closed(entry);
        if let Some(wrong) = these.iter().find(|due| !due.closed.contains(&told)) {
            let text = format!(
                "{what} with {told:?} for {} of job {} '{}'; its windows and blackouts say {:?}",
                wrong.at_ms, job.id, job.spec.name, wrong.closed
            );
            found.of_job(ViolationKind::OutcomeUnjustified, job.id, Some(wrong.at_ms), text);
        }
        let sure = these.iter().filter(|due| due.sure).count() as u64;
        let counts = sure <= entry.count && entry.count <= covered;
        if !counts || due.get(start) != Some(&first) || due.get(end - 1) != Some(&last) {
            let text = format!(
                "{what} says {} instants from {first} to {last}; the oracle counts {covered} in it",
                entry.count
            );
            let kind = if covered > entry.count { ViolationKind::OutcomeMissing } else { ViolationKind::OutcomeUndue };
            found.of_job(kind, job.id, Some(first), text);
        }
        for n in outcomes.get_mut(start..end).unwrap_or_default() {
            *n += 1;
        }
    }
    let told_to_ms = entries(job).map(last_of).max().unwrap_or(i64::MIN);
    for (due, outcomes) in instants.iter().zip(outcomes) {
        let Due { at_ms, sure, .. } = *due;
        if outcomes > 1 {
            let text = format!("the instant {at_ms} of job {} '{}' has {outcomes} outcomes", job.id, job.spec.name);
            found.of_job(ViolationKind::OutcomeDoubled, job.id, Some(at_ms), text);
        }
        let required = match expect(job, at_ms) {
            Expect::Required | Expect::Paused => true,
            Expect::Free | Expect::StillPaused | Expect::Deleted => false,
        };
        // Until its jitter is over it is not decided.
        let decided = at_ms.saturating_add(jitter_us(job) / 1000) <= until_ms && at_ms <= held_after_ms;
        let decided = decided && (!due.may_be_closed() || at_ms < told_to_ms);
        if outcomes == 0 && required && sure && decided {
            let told_to = job.ledger.last().map_or(0, |p| p.to.0);
            let text = format!(
                "the instant {at_ms} of job {} '{}' has no outcome (ledger told to {told_to})",
                job.id, job.spec.name
            );
            found.of_job(ViolationKind::OutcomeMissing, job.id, Some(at_ms), text);
        }
    }
}

/// FIXED_DELAY: no instant earlier than `every` after the run before it became final. `silence` judges that it goes on.
fn delays(history: &History, job: &Job, every_ms: i64, found: &mut Findings<'_>) {
    for entry in entries(job) {
        *found.counts.outcomes.entry(entry.outcome.to_string()).or_default() += entry.count;
        found.counts.due_instants += entry.count;
    }
    let mut runs: Vec<_> = history
        .runs_of
        .get(&job.id)
        .into_iter()
        .flatten()
        .filter_map(|id| history.runs.get(id))
        .filter(|run| run.source == Source::Schedule)
        .filter_map(|run| Some((run.logical_time?.0, run)))
        .collect();
    runs.sort_by_key(|(logical, _)| *logical);
    for pair in runs.windows(2) {
        if let [(_, before), (logical, after)] = pair
            && before.ended_at.is_none_or(|ended| *logical < ended.0 + every_ms)
        {
            let text = format!(
                "run {} is due {logical}, sooner than {every_ms} ms after run {} ended",
                after.run_id, before.run_id
            );
            found.of_run(ViolationKind::OutcomeUndue, job.id, after.run_id, Some(*logical), text);
        }
    }
    let [only] = job.versions.as_slice() else { return };
    for (logical, run) in runs {
        match closed(&only.spec, logical) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                let text = format!("run {} is due {logical}, which {reason} closes", run.run_id);
                found.of_run(ViolationKind::OutcomeUndue, job.id, run.run_id, Some(logical), text);
            }
            Err(error) => found.of_job(ViolationKind::NotCheckable, job.id, None, error.0),
        }
    }
}
