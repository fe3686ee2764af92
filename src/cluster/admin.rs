//! What operators ask about the cluster, at any of its nodes: its members, the owner of each shard, the planned moves,
//! and what happened. Operators also cordon nodes here.

use super::{
    membership::{Member, Members},
    peers::GatewayPeers,
    self_announcer::SelfAnnouncer,
};
use campanile_actors::{
    cluster_events::ClusterEventLog,
    owner::{ClusterMember, PlacementInput},
    scheduler::{Rows, Scheduler},
};
use campanile_core::placement::{self, NodeId, Reason, Standing};
use campanile_schema::{
    cluster::{ClusterEventKind, ClusterEventView, MemberState, MemberView, MoveReason, MoveView, PlanView, ShardView},
    error::{Answer, ApiError, ErrorCode},
    format::Formats,
    ids::SessionId,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::watch;

/// See the module's text.
pub struct ClusterAdmin {
    members: watch::Receiver<Arc<Members>>,
    cluster_events: Arc<ClusterEventLog>,
    announcer: Arc<SelfAnnouncer>,
    peers: GatewayPeers,
}

/// How a member stands, for placement.
pub(super) fn standing(member: &Member) -> Standing {
    if member.clock_wrong {
        Standing::Halted
    } else if member.draining {
        Standing::Draining
    } else if member.cordoned {
        Standing::Cordoned
    } else {
        Standing::Open
    }
}

/// Members that can own shards, as ownership wants to know them.
pub fn owning(members: &Members) -> Vec<ClusterMember> {
    // One without a session has only just begun.
    let begun = members.all.iter().filter(|member| member.session != SessionId::default());
    let member = |member: &Member| {
        // Who is not taken knows nobody, and would take all of it for its own.
        let refused = members.refused.as_deref().filter(|_| member.is_self);
        ClusterMember {
            node: member.node,
            session: member.session,
            standing: if refused.is_some() { Standing::Halted } else { standing(member) },
            suspected: member.suspect,
            refused: refused.map(Arc::from),
            reads: Formats { event: member.event_format.1, wire: member.wire_format.1 },
        }
    };
    begun.map(member).collect()
}

fn state(member: &Member) -> MemberState {
    match standing(member) {
        _ if member.suspect => MemberState::Suspected,
        _ if member.draining => MemberState::Draining,
        Standing::Halted => MemberState::ClockWrong,
        Standing::Draining => MemberState::Draining,
        Standing::Cordoned => MemberState::Cordoned,
        Standing::Open => MemberState::Alive,
    }
}

/// A call about a cluster came to a node that is alone on its own directory.
pub fn alone() -> ApiError {
    ApiError::new(
        ErrorCode::IllegalState,
        "this node is alone on its own directory: there is no cluster. `campanile system info` tells about it",
    )
}

impl ClusterAdmin {
    /// Notes from now on who comes and goes.
    pub fn open(
        members: watch::Receiver<Arc<Members>>,
        cluster_events: Arc<ClusterEventLog>,
        announcer: Arc<SelfAnnouncer>,
        peers: GatewayPeers,
    ) -> Arc<Self> {
        tokio::spawn(keep_cluster_events(members.clone(), cluster_events.clone()));
        Arc::new(Self { members, cluster_events, announcer, peers })
    }

    pub fn members(&self, scheduler: &Scheduler) -> Answer<Vec<MemberView>> {
        let rows = scheduler.rows()?;
        let members = self.members.borrow().clone();
        let owned = |session: SessionId| rows.rows.iter().filter(|(_, row)| row.owner == Some(session)).count();
        let view = |member: &Member| MemberView {
            name: member.name.clone(),
            state: state(member),
            is_self: member.is_self,
            shards: if member.session == SessionId::default() { 0 } else { owned(member.session) as u64 },
            session: member.session.0,
            build: member.build.clone(),
            http: member.addresses.http.to_string(),
            rpc: member.executors_at.clone(),
            gateway: member.addresses.gateway.to_string(),
            gossip: member.gossip.to_string(),
            clock_offset_ms: if member.is_self { Some(0) } else { member.clock_offset_ms },
        };
        let mut views: Vec<MemberView> = members.all.iter().map(view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(views)
    }

    /// All shards, or those of a node.
    pub fn shards(&self, scheduler: &Scheduler, node: Option<&str>) -> Answer<Vec<ShardView>> {
        let Rows { rows, over, served, .. } = scheduler.rows()?;
        let members = self.members.borrow().clone();
        let only = node.map(|name| self.named(name)).transpose()?;
        let owner = |session: SessionId| {
            members.all.iter().find(|member| member.session == session && !over.contains(&session))
        };
        let served: BTreeSet<_> = served.into_iter().collect();
        let views = rows.iter().filter_map(|(shard, row)| {
            let owner = row.owner.and_then(owner);
            if only.as_ref().is_some_and(|only| owner.is_none_or(|owner| owner.node != only.node)) {
                return None;
            }
            Some(ShardView {
                shard: shard.0,
                node: owner.map(|owner| owner.name.clone()),
                session: row.owner.map(|session| session.0),
                epoch: row.epoch.0,
                served_here: served.contains(shard),
                spans: row.spans.len() as u64,
                snapshot_seq: row.snapshot.map(|snapshot| snapshot.seq),
            })
        });
        Ok(views.collect())
    }

    /// What this node would like to happen; every node thinks the same when it sees the same members.
    pub fn plan(&self, scheduler: &Scheduler) -> Answer<PlanView> {
        let Rows { rows, over, leaving, shards, .. } = scheduler.rows()?;
        let members = self.members.borrow().clone();
        let PlacementInput { owners, underway, placed, .. } =
            PlacementInput::new(&owning(&members), &rows, &over, &leaving);
        let names: BTreeMap<NodeId, &str> = members.all.iter().map(|m| (m.node, m.name.as_str())).collect();
        let name = |node: NodeId| names.get(&node).map_or_else(|| format!("{:x}", node.0), |name| (*name).to_owned());
        let placement = placement::place(shards, &placed, &owners);
        let moves = placement::plan(&placement, &placed, &owners, &underway, usize::from(shards));
        let open = placed.iter().filter(|member| member.standing == Standing::Open).count() as u64;
        Ok(PlanView {
            balanced: moves.is_empty(),
            cap: if open == 0 { 0 } else { placement::cap(usize::from(shards), 1, open) as u64 },
            moves: moves
                .into_iter()
                .map(|a_move| MoveView {
                    shard: a_move.shard.0,
                    from: a_move.from.map(name),
                    to: name(a_move.to),
                    reason: match a_move.reason {
                        Reason::NoOwner => MoveReason::NoOwner,
                        Reason::Underway => MoveReason::Underway,
                        Reason::OwnerHalted | Reason::OwnerLeaves => MoveReason::OwnerLeaves,
                        Reason::Balance => MoveReason::Balance,
                    },
                })
                .collect(),
        })
    }

    /// What this node saw since its start, the newest first.
    pub fn events(&self, count: usize) -> Vec<ClusterEventView> {
        self.cluster_events.newest(count)
    }

    /// A cordoned node keeps its shards and gets nothing new, also after a restart, until this is undone.
    pub async fn cordon(&self, name: &str, cordoned: bool) -> Answer<()> {
        let member = self.named(name)?;
        if member.is_self { self.cordon_self(cordoned) } else { self.peers.cordon(member.node, cordoned).await }
    }

    pub(super) fn cordon_self(&self, cordoned: bool) -> Answer<()> {
        self.announcer.set_cordoned(cordoned).map_err(|error| {
            ApiError::new(ErrorCode::NotReady, format!("the node cannot write that down in its directory: {error}"))
        })
    }

    fn named(&self, name: &str) -> Answer<Member> {
        let members = self.members.borrow();
        members.all.iter().find(|member| member.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = members.all.iter().map(|member| member.name.as_str()).collect();
            ApiError::new(
                ErrorCode::NotFound,
                format!("no living node has the name '{name}'; there are: {}", names.join(", ")),
            )
        })
    }
}

/// Notes who comes, goes and changes, until nobody tells any more.
async fn keep_cluster_events(mut members: watch::Receiver<Arc<Members>>, cluster_events: Arc<ClusterEventLog>) {
    let mut before: Arc<Members> = Arc::default();
    loop {
        let now = members.borrow_and_update().clone();
        note_changes(&cluster_events, &before, &now);
        before = now;
        if members.changed().await.is_err() {
            return;
        }
    }
}

fn note_changes(cluster_events: &ClusterEventLog, before: &Members, now: &Members) {
    for member in &now.all {
        let was = before.get(member.node);
        let note = |happened: bool, kind| {
            if happened {
                let detail = (kind == ClusterEventKind::NodeCame).then(|| format!("release {}", member.build));
                cluster_events.note(kind, Some(&member.name), None, detail);
            }
        };
        let (suspect, draining, cordoned) = was.map_or((false, false, false), |w| (w.suspect, w.draining, w.cordoned));
        let clock_wrong = was.is_some_and(|was| was.clock_wrong);
        note(was.is_none_or(|was| was.generation != member.generation), ClusterEventKind::NodeCame);
        note(member.suspect && !suspect, ClusterEventKind::NodeSuspected);
        note(!member.suspect && suspect, ClusterEventKind::NodeWellAgain);
        note(member.draining && !draining, ClusterEventKind::NodeDraining);
        note(member.cordoned && !cordoned, ClusterEventKind::NodeCordoned);
        note(!member.cordoned && cordoned, ClusterEventKind::NodeUncordoned);
        note(member.clock_wrong && !clock_wrong, ClusterEventKind::NodeClockWrong);
        note(!member.clock_wrong && clock_wrong, ClusterEventKind::NodeClockRight);
    }
    for member in before.all.iter().filter(|member| now.get(member.node).is_none()) {
        cluster_events.note(ClusterEventKind::NodeGone, Some(&member.name), None, None);
    }
}
