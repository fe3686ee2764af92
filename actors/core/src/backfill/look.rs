//! A stretch of a job's past: what the ledger says of it, and which instants it has.
//!
//! The ledger says of many instants in one entry how many there were. Which ones follows from the schedule: that of now, if its count and
//! its ends agree with what the entry says. Nobody keeps the schedules of before, so a stretch in which they do not agree is told as
//! differing, and none of its instants runs.

use super::rules::{Rule, kept};
use crate::schedule::Schedule;
use campanile_schema::{
    event::{LedgerEntry, Outcome, SkipReason},
    ids::RunId,
    stored::rows::LedgerRow,
};

/// A job whose past is looked at.
#[derive(Clone, Debug)]
pub struct Past {
    pub schedule: Schedule,
    /// When the job was created: nothing is in the ledger from before.
    pub created_ms: i64,
}

/// What is known of the instants of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The job was not there yet.
    Before,
    /// The ledger says nothing any more.
    Nothing,
    Outcome {
        outcome: Outcome,
        reason: Option<SkipReason>,
        run: Option<RunId>,
    },
}

/// Which instants a stretch has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instants {
    /// Those of the schedule of now.
    Scheduled,
    These(Vec<i64>),
    /// So many that nobody can tell one by one.
    Differing(u64),
}

/// `(after, upto]` of the past of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub after_ms: i64,
    pub upto_ms: i64,
    pub known: Known,
    pub instants: Instants,
}

impl Stretch {
    /// How many instants it has.
    pub fn count(&self, past: &Past) -> u64 {
        match &self.instants {
            Instants::Scheduled => past.schedule.count(self.after_ms, self.upto_ms, None),
            Instants::These(these) => these.len() as u64,
            Instants::Differing(count) => *count,
        }
    }

    /// The first of its instants after this one.
    pub fn next(&self, past: &Past, after_ms: i64) -> Option<i64> {
        let after_ms = after_ms.max(self.after_ms);
        match &self.instants {
            Instants::Scheduled => past.schedule.next(after_ms, None).filter(|at| *at <= self.upto_ms),
            Instants::These(these) => these.iter().copied().find(|at| *at > after_ms),
            Instants::Differing(_) => None,
        }
    }
}

/// What the rows say of `(after, to]`, in order and without gaps. `rows`: those that touch it, oldest first.
pub fn stretches(past: &Past, after_ms: i64, to_ms: i64, rows: &[LedgerRow]) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut at_ms = after_ms;
    for row in rows {
        let (from, to) = (row.from_ms.clamp(at_ms, to_ms), row.to_ms.min(to_ms));
        silent(past, at_ms, from, &mut found);
        at_ms = from;
        for entry in &row.entries {
            let (first, last) = (entry.first_ms.max(at_ms + 1), entry.last_ms.min(to));
            if first <= last {
                found.push(told(past, entry, first - 1, last));
                at_ms = last;
            }
        }
        at_ms = at_ms.max(to);
    }
    silent(past, at_ms, to_ms, &mut found);
    found
}

/// A stretch of which no row tells.
fn silent(past: &Past, after_ms: i64, upto_ms: i64, found: &mut Vec<Stretch>) {
    let created = past.created_ms.clamp(after_ms, upto_ms.max(after_ms));
    for (after_ms, upto_ms, known) in [(after_ms, created, Known::Before), (created, upto_ms, Known::Nothing)] {
        if after_ms < upto_ms {
            found.push(Stretch { after_ms, upto_ms, known, instants: Instants::Scheduled });
        }
    }
}

/// The part of an entry that lies in `(after, upto]`.
fn told(past: &Past, entry: &LedgerEntry, after_ms: i64, upto_ms: i64) -> Stretch {
    let LedgerEntry { first_ms, last_ms, count, outcome, reason, run } = *entry;
    let known = Known::Outcome { outcome, reason, run };
    let within = |at: &i64| (after_ms + 1..=upto_ms).contains(at);
    let instants = match count {
        1 => Instants::These([first_ms].into_iter().filter(within).collect()),
        2 => Instants::These([first_ms, last_ms].into_iter().filter(within).collect()),
        _ if agrees(past, entry) || !kept(Rule::InstantsAgree) => Instants::Scheduled,
        // Told once, where the entry begins.
        count => Instants::Differing(if within(&first_ms) { count } else { 0 }),
    };
    Stretch { after_ms, upto_ms, known, instants }
}

