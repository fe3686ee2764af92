//! Combines what membership and placement say for the protocol: which sessions to watch, and who should own which
//! shard. All of it may be wrong; the rows decide.

use campanile_core::{
    ownership::Hints,
    ownership::rows::ShardRow,
    placement::{Member, NodeId, Owners, Standing, place, plan, wanted},
};
use campanile_schema::{
    format::Formats,
    ids::{SessionId, ShardId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Hand-overs that begin with each read of the rows, in the whole cluster: 16 a second, as the rows are read more often then. Their LWTs and the successors' claims are of one partition and wait
/// for each other, and shards that have stopped wait with them: more at a time, or the next as soon as one is gone, was measured to keep each
/// from its work for longer.
const MOVES_AT_ONCE: usize = 4;
/// Members that a node watches all the time: those that follow it in the order of node ids.
const WATCHED_SUCCESSORS: usize = 2;

/// A living node of the cluster, as membership tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    pub node: NodeId,
    /// Its current one.
    pub session: SessionId,
    pub standing: Standing,
    /// It did not answer of late.
    pub suspected: bool,
    /// Why the others do not take it: of the asking node itself only.
    pub refused: Option<Arc<str>>,
    /// The newest formats that its build reads.
    pub reads: Formats,
}

/// What placement is worked out from.
pub struct PlacementInput {
    pub owners: Owners,
    /// Where hand-overs that have begun go.
    pub underway: Owners,
    pub placed: Vec<Member>,
    of_session: BTreeMap<SessionId, NodeId>,
    /// Of nodes that can own shards.
    by_node: BTreeMap<NodeId, SessionId>,
}

impl PlacementInput {
    /// `rows` as they were read; `over`: sessions that have ended; `leaving`: own hand-overs that have begun.
    pub fn new(
        members: &[ClusterMember],
        rows: &[(ShardId, ShardRow)],
        over: &[SessionId],
        leaving: &[(ShardId, SessionId)],
    ) -> Self {
        let of_session: BTreeMap<SessionId, NodeId> = members.iter().map(|m| (m.session, m.node)).collect();
        // A node that was fenced and cannot find out, cut from the store, still answers as a member: its shards are for others.
        let present = || members.iter().filter(|m| !over.contains(&m.session));
        let living = |session: &SessionId| of_session.get(session).copied().filter(|_| !over.contains(session));
        Self {
            owners: rows.iter().filter_map(|(shard, row)| Some((*shard, living(row.owner.as_ref()?)?))).collect(),
            underway: leaving.iter().filter_map(|(shard, to)| Some((*shard, living(to)?))).collect(),
            placed: present().map(|m| Member { standing: m.standing, ..Member::open(m.node) }).collect(),
            by_node: present().map(|m| (m.node, m.session)).collect(),
            of_session,
        }
    }
}

/// Remembers the last placement: it changes only with the members.
#[derive(Default)]
pub(super) struct Planner {
    of: Vec<Member>,
    placement: Owners,
}

impl Planner {
    /// Shards that a node is to have, by the last placement.
    pub fn given(&self, node: NodeId) -> impl Iterator<Item = ShardId> + '_ {
        self.placement.iter().filter(move |(_, to)| **to == node).map(|(shard, _)| *shard)
    }

    /// See [`PlacementInput::new`].
    pub fn hints(
        &mut self,
        me: SessionId,
        shards: u16,
        members: &[ClusterMember],
        rows: &[(ShardId, ShardRow)],
        over: &[SessionId],
        leaving: &[(ShardId, SessionId)],
    ) -> Hints {
        let PlacementInput { owners, underway, placed, of_session, by_node } =
            PlacementInput::new(members, rows, over, leaving);
        let cordoned = placed.iter().any(|m| m.standing == Standing::Cordoned);
        if placed != self.of || cordoned {
            self.placement = place(shards, &placed, &owners);
            self.of = placed.clone();
        }
        // Successors that are busy get no more than they claim.
        let unclaimed = |(shard, row): &&(ShardId, ShardRow)| {
            owners.contains_key(shard) && row.owner.is_some_and(|owner| !row.is_claimed_by(owner))
        };
        let at_once = MOVES_AT_ONCE.saturating_sub(rows.iter().filter(unclaimed).count());
        let moves = plan(&self.placement, &placed, &owners, &underway, at_once);
        let wanted = wanted(&owners, &moves);
        Hints {
            members: of_session.keys().copied().collect(),
            watch: watched(me, members),
            borrowers: BTreeSet::new(),
            moving: !moves.is_empty(),
            wanted: wanted.into_iter().filter_map(|(shard, node)| Some((shard, *by_node.get(&node)?))).collect(),
        }
    }
}

