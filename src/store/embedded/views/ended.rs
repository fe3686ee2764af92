//! The list of ended runs of all jobs, the one that ended last first. It follows from `by_time`, which retention needs anyway.
//!
//! Rows of one second overlap, because runs that share a row ended within one second ([`super::packs`]). So a second is read whole and put
//! in order, and then the second before it.

use super::{
    Db, keys,
    packs::{self, Ended, SPAN_MS},
    staging::Table,
};
use campanile_ports::{EndedQuery, RunPage, StoreError};
use campanile_schema::{ids::RunId, limits};
use std::{collections::BTreeSet, iter::Peekable, ops::Bound};

/// Records that are read together: several threads read them.
const READ_TOGETHER: usize = 32;

pub fn list(db: &Db, query: &EndedQuery, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
    let before = query.before(after);
    // The end of the second in which the list goes on.
    let end = before.0.div_euclid(SPAN_MS).saturating_add(1).saturating_mul(SPAN_MS);
    let rows = db.scan_back(Table::ByTime, Bound::Excluded(keys::by_time_end(end).to_vec()), &[]);
    let failed_only = query.is_of_failed();
    let runs = rows.map(move |row| {
        let (key, value) = row?;
        match packs::of(&key, &value) {
            // Runs that failed have rows of their own.
            Some(_) if failed_only => Ok(Vec::new()),
            Some(runs) => Ok(runs),
            None => Ok(keys::of_by_time(&key).into_iter().collect()),
        }
    });
    let mut seconds = Seconds { rows: runs.peekable(), ready: Vec::new() };
    let (mut page, mut looked) = (RunPage::default(), 0);
    let mut last = None;
    loop {
        let mut some = Vec::with_capacity(READ_TOGETHER);
        while some.len() < READ_TOGETHER
            && let Some((ended, run)) = seconds.next_run().transpose()?
        {
            if (ended, run.0) < before && ended >= query.from_ms {
                some.push((ended, run));
            } else if ended < query.from_ms {
                break;
            }
        }
        if some.is_empty() {
            return Ok(page);
        }
        let ids: Vec<RunId> = some.iter().map(|(_, run)| *run).collect();
        for ((ended, run), record) in some.into_iter().zip(db.records(&ids)?) {
            if page.items.len() == limit || looked == limits::ENDED_RUN_LOOKS {
                page.next = last;
                return Ok(page);
            }
            looked += 1;
            last = Some(EndedQuery::token(ended, run.0));
            // It may have been started again since, and ended anew.
            page.items.extend(record.filter(|record| record.ended_ms == Some(ended) && query.fits(record)));
        }
    }
}

/// Runs of rows of `by_time` that come backwards, put in order second by second.
struct Seconds<R: Iterator> {
    rows: Peekable<R>,
    /// What is left of a second, the one that ended last at the end of the list.
    ready: Vec<Ended>,
}

impl<R: Iterator<Item = Result<Vec<Ended>, StoreError>>> Seconds<R> {
    fn next_run(&mut self) -> Option<Result<Ended, StoreError>> {
        while self.ready.is_empty() {
            match self.second() {
                Ok(Some(runs)) => self.ready = runs,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.ready.pop().map(Ok)
    }

    /// All runs of the second of the row that comes next, the earliest first. None: there is no row.
    fn second(&mut self) -> Result<Option<Vec<Ended>>, StoreError> {
        let Some(first) = self.rows.next().transpose()? else { return Ok(None) };
        let second_of = |runs: &[Ended]| runs.first().map(|(ended, _)| ended.div_euclid(SPAN_MS));
        let Some(second) = second_of(&first) else { return Ok(Some(Vec::new())) };
        let mut all: BTreeSet<(i64, u64)> = first.into_iter().map(|(ended, run)| (ended, run.0)).collect();
        let is_same = |row: &Result<Vec<Ended>, StoreError>| {
            row.as_ref().map_or(true, |runs| second_of(runs).is_none_or(|of| of == second))
        };
        while let Some(row) = self.rows.next_if(is_same) {
            all.extend(row?.into_iter().map(|(ended, run)| (ended, run.0)));
        }
        Ok(Some(all.into_iter().map(|(ended, run)| (ended, RunId(run))).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::open::begin;
    use super::*;
    use crate::{
        embedded::EmbeddedOptions,
        samples::{at, end_at, reopened, scheduled},
        tables::Tables,
    };
    use campanile_ports::Row;
    use campanile_schema::record::RunState;

    fn ids(tables: &dyn Tables, query: &EndedQuery, limit: usize) -> Vec<u64> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = tables.ended_runs(query, after.as_deref(), limit).unwrap();
            assert!(page.items.len() <= limit);
            all.extend(page.items.iter().map(|record| record.run.0));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    #[test]
    fn ended_runs_are_listed_last_first_and_once_however_batches_were_cut() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        end_at(&*tables, 1, &[10, 30, 50, 999, 1_000]);
        end_at(&*tables, 2, &[20, 40, 60, 1_001]);
        tables.flush().unwrap();
        // As after a crash.
        end_at(&*tables, 2, &[30, 50, 999, 1_000, 20]);
        end_at(&*tables, 3, &[40, 60, 1_001, 2_000, 2_050]);
        let all = [2_050, 2_000, 1_001, 1_000, 999, 60, 50, 40, 30, 20, 10];
        for limit in [1, 2, 3, 99] {
            assert_eq!(ids(&*tables, &EndedQuery::all(), limit), all, "{limit}");
        }
        let within = EndedQuery { from_ms: 30, to_ms: 1_000, ..EndedQuery::all() };
        assert_eq!(ids(&*tables, &within, 2), [1_000, 999, 60, 50, 40, 30]);
        let failed = EndedQuery { states: vec![RunState::Failed], ..EndedQuery::all() };
        assert_eq!(ids(&*tables, &failed, 1), [2_050, 50]);
        let other = EndedQuery { tenant: Some("other".to_owned()), ..EndedQuery::all() };
        assert_eq!(ids(&*tables, &other, 1), [0; 0]);
        let again = reopened(&scheduled(4, 1_000, RunState::Success, 1_000));
        tables.apply(&[(0, Row::Reopened(again.into()))], at(1, 4)).unwrap();
        assert_eq!(ids(&*tables, &within, 9), [999, 60, 50, 40, 30], "it is open");
    }
}
