//! The port `Leases`: each statement of the ownership protocol once.
//!
//! Conditions are `IF version = ?` or `IF NOT EXISTS`. What an LWT that was not applied found is read at SERIAL: servers differ in what
//! they send beside "not applied". Whatever failed, or was not answered in time, is `Unknown`.

use super::{Core, CqlStore, connection::RequestKind, format, lanes, rows};
use campanile_core::ownership::{
    rows::{SessionRow, ShardRow},
    store::{Statement, StoreAnswer},
};
use campanile_ports::{Leases, PortFuture, StoreError};
use campanile_schema::{
    format::Formats,
    ids::{SessionId, ShardId},
};
use futures_util::future::try_join_all;
use std::{future::Future, pin::Pin};

/// Shards whose rows share a partition.
pub const SHARDS_PER_BUCKET: u16 = 64;
/// The row of the counter.
const NUMBERS: &str = "sessions";
/// Nodes that take numbers at once make each other try again; more tries than nodes are never needed.
const NUMBER_TRIES: usize = 100;
/// So many numbers are lost by LWTs without an answer before a node gives up: each takes its time.
const NUMBERS_LOST: usize = 5;

pub fn bucket(shard: ShardId) -> i32 {
    i32::from(shard.0 / SHARDS_PER_BUCKET)
}

impl Leases for CqlStore {
    fn execute(&self, own: SessionId, statement: Statement) -> Pin<Box<dyn Future<Output = StoreAnswer> + Send + '_>> {
        let done = self.spawn(|core| async move {
            let answer = core.answer(own, statement).await;
            match &answer {
                Err(error) => core.unanswered.failed(error),
                Ok(StoreAnswer::Unknown) => core.unanswered.failed(&"nobody knows whether it was applied"),
                Ok(_) => core.unanswered.recovered(),
            }
            Ok(answer.unwrap_or(StoreAnswer::Unknown))
        });
        Box::pin(async move { done.await.unwrap_or(StoreAnswer::Unknown) })
    }

    fn next_session(&self) -> PortFuture<'_, SessionId> {
        self.spawn(|core| async move { core.next_session().await })
    }

    fn formats(&self) -> PortFuture<'_, Formats> {
        self.spawn(|core| async move { format::stand(&core.link).await })
    }

    fn raise_formats(&self, to: Formats) -> PortFuture<'_, Formats> {
        self.spawn(move |core| async move { format::raise(&core.link, to).await })
    }

    fn read_lane(
        &self,
        session: SessionId,
        lane: u16,
        after: u64,
        upto: u64,
        max_bytes: usize,
    ) -> PortFuture<'_, Vec<(u64, Vec<u8>)>> {
        self.spawn(move |core| async move { lanes::read(&core.link, session, lane, after..upto, max_bytes).await })
    }
}

impl Core {
    async fn answer(&self, own: SessionId, statement: Statement) -> Result<StoreAnswer, StoreError> {
        let link = &self.link;
        match statement {
            Statement::PutSession { session, expected, row } => {
                let applied = self.put_session(session, expected, &row).await;
                self.session_after(applied, session).await
            }
            Statement::DropSession { session, expected } => {
                let condition = (session.0.cast_signed(), expected.cast_signed());
                let applied = link.lwt(&link.statements.delete_session, condition).await;
                self.session_after(applied, session).await
            }
            Statement::PutShard { shard, expected, row } => match self.put_shard(shard, expected, &row).await {
                Some(true) => Ok(StoreAnswer::Done),
                Some(false) => Ok(StoreAnswer::Shard(self.read_shard(shard).await?)),
                None => Ok(StoreAnswer::Unknown),
            },
            Statement::ReadSession { session } => Ok(StoreAnswer::Session(self.read_session(session).await?)),
            Statement::ReadShard { shard } => Ok(StoreAnswer::Shard(self.read_shard(shard).await?)),
            Statement::ReadShards => Ok(StoreAnswer::Shards(self.read_shards().await?)),
            Statement::Append { lane, seq, batch } => {
                lanes::append(link, own, lane, seq, &batch).await?;
                Ok(StoreAnswer::Done)
            }
            Statement::Rewrite { session, lane, rows } => {
                try_join_all(rows.iter().map(|(seq, batch)| lanes::append(link, session, lane, *seq, batch))).await?;
                Ok(StoreAnswer::Done)
            }
            Statement::ReadLane { session, lane, after } => {
                let rows = lanes::read(link, session, lane, after..u64::MAX, usize::MAX).await?;
                Ok(StoreAnswer::Lane(rows.into_iter().map(|(seq, batch)| (seq, batch.into())).collect()))
            }
            Statement::DeleteRows { session, lane, upto } => {
                self.deleted.delete(link, session, lane, upto).await?;
                Ok(StoreAnswer::Done)
            }
        }
    }

    async fn put_session(&self, session: SessionId, expected: Option<u64>, row: &SessionRow) -> Option<bool> {
        let statements = &self.link.statements;
        let key = session.0.cast_signed();
        let version = row.version.cast_signed();
        let (by, count) = (row.nonce.session.0.cast_signed(), row.nonce.count.cast_signed());
        let state = rows::state_name(row.state);
        let (lease, window) = (row.lease_ms.cast_signed(), row.window.cast_signed());
        let durable = rows::signed(&row.durable);
        let sealed = row.sealed.as_deref().map(rows::signed);
        match expected {
            None => {
                let values = (key, version, by, count, &self.node, state, lease, window, durable, sealed);
                self.link.lwt(&statements.insert_session, values).await
            }
            Some(expected) => {
                let expected = expected.cast_signed();
                let values = (version, by, count, state, lease, window, durable, sealed, key, expected);
                self.link.lwt(&statements.update_session, values).await
            }
        }
    }

