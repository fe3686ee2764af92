//! Rows of lanes. A row is only ever written with the same bytes, so all writes have one timestamp and all deletes a later one: no clock
//! takes part.

use super::{
    connection::{Connection, RequestKind},
    error,
};
use campanile_ports::StoreError;
use campanile_schema::ids::SessionId;
use parking_lot::Mutex;
use scylla::response::PagingState;
use std::{collections::BTreeMap, ops::Range};

/// Rows of a lane in one partition. Part of what is stored.
const ROWS_PER_BUCKET: u64 = 4_096;
/// Buckets deleted before the mark moves, so that a deletion that breaks off does not begin anew.
const DELETED_AT_ONCE: u64 = 64;
/// Empty buckets after which a lane is taken to end. A deletion that broke off leaves fewer of them, and so does a window.
const EMPTY_BUCKETS: u64 = DELETED_AT_ONCE + 2;

fn key(session: SessionId, lane: u16, bucket: u64) -> (i64, i32, i64) {
    (session.0.cast_signed(), i32::from(lane), bucket.cast_signed())
}

pub async fn append(
    link: &Connection,
    session: SessionId,
    lane: u16,
    seq: u64,
    batch: &[u8],
) -> Result<(), StoreError> {
    let (session, lane, bucket) = key(session, lane, seq / ROWS_PER_BUCKET);
    let values = (session, lane, bucket, seq.cast_signed(), batch);
    let answer = link.execute(RequestKind::Journal, &link.statements.append, values).await;
    answer.map(|_| ()).map_err(|e| error::written("a row of a lane is written", &e))
}

/// Rows behind `places.start` up to and including `places.end`, up to the first that is not there.
pub async fn read(
    link: &Connection,
    session: SessionId,
    lane: u16,
    places: Range<u64>,
    max_bytes: usize,
) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    const DOING: &str = "a lane is read";
    let (mut found, mut bytes, mut last) = (Vec::new(), 0, places.start);
    while last < places.end {
        let bucket = (last + 1) / ROWS_PER_BUCKET;
        let (session, lane, partition) = key(session, lane, bucket);
        let mut from = PagingState::start();
        let before = last;
        loop {
            let values = (session, lane, partition, before.cast_signed());
            let (page, next) = link.page(RequestKind::Journal, &link.statements.read_lane, values, from, DOING).await?;
            for row in page.rows::<(i64, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))? {
                let (seq, batch) = row.map_err(|e| error::damaged(DOING, e))?;
                if seq.cast_unsigned() != last + 1 {
                    return Ok(found);
                }
                bytes += batch.len();
                last += 1;
                found.push((last, batch));
                if last == places.end || bytes >= max_bytes {
                    return Ok(found);
                }
            }
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        if (last + 1) / ROWS_PER_BUCKET == bucket {
            return Ok(found);
        }
    }
    Ok(found)
}

/// Below which bucket lanes were deleted, as far as this process knows; the store has it too.
#[derive(Default)]
pub struct Deleted(Mutex<BTreeMap<(SessionId, u16), u64>>);

impl Deleted {
    /// Deletes whole buckets only: a tombstone for each row would cost more than the rows. What is left in the last bucket goes when the
    /// lane has moved on, or with the session (`upto` is `u64::MAX`).
    pub async fn delete(&self, link: &Connection, session: SessionId, lane: u16, upto: u64) -> Result<(), StoreError> {
        let whole = upto.saturating_add(1) / ROWS_PER_BUCKET;
        let known = self.known(session, lane);
        if known.is_some_and(|below| whole <= below) {
            return Ok(());
        }
        if known.is_none() && whole == 0 {
            return Ok(());
        }
        let below = match known {
            Some(below) => below,
            None => stored(link, session, lane).await?,
        };
        if upto == u64::MAX {
            self.delete_all(link, session, lane, below).await?;
            self.0.lock().remove(&(session, lane));
            return Ok(());
        }
        self.delete_below(link, session, lane, below, whole).await
    }

    fn known(&self, session: SessionId, lane: u16) -> Option<u64> {
        self.0.lock().get(&(session, lane)).copied()
    }

    /// Deletes `from..below`, and moves the mark.
    async fn delete_below(
        &self,
        link: &Connection,
        session: SessionId,
        lane: u16,
        from: u64,
        below: u64,
    ) -> Result<(), StoreError> {
        let mut next = from;
        while next < below {
            let end = below.min(next + DELETED_AT_ONCE);
            for bucket in next..end {
                delete_bucket(link, session, lane, bucket).await?;
            }
            let values = (session.0.cast_signed(), i32::from(lane), end.cast_signed());
            let marked = link.execute(RequestKind::Journal, &link.statements.put_deleted, values).await;
            marked.map_err(|e| error::written("a deletion is noted", &e))?;
            next = end;
        }
        self.0.lock().insert((session, lane), from.max(below));
        Ok(())
    }

    /// Deletes everything from a bucket on: where the lane ends nobody says.
    async fn delete_all(&self, link: &Connection, session: SessionId, lane: u16, from: u64) -> Result<(), StoreError> {
        const DOING: &str = "the end of a lane is looked for";
        let (mut bucket, mut last_full) = (from, from);
        while bucket < last_full + EMPTY_BUCKETS {
            let rows = link
                .rows(RequestKind::Journal, &link.statements.any_of_bucket, key(session, lane, bucket), DOING)
                .await?;
            if rows.rows_num() > 0 {
                delete_bucket(link, session, lane, bucket).await?;
                last_full = bucket + 1;
            }
            bucket += 1;
        }
        Ok(())
    }
}

async fn delete_bucket(link: &Connection, session: SessionId, lane: u16, bucket: u64) -> Result<(), StoreError> {
    let deleted = link.execute(RequestKind::Journal, &link.statements.delete_bucket, key(session, lane, bucket)).await;
    deleted.map(|_| ()).map_err(|e| error::written("rows of a lane are deleted", &e))
}

async fn stored(link: &Connection, session: SessionId, lane: u16) -> Result<u64, StoreError> {
    const DOING: &str = "a noted deletion is read";
    let values = (session.0.cast_signed(), i32::from(lane));
    let rows = link.rows(RequestKind::Journal, &link.statements.read_deleted, values, DOING).await?;
    let below = rows.maybe_first_row::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
    Ok(below.map_or(0, |(below,)| below.cast_unsigned()))
}
