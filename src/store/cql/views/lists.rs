//! A job's runs and its ledger. Both are in two tables: what schedules fired, and everything else. A list is the two of them merged.
//!
//! Partitions are looked into one after the other, newest or oldest first, and with each step twice as many at once: a job that runs often has what
//! is asked in the first, one that runs rarely in few of many.

use super::{
    super::{Core, connection::RequestKind, error},
    places::{fires_bucket, fires_shards, history_bucket},
    read::{DOING, Filling, buckets, decode, records},
};
use crate::tables::fired;
use campanile_ports::{LedgerRow, RunPage, StoreError};
use campanile_schema::ids::{JobId, RunId};
use futures_util::future::try_join_all;
use std::collections::VecDeque;

/// Partitions of a list that are asked at once at most.
const BUCKETS_AT_ONCE: usize = 16;

/// Which of the two tables.
#[derive(Clone, Copy)]
enum Table {
    /// By the instant at which the interval ends.
    Fires,
    /// By run.
    Others,
}

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    bucket: i64,
    /// By which it stands in its table.
    at: i64,
    run: RunId,
}

/// Behind which entry a page begins, by table; `i64::MAX`: before all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Bucket and run.
    other: (i64, i64),
    fired_ms: i64,
}

impl Mark {
    const NEWEST: Self = Self { other: (i64::MAX, i64::MAX), fired_ms: i64::MAX };

    fn token(self) -> Vec<u8> {
        [self.other.0, self.other.1, self.fired_ms].map(i64::to_be_bytes).concat()
    }

    fn of(token: Option<&[u8]>) -> Option<Self> {
        let (first, rest) = token?.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        let third = rest.first_chunk()?;
        let other = (i64::from_be_bytes(*first), i64::from_be_bytes(*second));
        Some(Self { other, fired_ms: i64::from_be_bytes(*third) })
    }
}

/// A job's entries in one of the tables, newest first, read as they are wanted.
struct Walk<'a> {
    core: &'a Core,
    job: JobId,
    table: Table,
    /// Buckets that are not looked into yet, or not to their end: newest first, each with where to begin.
    left: VecDeque<(i64, i64)>,
    ready: VecDeque<Entry>,
    at_once: usize,
    ask: i32,
}

impl<'a> Walk<'a> {
    async fn new(core: &'a Core, job: JobId, table: Table, mark: Mark, ask: i32) -> Result<Self, StoreError> {
        let known = match table {
            Table::Fires => buckets(core, &core.link.statements.read_fire_buckets, fires_of(core, job)).await?,
            Table::Others => buckets(core, &core.link.statements.read_history_buckets, core.shard_of(job)).await?,
        };
        let (first, before) = match table {
            Table::Fires => (fires_bucket(mark.fired_ms), mark.fired_ms),
            Table::Others => mark.other,
        };
        let begin = |bucket: i64| (bucket, if bucket == first { before } else { i64::MAX });
        let left = known.into_iter().rev().filter(|bucket| *bucket <= first).map(begin).collect();
        Ok(Self { core, job, table, left, ready: VecDeque::new(), at_once: 1, ask })
    }

    /// The next entry, without taking it.
    async fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        while self.ready.is_empty() && !self.left.is_empty() {
            let some: Vec<(i64, i64)> = self.left.drain(..self.at_once.min(self.left.len())).collect();
            self.at_once = (self.at_once * 2).min(BUCKETS_AT_ONCE);
            let found = try_join_all(some.iter().map(|(bucket, before)| self.look(*bucket, *before))).await?;
            for (index, entries) in found.into_iter().enumerate() {
                let full = entries.len() as u64 == u64::from(self.ask.cast_unsigned());
                self.ready.extend(&entries);
                if full && let Some(last) = entries.last() {
                    // This one has more, and it comes before the others.
                    let rest = std::iter::once((last.bucket, last.at)).chain(some[index + 1..].iter().copied());
                    self.left = rest.chain(self.left.drain(..)).collect();
                    break;
                }
            }
        }
        Ok(self.ready.front().copied())
    }

    async fn look(&self, bucket: i64, before: i64) -> Result<Vec<Entry>, StoreError> {
        let (link, job) = (&self.core.link, self.job.0.cast_signed());
        match self.table {
            Table::Fires => {
                let values = (fires_of(self.core, self.job), bucket, job, before, self.ask);
                let rows = link.rows(RequestKind::View, &link.statements.read_newest_fires, values, DOING).await?;
                let rows = rows.rows::<(i64, &[u8])>().map_err(|e| error::damaged(DOING, e))?;
                let entry = |row: (i64, &[u8])| {
                    let of: LedgerRow = decode("ledger row", row.1)?;
                    let run = fired(&of).ok_or_else(|| error::damaged(DOING, "an interval that fired no run"))?;
                    Ok(Entry { bucket, at: row.0, run })
                };
                rows.map(|row| entry(row.map_err(|e| error::damaged(DOING, e))?)).collect()
            }
            Table::Others => {
                let values = (self.core.shard_of(self.job), bucket, job, before, self.ask);
                let rows = link.rows(RequestKind::View, &link.statements.read_job_runs, values, DOING).await?;
                let rows = rows.rows::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
                let entry = |(run,): (i64,)| Entry { bucket, at: run, run: RunId(run.cast_unsigned()) };
                rows.map(|row| row.map(entry).map_err(|e| error::damaged(DOING, e))).collect()
            }
        }
    }
}