/// Whether the schedule of now has the instants that an entry tells of.
fn agrees(past: &Past, entry: &LedgerEntry) -> bool {
    let (before, last) = (entry.first_ms - 1, entry.last_ms);
    let schedule = &past.schedule;
    schedule.next(before, None) == Some(entry.first_ms)
        && schedule.next(last - 1, None) == Some(last)
        && schedule.count(before, last, None) == entry.count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{
        ids::JobId,
        job::{JobSpec, Trigger},
        stored::{StoredJob, StoredTrigger},
    };

    const MINUTE: i64 = 60_000;

    /// A job that is due each minute, created at minute 10.
    fn past() -> Past {
        let trigger = StoredTrigger::FixedRate { every_ms: MINUTE, anchor_ms: 0 };
        let def = StoredJob::from_spec(&JobSpec::new("default", "a", Trigger::Manual {}), trigger, None);
        Past { schedule: Schedule::compile(&def).unwrap(), created_ms: 10 * MINUTE }
    }

    fn entry(first: i64, last: i64, count: u64, reason: SkipReason) -> LedgerEntry {
        let (first_ms, last_ms) = (first * MINUTE, last * MINUTE);
        LedgerEntry { first_ms, last_ms, count, outcome: Outcome::Skipped, reason: Some(reason), run: None }
    }

    fn row(from: i64, to: i64, entries: Vec<LedgerEntry>) -> LedgerRow {
        LedgerRow { job: JobId(1), from_ms: from * MINUTE, to_ms: to * MINUTE, version: 1, tzdb: "x".into(), entries }
    }

    /// Each stretch with its instants in minutes.
    fn seen(after: i64, to: i64, rows: &[LedgerRow]) -> Vec<(Known, Vec<i64>)> {
        let past = past();
        let of = |stretch: &Stretch| {
            let mut at = stretch.after_ms;
            let mut all = Vec::new();
            while let Some(next) = stretch.next(&past, at) {
                all.push(next / MINUTE);
                at = next;
            }
            let differing = matches!(stretch.instants, Instants::Differing(_));
            assert!(differing || all.len() as u64 == stretch.count(&past), "{stretch:?}");
            (stretch.known, all)
        };
        stretches(&past, after * MINUTE, to * MINUTE, rows).iter().map(of).collect()
    }

    fn skipped(reason: SkipReason) -> Known {
        Known::Outcome { outcome: Outcome::Skipped, reason: Some(reason), run: None }
    }

    #[test]
    fn before_it_was_created_and_where_the_ledger_is_silent_the_schedule_tells() {
        let rows = [row(13, 15, vec![entry(14, 15, 2, SkipReason::Paused)])];
        let wanted = [
            (Known::Before, vec![9, 10]),
            (Known::Nothing, vec![11, 12, 13]),
            (skipped(SkipReason::Paused), vec![14, 15]),
            (Known::Nothing, vec![16]),
        ];
        assert_eq!(seen(8, 16, &rows), wanted);
        assert_eq!(seen(8, 16, &[]), [(Known::Before, vec![9, 10]), (Known::Nothing, vec![11, 12, 13, 14, 15, 16])]);
    }

    #[test]
    fn an_entry_that_reaches_over_the_edges_gives_what_is_asked_for() {
        let rows = [row(10, 30, vec![entry(11, 20, 10, SkipReason::Misfire), entry(21, 30, 10, SkipReason::Paused)])];
        let wanted = [(skipped(SkipReason::Misfire), vec![19, 20]), (skipped(SkipReason::Paused), vec![21, 22])];
        assert_eq!(seen(18, 22, &rows), wanted);
    }

    #[test]
    fn instants_of_another_schedule_are_told_and_not_guessed() {
        // Every third minute: the schedule of now has more.
        let rows = [row(10, 30, vec![entry(12, 30, 7, SkipReason::Paused)])];
        let past = past();
        let of = |after: i64, to: i64| {
            let found = stretches(&past, after * MINUTE, to * MINUTE, &rows);
            found
                .iter()
                .filter_map(|stretch| match stretch.instants {
                    Instants::Differing(count) => Some(count),
                    Instants::Scheduled | Instants::These(_) => None,
                })
                .sum::<u64>()
        };
        assert_eq!(of(10, 30), 7);
        assert_eq!(of(10, 20) + of(20, 30), 7, "once, however the interval is cut");
        assert_eq!(seen(10, 30, &rows).iter().map(|(_, all)| all.len()).sum::<usize>(), 0);
    }
}
