//! A job's ledger against arithmetic: intervals join without gap or overlap, and every due instant up to the cursor has
//! exactly one outcome.

use crate::plan::Plan;
use campanile_ports::LedgerRow;
use campanile_schema::{
    event::{LedgerEntry, Outcome},
    ids::RunId,
};
use std::collections::BTreeMap;

/// What a whole ledger says.
#[derive(Debug, Default)]
pub struct LedgerReading {
    pub cursor_ms: Option<i64>,
    /// Runs that instants fired.
    pub fired: BTreeMap<RunId, i64>,
}

/// `begins`: where the first interval must begin, if that is known. `plans`: by version, from 1.
pub fn check(begins: Option<i64>, plans: &[Plan], rows: &[LedgerRow]) -> Result<LedgerReading, String> {
    let mut told = LedgerReading { cursor_ms: begins, fired: BTreeMap::new() };
    let mut version = 1;
    for row in rows {
        let cursor = told.cursor_ms.unwrap_or(row.from_ms);
        if row.from_ms != cursor || row.to_ms <= row.from_ms {
            return Err(format!("an interval does not begin where the one before ended ({cursor}): {row:?}"));
        }
        if row.version < version {
            return Err(format!("an interval of version {} after one of version {version}: {row:?}", row.version));
        }
        version = row.version;
        let plan = plans
            .get(version as usize - 1)
            .ok_or_else(|| format!("an interval of a version that was never written: {row:?}"))?;
        if let Some(due) = plan.instants(row.from_ms, row.to_ms) {
            whole(&due, &row.entries).map_err(|why| format!("{why}: {row:?}; due by arithmetic: {due:?}"))?;
        }
        for entry in &row.entries {
            if let (true, Some(run)) = (is_fired(entry), entry.run)
                && told.fired.insert(run, entry.first_ms).is_some()
            {
                return Err(format!("run {run} stands for two instants: {row:?}"));
            }
        }
        told.cursor_ms = Some(row.to_ms);
    }
    Ok(told)
}

fn is_fired(entry: &LedgerEntry) -> bool {
    match entry.outcome {
        Outcome::Fired | Outcome::FiredLate => true,
        Outcome::Coalesced | Outcome::Skipped | Outcome::Missed | Outcome::DstSkipped => false,
    }
}

/// The entries name every instant once, in order.
fn whole(due: &[i64], entries: &[LedgerEntry]) -> Result<(), String> {
    let mut rest = due;
    for entry in entries {
        let count = entry.count as usize;
        if count == 0 || count > rest.len() {
            return Err(format!("an entry of {count} instants where {} are left", rest.len()));
        }
        let (these, later) = rest.split_at(count);
        if these[0] != entry.first_ms || these[count - 1] != entry.last_ms {
            return Err("an entry names other instants than those that are due".to_owned());
        }
        if is_fired(entry) && (count != 1 || entry.run.is_none()) {
            return Err("a fired entry without its run".to_owned());
        }
        rest = later;
    }
    if rest.is_empty() { Ok(()) } else { Err(format!("{} instants have no outcome", rest.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::When, random::Random};

    fn row(from_ms: i64, to_ms: i64, entries: Vec<LedgerEntry>) -> LedgerRow {
        LedgerRow {
            job: campanile_schema::ids::JobId(1),
            from_ms,
            to_ms,
            version: 1,
            tzdb: campanile_schema::text::Text::default(),
            entries,
        }
    }

    fn entry(first_ms: i64, last_ms: i64, count: u64) -> LedgerEntry {
        LedgerEntry { first_ms, last_ms, count, outcome: Outcome::Skipped, reason: None, run: None }
    }

    #[test]
    fn a_hole_an_overlap_and_a_forgotten_instant_are_seen() {
        let mut plan = Plan::draw(&mut Random::new(1), 0);
        plan.when = When::Rate { every_sec: 2, anchor_ms: 1_000 };
        let plans = [plan];
        let good = [row(0, 4_000, vec![entry(1_000, 3_000, 2)]), row(4_000, 5_000, vec![entry(5_000, 5_000, 1)])];
        assert_eq!(check(Some(0), &plans, &good).unwrap().cursor_ms, Some(5_000));
        assert!(check(Some(1), &plans, &good).is_err(), "begins elsewhere");
        assert!(check(None, &plans, &good[1..]).is_ok());
        let hole = [good[0].clone(), row(4_500, 5_000, vec![entry(5_000, 5_000, 1)])];
        assert!(check(Some(0), &plans, &hole).is_err());
        assert!(check(Some(0), &plans, &[row(0, 4_000, vec![entry(1_000, 1_000, 1)])]).is_err(), "3,000 is forgotten");
        let twice = row(0, 4_000, vec![entry(1_000, 3_000, 2), entry(3_000, 3_000, 1)]);
        assert!(check(Some(0), &plans, &[twice]).is_err());
    }
}
