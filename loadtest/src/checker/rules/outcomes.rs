//! Every due instant of every enabled job ends in exactly one recorded outcome, and nothing else does; the ledger's pages and
//! entries join.

use super::{
    justified::misfire,
    runs::waits_for_a_person,
    windows::{Expect, expect},
};
use crate::checker::{Findings, History, Job, Kind, Oracle};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{ConcurrencyPolicy, MisfirePolicy, Trigger},
    record::Source,
    view::LedgerEntryView,
};

/// What a FIXED_DELAY job may be behind the end of its last run before it counts as silent, milliseconds.
const DELAY_SLACK_MS: i64 = 2_000;

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
        match oracle.due(&job.spec, job.create_sent_us.div_euclid(1000), until_ms) {
            Ok(Some(due)) => by_instant(job, &due, until_ms, held_after(history, job), found),
            Ok(None) => {
                if let Trigger::FixedDelay { every_sec, end_at, .. } = &job.spec.trigger {
                    let last_ms = end_at.map_or(until_ms, |e| e.0.min(until_ms));
                    delays(history, job, i64::try_from(*every_sec).unwrap_or(i64::MAX / 1000) * 1000, last_ms, found);
                }
            }
            Err(error) => found.of_job(Kind::NotCheckable, job.id, None, error.0),
        }
    }
}

/// Entries of all pages, oldest first.
pub fn entries(job: &Job) -> impl Iterator<Item = &LedgerEntryView> {
    job.ledger.iter().flat_map(|page| &page.items)
}

pub fn last_of(entry: &LedgerEntryView) -> i64 {
    entry.until.map_or(entry.logical_time.0, |u| u.0)
}

/// An instant outside the trigger's own window may be told as SKIPPED(WINDOW); nobody is owed one.
pub fn is_window(entry: &LedgerEntryView) -> bool {
    entry.outcome == Outcome::Skipped && entry.reason == Some(SkipReason::Window)
}

fn pages_join(job: &Job, found: &mut Findings<'_>) {
    for pair in job.ledger.windows(2) {
        if let [before, after] = pair
            && before.to != after.from
        {
            let text = format!("a page ends at {} and the next begins at {}", before.to, after.from);
            found.of_job(Kind::LedgerNotJoined, job.id, Some(after.from.0), text);
        }
    }
    for page in &job.ledger {
        let mut before = page.from.0;
        for entry in &page.items {
            let (first, last) = (entry.logical_time.0, last_of(entry));
            if first > last || last > page.to.0 || first < page.from.0 {
                let text =
                    format!("an entry for {}..{} in a page ({}, {}]", entry.logical_time, last, page.from, page.to);
                found.of_job(Kind::LedgerNotJoined, job.id, Some(first), text);
            } else if first < before {
                let text = format!("the entry at {} is not after the one before it", entry.logical_time);
                found.of_job(Kind::LedgerNotJoined, job.id, Some(first), text);
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

fn by_instant(job: &Job, due: &[i64], until_ms: i64, held_after_ms: i64, found: &mut Findings<'_>) {
    found.counts.due_instants += due.len() as u64;
    let mut outcomes = vec![0_u32; due.len()];
    for entry in entries(job) {
        *found.counts.outcomes.entry(entry.outcome.to_string()).or_default() += entry.count;
        let (first, last) = (entry.logical_time.0, last_of(entry));
        let start = due.partition_point(|t| *t < first);
        let end = due.partition_point(|t| *t <= last);
        let covered = (end - start) as u64;
        if is_window(entry) && covered == 0 {
            continue;
        }
        let what = entry.outcome;
        if covered == 0 {
            let text = format!(
                "{what} for {}, which is no due instant of job {} '{}'",
                entry.logical_time, job.id, job.spec.name
            );
            found.of_job(Kind::OutcomeUndue, job.id, Some(first), text);
            continue;
        }
        if covered != entry.count || due.get(start) != Some(&first) || due.get(end - 1) != Some(&last) {
            let text = format!(
                "{what} says {} instants from {first} to {last}; the oracle counts {covered} in it",
                entry.count
            );
            let kind = if covered > entry.count { Kind::OutcomeMissing } else { Kind::OutcomeUndue };
            found.of_job(kind, job.id, Some(first), text);
        }
        for n in outcomes.get_mut(start..end).unwrap_or_default() {
            *n += 1;
        }
    }
    for (at_ms, outcomes) in due.iter().copied().zip(outcomes) {
        if outcomes > 1 {
            let text = format!("the instant {at_ms} of job {} '{}' has {outcomes} outcomes", job.id, job.spec.name);
            found.of_job(Kind::OutcomeDoubled, job.id, Some(at_ms), text);
        }
        let required = match expect(job, at_ms) {
            Expect::Required | Expect::Paused => true,
            Expect::Free | Expect::StillPaused | Expect::Deleted => false,
        };
        if outcomes == 0 && required && at_ms <= until_ms.min(held_after_ms) {
            let told_to = job.ledger.last().map_or(0, |p| p.to.0);
            let text = format!(
                "the instant {at_ms} of job {} '{}' has no outcome (ledger told to {told_to})",
                job.id, job.spec.name
            );
            found.of_job(Kind::OutcomeMissing, job.id, Some(at_ms), text);
        }
    }
}

/// FIXED_DELAY: no instant earlier than `every` after the run before it became final, and no silence after the last.
fn delays(history: &History, job: &Job, every_ms: i64, last_ms: i64, found: &mut Findings<'_>) {
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
            found.of_run(Kind::OutcomeUndue, job.id, after.run_id, Some(*logical), text);
        }
    }
    let undisturbed = job.pauses.is_empty() && job.deleted.is_none();
    let next_ms = match runs.last() {
        Some((_, run)) => run.ended_at.map(|ended| ended.0 + every_ms),
        None => Some(job.create_ack_us / 1000 + every_ms),
    };
    if let Some(next_ms) = next_ms
        && undisturbed
        && next_ms + DELAY_SLACK_MS <= last_ms
        && entries(job).all(|e| last_of(e) < next_ms)
    {
        let text = format!("nothing happened at {next_ms}, {every_ms} ms after the last run of job {} ended", job.id);
        found.of_job(Kind::OutcomeMissing, job.id, Some(next_ms), text);
    }
}
