//! Rows of `fires`: intervals of ledgers at whose end a schedule started one run, and nothing else. They are nearly all of a ledger, and
//! the job's list follows from them, so a trigger has no entry of its own there.
//!
//! Key: as in `ledger`. Value, all of it part of what is stored: a byte for the outcome, the run's id and the definition's version as
//! big-endian numbers, the version of the zone database. It fits into the row itself ([`super::stretch`]), without memory of its own.

use super::keys;
use crate::tables::fired;
use campanile_ports::LedgerRow;
use campanile_schema::{
    event::{LedgerEntry, Outcome},
    ids::{JobId, RunId},
};

const FIRED: u8 = 1;
const FIRED_LATE: u8 = 2;
/// Outcome, run, version.
const HEAD: usize = 1 + 8 + 4;

/// The value of an interval's row, if it is one of those.
pub fn value(row: &LedgerRow) -> Option<Vec<u8>> {
    let run = fired(row)?;
    let outcome = match row.entries.first()?.outcome {
        Outcome::Fired => FIRED,
        Outcome::FiredLate => FIRED_LATE,
        Outcome::Skipped | Outcome::Missed | Outcome::Coalesced | Outcome::DstSkipped => return None,
    };
    let mut value = Vec::with_capacity(HEAD + row.tzdb.len());
    value.push(outcome);
    value.extend(run.0.to_be_bytes());
    value.extend(u32::try_from(row.version).ok()?.to_be_bytes());
    value.extend(row.tzdb.as_bytes());
    // What cannot be told from the row stays in `ledger` as it is.
    let key = keys::ledger(row.job, row.to_ms, row.from_ms);
    (interval(&key, &value).as_ref() == Some(row)).then_some(value)
}

/// The interval of a row; None: it is damaged, or of a later release.
pub fn interval(key: &[u8], value: &[u8]) -> Option<LedgerRow> {
    let (job, to_ms, from_ms) = keys::of_ledger(key)?;
    let (outcome, rest) = value.split_first()?;
    let (run, rest) = rest.split_first_chunk()?;
    let (version, tzdb) = rest.split_first_chunk()?;
    let outcome = match *outcome {
        FIRED => Outcome::Fired,
        FIRED_LATE => Outcome::FiredLate,
        _ => return None,
    };
    let run = Some(RunId(u64::from_be_bytes(*run)));
    Some(LedgerRow {
        job,
        from_ms,
        to_ms,
        version: u32::from_be_bytes(*version).into(),
        tzdb: std::str::from_utf8(tzdb).ok()?.into(),
        entries: vec![LedgerEntry { first_ms: to_ms, last_ms: to_ms, count: 1, outcome, reason: None, run }],
    })
}

/// Instant and run of a row.
pub fn entry(key: &[u8], value: &[u8]) -> Option<(i64, RunId)> {
    let (_, to_ms, _): (JobId, i64, i64) = keys::of_ledger(key)?;
    let run = value.get(1..9)?.try_into().ok()?;
    Some((to_ms, RunId(u64::from_be_bytes(run))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::samples::{fired, ledger};
    use campanile_schema::event::SkipReason;

    #[test]
    fn fired_intervals_are_read_back_and_others_are_none_of_them() {
        for late in [false, true] {
            let mut row = fired(4, 70_000, 5_000, 1_900_000_000_000);
            row.from_ms = row.to_ms - 86_400_000;
            if late {
                row.entries[0].outcome = Outcome::FiredLate;
            }
            let key = keys::ledger(row.job, row.to_ms, row.from_ms);
            let value = value(&row).unwrap();
            assert_eq!(value, [&[1 + u8::from(late), 0, 0, 0, 0, 0, 1, 17, 112, 0, 0, 0, 1][..], b"2026b"].concat());
            assert_eq!(interval(&key, &value), Some(row.clone()));
            assert_eq!(entry(&key, &value), Some((row.to_ms, RunId(70_000))));
        }
        let changed = |change: fn(&mut LedgerRow)| {
            let mut row = fired(4, 7, 100, 200);
            change(&mut row);
            value(&row)
        };
        assert!(changed(|_| ()).is_some());
        assert_eq!(value(&ledger(4, 100, 200)), None, "no run");
        assert_eq!(changed(|row| row.entries[0].outcome = Outcome::Skipped), None);
        assert_eq!(changed(|row| row.entries.push(row.entries[0].clone())), None);
        assert_eq!(changed(|row| row.entries[0].reason = Some(SkipReason::Paused)), None);
        assert_eq!(changed(|row| row.entries[0].first_ms -= 1), None);
        assert_eq!(changed(|row| row.version = u64::MAX), None);
        assert_eq!(changed(|row| row.from_ms = i64::MIN), None, "longer than a key tells");
        assert_eq!(interval(&keys::ledger(JobId(4), 200, 100), &[9; 20]), None, "of a later release");
    }
}
