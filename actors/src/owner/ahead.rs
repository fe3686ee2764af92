//! Reads shards of a node that is gone before they can be claimed. Its lease runs for a second or two after all nodes
//! know that it is gone, and reading takes as long. Rows of lanes and snapshots never change, so what was read stays
//! correct; the claim says how much of it counts.

use super::{
    hints::ClusterMember,
    load::{LoadRequest, Loader, ReadAhead},
};
use campanile_core::ownership::rows::ShardRow;
use campanile_schema::ids::{SessionId, ShardId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};
use tokio::sync::Mutex;

/// See the module's text.
pub(super) struct Ahead {
    loader: Loader,
    gone: DepartedShards,
    /// Locked by whoever reads.
    read: Arc<Mutex<ReadAhead>>,
}

impl Ahead {
    pub fn new(loader: Loader) -> Self {
        Self { loader, gone: DepartedShards::default(), read: Arc::default() }
    }

    /// What was read until now, or will have been as soon as it can be locked.
    pub fn read(&self) -> Arc<Mutex<ReadAhead>> {
        self.read.clone()
    }

    /// Reads what is to be taken over soon, by the rows as they were read last and who is wanted to own what; forgets what is not.
    pub fn look(
        &mut self,
        me: SessionId,
        members: &[ClusterMember],
        rows: &[(ShardId, ShardRow)],
        wanted: &BTreeMap<ShardId, SessionId>,
    ) {
        // Whoever reads now will be asked again when rows are read next.
        let Ok(mut read) = self.read.clone().try_lock_owned() else { return };
        let begun = self.gone.look(me, members, rows, wanted);
        // Claimed meanwhile: the load is about to take it.
        let claimed: BTreeSet<ShardId> =
            rows.iter().filter(|(_, row)| row.owner == Some(me)).map(|(shard, _)| *shard).collect();
        read.retain(|shard, _| self.gone.begun.contains_key(shard) || claimed.contains(shard));
        if begun.is_empty() {
            return;
        }
        let (loader, shards, since) = (self.loader.clone(), begun.len(), Instant::now());
        tokio::spawn(async move {
            read.extend(loader.read_ahead(begun).await);
            let took_ms = since.elapsed().as_millis() as u64;
            tracing::info!(shards, took_ms, "shards of a node that is gone were read ahead of their claims");
        });
    }
}

/// Shards of sessions that were members and are no more.
#[derive(Default)]
struct DepartedShards {
    /// Sessions that were members once: a node that has just joined does not know its fellows yet.
    known: BTreeSet<SessionId>,
    /// By shard whose reading has begun: version of its row.
    begun: BTreeMap<ShardId, u64>,
}

impl DepartedShards {
    /// Those whose reading begins now.
    fn look(
        &mut self,
        me: SessionId,
        members: &[ClusterMember],
        rows: &[(ShardId, ShardRow)],
        wanted: &BTreeMap<ShardId, SessionId>,
    ) -> Vec<LoadRequest> {
        let living: BTreeSet<SessionId> = members.iter().map(|member| member.session).collect();
        self.known.extend(&living);
        // Their sessions have no shards left, and are not heard of again.
        let owners: BTreeSet<SessionId> = rows.iter().filter_map(|(_, row)| row.owner).collect();
        self.known.retain(|session| living.contains(session) || owners.contains(session));
        let left = |row: &ShardRow| {
            row.owner.is_some_and(|owner| {
                self.known.contains(&owner) && !living.contains(&owner) && row.is_claimed_by(owner)
            })
        };
        let mine: BTreeMap<ShardId, &ShardRow> = rows
            .iter()
            .filter(|(shard, row)| wanted.get(shard) == Some(&me) && left(row))
            .map(|(shard, row)| (*shard, row))
            .collect();
        self.begun.retain(|shard, version| mine.get(shard).is_some_and(|row| row.version == *version));
        let new = mine.into_iter().filter(|(shard, row)| self.begun.insert(*shard, row.version).is_none());
        new.map(|(shard, row)| LoadRequest {
            shard,
            epoch: row.epoch,
            spans: row.spans.clone(),
            snapshot: row.snapshot,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_core::{
        ownership::rows::Span,
        placement::{NodeId, Standing},
    };
    use campanile_schema::format::Formats;

    const ME: SessionId = SessionId(1);
    const OTHER: SessionId = SessionId(2);

    fn members(sessions: &[SessionId]) -> Vec<ClusterMember> {
        let member = |session: &SessionId| ClusterMember {
            node: NodeId(session.0),
            session: *session,
            standing: Standing::Open,
            suspected: false,
            refused: None,
            reads: Formats::OURS,
        };
        sessions.iter().map(member).collect()
    }

    fn row(owner: SessionId, version: u64) -> ShardRow {
        let spans = vec![Span { session: owner, lane: 0, from: 1, to: None }];
        ShardRow { owner: Some(owner), version, spans, ..ShardRow::default() }
    }

    #[test]
    fn shards_of_a_member_that_is_gone_are_read_once() {
        let (both, alone) = (members(&[ME, OTHER]), members(&[ME]));
        let shard = ShardId;
        let mut rows = vec![(shard(0), row(ME, 1)), (shard(1), row(OTHER, 1)), (shard(2), row(OTHER, 1))];
        let all = BTreeMap::from([(shard(0), ME), (shard(1), ME), (shard(2), OTHER)]);
        let begun = |gone: &mut DepartedShards, members: &[ClusterMember], rows: &[(ShardId, ShardRow)]| -> Vec<u16> {
            gone.look(ME, members, rows, &all).iter().map(|wanted| wanted.shard.0).collect()
        };
        let mut gone = DepartedShards::default();
        assert_eq!(begun(&mut gone, &alone, &rows), [0; 0], "it was never seen: perhaps it is not heard of yet");
        assert_eq!(begun(&mut gone, &both, &rows), [0; 0]);
        assert_eq!(begun(&mut gone, &alone, &rows), [1], "only what is wanted here");
        assert_eq!(begun(&mut gone, &alone, &rows), [0; 0], "once");
        rows[1].1.version = 2;
        assert_eq!(begun(&mut gone, &alone, &rows), [1], "its row is another one");
        assert_eq!(begun(&mut gone, &both, &rows), [0; 0]);
        assert!(gone.begun.is_empty(), "it is back");
        rows[1].1.spans.clear();
        assert_eq!(begun(&mut gone, &alone, &rows), [0; 0], "given away, and not claimed yet");
    }
}