fn fires_of(core: &Core, job: JobId) -> i32 {
    fires_shards(job.shard(core.shards))
}

/// Both tables as one list: ids rise with time in both. A run that is in both comes once.
struct Merged<'a> {
    fires: Walk<'a>,
    others: Walk<'a>,
    mark: Mark,
}

impl Merged<'_> {
    /// Some of the entries that come next, each with the mark behind it.
    async fn some(&mut self, count: usize) -> Result<Vec<(RunId, Mark)>, StoreError> {
        let mut all = Vec::new();
        while all.len() < count {
            let (fire, other) = (self.fires.next().await?, self.others.next().await?);
            let Some(run) = fire.map(|entry| entry.run).max(other.map(|entry| entry.run)) else { break };
            if let Some(entry) = fire.filter(|entry| entry.run == run) {
                self.fires.ready.pop_front();
                self.mark.fired_ms = entry.at;
            }
            if let Some(entry) = other.filter(|entry| entry.run == run) {
                self.others.ready.pop_front();
                self.mark.other = (entry.bucket, entry.at);
            }
            all.push((run, self.mark));
        }
        Ok(all)
    }
}

/// Final runs of a job, newest first.
pub async fn job_runs(core: &Core, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let mark = Mark::of(after).unwrap_or(Mark::NEWEST);
    let mut filling = Filling::new(limit);
    let ask = filling.ask();
    let (fires, others) = tokio::try_join!(
        Walk::new(core, job, Table::Fires, mark, ask),
        Walk::new(core, job, Table::Others, mark, ask)
    )?;
    let mut merged = Merged { fires, others, mark };
    loop {
        let wanted = (ask.cast_unsigned() as usize) - filling.page.items.len();
        let some = merged.some(wanted).await?;
        if some.is_empty() {
            return Ok(filling.page);
        }
        let runs: Vec<RunId> = some.iter().map(|(run, _)| *run).collect();
        let mut found = records(core, &runs).await?;
        for (run, mark) in some {
            if let Some(record) = found.remove(&run).filter(|record| record.state.is_final())
                && !filling.add(record, mark.token())
            {
                return Ok(filling.page);
            }
        }
    }
}

/// Intervals of a job that touch `(from, to]`, oldest first: they join, so they are those that end after `from` and begin before `to`.
pub async fn ledger(
    core: &Core,
    job: JobId,
    from_ms: i64,
    to_ms: i64,
    limit: usize,
) -> Result<Vec<LedgerRow>, StoreError> {
    let part = |table| intervals(core, job, table, (from_ms, to_ms), limit);
    let (fires, others) = tokio::try_join!(part(Table::Fires), part(Table::Others))?;
    let mut all = [fires, others].concat();
    all.sort_by_key(|row| (row.to_ms, row.from_ms));
    // One that a release before wrote may be written again.
    all.dedup_by_key(|row| (row.to_ms, row.from_ms));
    all.truncate(limit);
    Ok(all)
}

/// Those of one table.
async fn intervals(
    core: &Core,
    job: JobId,
    table: Table,
    (from_ms, to_ms): (i64, i64),
    limit: usize,
) -> Result<Vec<LedgerRow>, StoreError> {
    let statements = &core.link.statements;
    let first = from_ms.saturating_add(1);
    let (of, statement, known, first) = match table {
        Table::Fires => {
            (fires_of(core, job), &statements.read_fires, &statements.read_fire_buckets, fires_bucket(first))
        }
        Table::Others => {
            (core.shard_of(job), &statements.read_ledger, &statements.read_history_buckets, history_bucket(first))
        }
    };
    let mut buckets = buckets(core, known, of).await?;
    buckets.retain(|bucket| *bucket >= first);
    let ask = i32::try_from(limit).unwrap_or(i32::MAX).max(1);
    let (mut found, mut left, mut at_once) = (Vec::new(), buckets.as_slice(), 1);
    while !left.is_empty() {
        let (some, rest) = left.split_at(at_once.min(left.len()));
        (left, at_once) = (rest, (at_once * 2).min(BUCKETS_AT_ONCE));
        let asked = some.iter().map(|bucket| {
            core.link.rows(RequestKind::View, statement, (of, *bucket, job.0.cast_signed(), from_ms, ask), DOING)
        });
        for rows in try_join_all(asked).await? {
            for row in rows.rows::<(&[u8],)>().map_err(|e| error::damaged(DOING, e))? {
                let (bytes,) = row.map_err(|e| error::damaged(DOING, e))?;
                let row: LedgerRow = decode("ledger row", bytes)?;
                if found.len() >= limit || row.from_ms >= to_ms {
                    return Ok(found);
                }
                found.push(row);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_from_its_token_and_another_token_begins_anew() {
        let mark = Mark { other: (-7, i64::MAX), fired_ms: 1_790_000_000_000 };
        assert_eq!(Mark::of(Some(&mark.token())), Some(mark));
        assert_eq!((Mark::of(None), Mark::of(Some(&[1; 16]))), (None, None));
    }
}