    async fn session_after(&self, applied: Option<bool>, session: SessionId) -> Result<StoreAnswer, StoreError> {
        match applied {
            Some(true) => Ok(StoreAnswer::Done),
            Some(false) => Ok(StoreAnswer::Session(self.read_session(session).await?)),
            None => Ok(StoreAnswer::Unknown),
        }
    }

    async fn read_session(&self, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
        const DOING: &str = "a session's row is read";
        let statement = &self.link.statements.read_session;
        let found = self.link.rows(RequestKind::Lease, statement, (session.0.cast_signed(),), DOING).await?;
        let columns = found.maybe_first_row::<rows::SessionColumns>();
        columns.map_err(|e| super::error::damaged(DOING, e))?.map(rows::session).transpose()
    }

    /// LWTs of one partition get in each other's way, so this node has one under way in each.
    async fn put_shard(&self, shard: ShardId, expected: u64, row: &ShardRow) -> Option<bool> {
        let statements = &self.link.statements;
        let bucket = bucket(shard);
        let turns = self.shard_turns.get(usize::try_from(bucket).unwrap_or(usize::MAX))?;
        let _turn = turns.lock().await;
        let number = i32::from(shard.0);
        let version = row.version.cast_signed();
        let (by, count) = (row.nonce.session.0.cast_signed(), row.nonce.count.cast_signed());
        let (owner, epoch) = (row.owner.map(|owner| owner.0.cast_signed()), row.epoch.0.cast_signed());
        let spans = rows::span_columns(&row.spans);
        let snapshot = row.snapshot;
        let in_epoch = snapshot.map(|s| s.epoch.0.cast_signed());
        let taken = snapshot.map(|s| s.number.cast_signed());
        let covered = snapshot.map(|s| s.seq.cast_signed());
        if expected == 0 {
            // Nobody has owned it yet: the row as everybody reads it before it is there has version 0.
            let values = (bucket, number, version, by, count, owner, epoch, spans, in_epoch, taken, covered);
            return self.link.lwt(&statements.insert_shard, values).await;
        }
        let expected = expected.cast_signed();
        let values = (version, by, count, owner, epoch, spans, in_epoch, taken, covered, bucket, number, expected);
        self.link.lwt(&statements.update_shard, values).await
    }

    async fn read_shard(&self, shard: ShardId) -> Result<ShardRow, StoreError> {
        const DOING: &str = "a shard's row is read";
        let statement = &self.link.statements.read_shard;
        let found = self.link.rows(RequestKind::Lease, statement, (bucket(shard), i32::from(shard.0)), DOING).await?;
        let columns = found.maybe_first_row::<rows::ShardColumns>().map_err(|e| super::error::damaged(DOING, e))?;
        Ok(columns.map(rows::shard).transpose()?.map_or_else(ShardRow::default, |(_, row)| row))
    }

    /// Every shard, those that nobody has owned yet too.
    async fn read_shards(&self) -> Result<Vec<(ShardId, ShardRow)>, StoreError> {
        const DOING: &str = "the shards' rows are read";
        let link = &self.link;
        let buckets = (0..self.shards).step_by(usize::from(SHARDS_PER_BUCKET)).map(|first| bucket(ShardId(first)));
        let statement = &link.statements.read_shards;
        let found =
            try_join_all(buckets.map(|bucket| link.rows(RequestKind::Lease, statement, (bucket,), DOING))).await?;
        let mut all: Vec<_> = (0..self.shards).map(|shard| (ShardId(shard), ShardRow::default())).collect();
        for columns in &found {
            for columns in columns.rows::<rows::ShardColumns>().map_err(|e| super::error::damaged(DOING, e))? {
                let (shard, row) = rows::shard(columns.map_err(|e| super::error::damaged(DOING, e))?)?;
                if let Some(place) = all.get_mut(usize::from(shard.0)) {
                    place.1 = row;
                }
            }
        }
        Ok(all)
    }

    /// A number whose LWT was not answered is lost: only an answer gives it to somebody.
    async fn next_session(&self) -> Result<SessionId, StoreError> {
        const DOING: &str = "a session is numbered";
        let (link, statements) = (&self.link, &self.link.statements);
        let mut lost = 0;
        for _ in 0..NUMBER_TRIES {
            let found = link.rows(RequestKind::Lease, &statements.read_number, (NUMBERS,), DOING).await?;
            let last = found.maybe_first_row::<(i64,)>().map_err(|e| super::error::damaged(DOING, e))?;
            let next = last.map_or(1, |(last,)| last + 1);
            let applied = match last {
                None => link.lwt(&statements.first_number, (NUMBERS, next)).await,
                Some((last,)) => link.lwt(&statements.next_number, (next, NUMBERS, last)).await,
            };
            match applied {
                Some(true) => return Ok(SessionId(next.cast_unsigned())),
                Some(false) => {}
                None if lost < NUMBERS_LOST => lost += 1,
                None => return Err(StoreError::Unavailable(format!("{DOING}: number {next} and others are lost"))),
            }
        }
        Err(StoreError::Unavailable(format!("{DOING}: others took {NUMBER_TRIES} numbers meanwhile")))
    }
}