fn watched(me: SessionId, members: &[ClusterMember]) -> BTreeSet<SessionId> {
    let mut ring: Vec<&ClusterMember> = members.iter().collect();
    ring.sort_by_key(|m| m.node);
    let at = ring.iter().position(|m| m.session == me).unwrap_or(0);
    let successors = (1..=WATCHED_SUCCESSORS).filter_map(|n| ring.get((at + n) % ring.len().max(1)).copied());
    let suspects = members.iter().filter(|m| m.suspected);
    successors.chain(suspects).map(|m| m.session).filter(|session| *session != me).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_core::ownership::rows::Span;

    fn member(node: u64, session: u64) -> ClusterMember {
        let (node, session) = (NodeId(node), SessionId(session));
        ClusterMember { node, session, standing: Standing::Open, suspected: false, refused: None, reads: Formats::OURS }
    }

    /// Claimed, as owners' rows are.
    fn row(owner: u64) -> ShardRow {
        let session = SessionId(owner);
        ShardRow {
            owner: Some(session),
            spans: vec![Span { session, lane: 0, from: 1, to: None }],
            ..ShardRow::default()
        }
    }

    #[test]
    fn shards_of_no_living_session_are_wanted_at_once_and_others_a_few_at_a_time() {
        let members = [member(1, 11), member(2, 12)];
        // Session 10 was node 1's before its restart, session 12 is fenced without knowing it.
        let rows: Vec<(ShardId, ShardRow)> = (0..64).map(|n| (ShardId(n), row(if n < 32 { 10 } else { 11 }))).collect();
        let mut planner = Planner::default();
        let hints = planner.hints(SessionId(11), 64, &members, &rows, &[], &[]);
        assert_eq!((hints.wanted.len(), hints.moving), (64, true));
        let moved = hints.wanted.iter().filter(|(shard, to)| shard.0 >= 32 && **to == SessionId(12)).count();
        assert!((1..=MOVES_AT_ONCE).contains(&moved), "{moved}");
        let orphans = hints.wanted.iter().filter(|(shard, to)| shard.0 < 32 && **to == SessionId(12)).count();
        assert!(orphans > MOVES_AT_ONCE, "{orphans}: what has no owner does not wait");
        let over = planner.hints(SessionId(11), 64, &members[..1], &rows, &[SessionId(12)], &[]);
        assert!(over.wanted.values().all(|to| *to == SessionId(11)));
        let rows: Vec<(ShardId, ShardRow)> = (0..64).map(|n| (ShardId(n), row(11))).collect();
        assert!(!planner.hints(SessionId(11), 64, &members[..1], &rows, &[], &[]).moving, "nothing is to move");
    }

    #[test]
    fn what_successors_have_not_claimed_yet_counts_as_under_way() {
        let members = [member(1, 11), member(2, 12)];
        let released = |count: u16, to| {
            let row = |n| if n < count { ShardRow { spans: Vec::new(), ..row(to) } } else { row(11) };
            (0..64).map(|n| (ShardId(n), row(n))).collect::<Vec<_>>()
        };
        let moved = |rows: &[(ShardId, ShardRow)]| {
            let hints = Planner::default().hints(SessionId(11), 64, &members, rows, &[], &[]);
            rows.iter().filter(|(shard, row)| hints.wanted.get(shard) != row.owner.as_ref()).count()
        };
        assert_eq!(moved(&released(0, 11)), MOVES_AT_ONCE);
        assert_eq!(moved(&released(3, 11)), MOVES_AT_ONCE - 3);
        assert_eq!(moved(&released(9, 11)), 0);
        assert_eq!(moved(&released(9, 10)), 9 + MOVES_AT_ONCE, "their owner is gone: nobody will claim them");
    }

    #[test]
    fn a_fenced_session_gets_nothing_though_its_node_is_a_member() {
        let members = [member(1, 11), member(2, 12), member(3, 13)];
        let rows: Vec<(ShardId, ShardRow)> = (0..64).map(|n| (ShardId(n), row(11 + u64::from(n) % 3))).collect();
        let hints = Planner::default().hints(SessionId(11), 64, &members, &rows, &[SessionId(12)], &[]);
        assert_eq!(hints.wanted.len(), 64);
        assert!(hints.wanted.values().all(|to| *to != SessionId(12)), "nobody would take its shards");
    }

    #[test]
    fn a_node_watches_its_successors_and_whoever_is_suspected() {
        let mut members: Vec<_> = (1..=5).map(|n| member(n, 10 + n)).collect();
        members[1].suspected = true;
        let sessions = |me| watched(SessionId(me), &members).into_iter().map(|s| s.0).collect::<Vec<_>>();
        assert_eq!(sessions(14), [11, 12, 15]);
        assert_eq!(sessions(11), [12, 13]);
        assert!(watched(SessionId(11), &members[..1]).is_empty());
    }
}
