//! One node as the executor's session sees it: the open requests, the last contact, and the credit and hints.

use super::{key::Key, link::Outlet};
use campanile_schema::{
    limits::{
        CREDIT_AGAIN_MS, EXECUTOR_FINISHES_IN_FLIGHT, EXECUTOR_LOGS_IN_FLIGHT, HEARTBEAT_ANSWER_MS, HEARTBEAT_MS,
        lost_contact_ms,
    },
    rpc::{
        encode,
        executor::{Credit, Heartbeat},
        method,
    },
};
use serde::Serialize;
use std::{collections::HashMap, sync::Arc};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkStage {
    Down,
    Registering,
    Announcing,
    Ready,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) enum WaitingRequest {
    Register,
    /// The last part of an announcement, or one before it.
    Announce {
        last: bool,
    },
    Heartbeat {
        sent_ms: u64,
    },
    Finish(Vec<Key>),
    Log,
}

/// See the module's text.
pub(super) struct Upstream {
    outlet: Arc<Outlet>,
    connection: u64,
    /// That it said it is of, when it took the registration last.
    cluster: Option<u64>,
    stage: LinkStage,
    last_id: u32,
    asked: HashMap<u32, WaitingRequest>,
    /// Assignments that came over this connection.
    received: u64,
    finishes: usize,
    logs: usize,
    /// When this connection came up, for those that never get ready.
    up_ms: u64,
    heartbeat_ms: u64,
    /// When the oldest heartbeat without an answer was sent.
    unanswered_ms: Option<u64>,
    /// Sending time of the latest heartbeat or registration that the node is known to have received.
    contact_ms: Option<u64>,
    credit_ms: u64,
    /// Slots of that credit.
    given: u32,
    /// Whether runs wait there, as it has said.
    hint: Option<bool>,
}

impl Upstream {
    pub(super) fn new(outlet: Arc<Outlet>) -> Self {
        Self {
            outlet,
            connection: 0,
            cluster: None,
            stage: LinkStage::Down,
            last_id: 0,
            asked: HashMap::new(),
            received: 0,
            finishes: 0,
            logs: 0,
            up_ms: 0,
            heartbeat_ms: 0,
            unanswered_ms: None,
            contact_ms: None,
            credit_ms: 0,
            given: 0,
            hint: None,
        }
    }

    pub(super) fn stage(&self) -> LinkStage {
        self.stage
    }
    pub(super) fn cluster(&self) -> Option<u64> {
        self.cluster
    }
    pub(super) fn set_cluster(&mut self, cluster: u64) {
        self.cluster = Some(cluster);
    }
    pub(super) fn set_stage(&mut self, stage: LinkStage) {
        self.stage = stage;
    }
    pub(super) fn is_current(&self, connection: u64) -> bool {
        self.connection == connection && self.stage != LinkStage::Down
    }
    /// Everything written has left for the socket.
    pub(super) fn is_flushed(&self) -> bool {
        self.stage == LinkStage::Down || self.outlet.is_empty()
    }
    pub(super) fn received(&mut self, assignments: usize) {
        self.received += assignments as u64;
    }
    pub(super) fn given(&self) -> u32 {
        self.given
    }
    pub(super) fn hinted(&mut self, waiting: bool) {
        self.hint = Some(waiting);
    }
    /// Runs wait there, as it has said.
    pub(super) fn hints(&self) -> bool {
        self.hint == Some(true)
    }
    /// It has not said that none wait: a node of an older release never does, and must not be left without credit.
    pub(super) fn may_want_credit(&self) -> bool {
        self.hint != Some(false)
    }
    pub(super) fn can_finish(&self) -> bool {
        self.stage == LinkStage::Ready
            && self.finishes < EXECUTOR_FINISHES_IN_FLIGHT
            && self.outlet.has_room(self.connection)
    }
    pub(super) fn can_log(&self) -> bool {
        self.stage == LinkStage::Ready && self.logs < EXECUTOR_LOGS_IN_FLIGHT && self.outlet.has_room(self.connection)
    }

    /// A new connection: whatever was asked on the last one has no answer any more.
    pub(super) fn up(&mut self, connection: u64, now_ms: u64) {
        self.down();
        self.connection = connection;
        self.stage = LinkStage::Registering;
        self.up_ms = now_ms;
        self.received = 0;
        self.heartbeat_ms = now_ms;
    }

    pub(super) fn down(&mut self) {
        self.stage = LinkStage::Down;
        self.asked.clear();
        self.finishes = 0;
        self.logs = 0;
        self.unanswered_ms = None;
        self.given = 0;
        self.hint = None;
    }

    pub(super) fn hang_up(&self, why: &'static str) {
        tracing::info!(why, "closing the connection to a node");
        self.outlet.hang_up(self.connection, why);
    }

    /// Ends a connection that is not to be used.
    pub(super) fn turn_away(&self, connection: u64, why: &'static str) {
        self.outlet.hang_up(connection, why);
    }

    pub(super) fn request<T: Serialize>(&mut self, method: &str, params: &T, asked: WaitingRequest) {
        self.last_id = self.last_id.wrapping_add(1);
        let id = self.last_id;
        match self.outlet.write(self.connection, |out| encode::request(out, id, method, params)) {
            Some(Ok(())) => {
                match asked {
                    WaitingRequest::Finish(_) => self.finishes += 1,
                    WaitingRequest::Log => self.logs += 1,
                    WaitingRequest::Register | WaitingRequest::Announce { .. } | WaitingRequest::Heartbeat { .. } => {}
                }
                self.asked.insert(id, asked);
            }
            // Everything sent is bounded far below a frame; if not, the node's silence ends the connection.
            Some(Err(error)) => tracing::error!(%error, method, "cannot send"),
            // The connection has changed; that is told soon, and everything is sent again.
            None => {}
        }
    }

    pub(super) fn notify<T: Serialize>(&mut self, method: &str, params: &T) {
        if let Some(Err(error)) = self.outlet.write(self.connection, |out| encode::notification(out, method, params)) {
            tracing::error!(%error, method, "cannot send");
        }
    }

    pub(super) fn answered(&mut self, id: u32) -> Option<WaitingRequest> {
        let asked = self.asked.remove(&id)?;
        match asked {
            WaitingRequest::Finish(_) => self.finishes -= 1,
            WaitingRequest::Log => self.logs -= 1,
            WaitingRequest::Heartbeat { sent_ms } => {
                self.contact_ms = Some(sent_ms);
                // Answers come in order, so a later heartbeat is the oldest one now.
                self.unanswered_ms = self
                    .asked
                    .values()
                    .filter_map(|a| match a {
                        WaitingRequest::Heartbeat { sent_ms } => Some(*sent_ms),
                        WaitingRequest::Register
                        | WaitingRequest::Announce { .. }
                        | WaitingRequest::Finish(_)
                        | WaitingRequest::Log => None,
                    })
                    .min();
            }
            WaitingRequest::Register => self.contact_ms = Some(self.up_ms),
            WaitingRequest::Announce { .. } => {}
        }
        Some(asked)
    }

    /// The credit as it is now; counts as given.
    pub(super) fn credit(&mut self, slots: u32, load: f32, now_ms: u64) -> Credit {
        self.credit_ms = now_ms;
        self.given = slots;
        Credit { stamp_ms: now_ms, slots, received: Some(self.received), load }
    }
    pub(super) fn credit_is_due(&self, now_ms: u64) -> bool {
        self.stage == LinkStage::Ready && now_ms.saturating_sub(self.credit_ms) >= CREDIT_AGAIN_MS
    }

    /// Heartbeats when due; ends a connection that does not answer.
    pub(super) fn tick(&mut self, running: u32, now_ms: u64) {
        if self.stage == LinkStage::Down {
            return;
        }
        let silent_since = match self.stage {
            LinkStage::Registering | LinkStage::Announcing => Some(self.up_ms),
            LinkStage::Ready | LinkStage::Down => self.unanswered_ms,
        };
        if silent_since.is_some_and(|since| now_ms.saturating_sub(since) > HEARTBEAT_ANSWER_MS) {
            self.unanswered_ms = None;
            self.hang_up("the node does not answer");
            return;
        }
        if self.stage == LinkStage::Ready && now_ms.saturating_sub(self.heartbeat_ms) >= HEARTBEAT_MS as u64 {
            self.heartbeat_ms = now_ms;
            self.unanswered_ms.get_or_insert(now_ms);
            self.request(
                method::EXECUTOR_HEARTBEAT,
                &Heartbeat { running },
                WaitingRequest::Heartbeat { sent_ms: now_ms },
            );
        }
    }

    /// For so long the node cannot be shown to have heard us that bodies which must not outlive their lease must be told to stop, so that they
    /// have ended by then; they have so long to end.
    pub(super) fn is_out_of_contact(&self, grace_ms: u64, now_ms: u64) -> bool {
        self.contact_ms.is_some_and(|contact| now_ms.saturating_sub(contact) > lost_contact_ms(grace_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::limits::{CREDIT_MS, LEASE_MS, STOP_GRACE_MAX_SEC, STOP_GRACE_SEC, STOP_MARGIN_MS};

    #[test]
    fn what_a_node_said_of_its_runs_ends_with_its_connection() {
        let mut upstream = Upstream::new(Arc::default());
        let stands = |upstream: &Upstream| (upstream.hints(), upstream.may_want_credit());
        assert_eq!(stands(&upstream), (false, true), "it has said nothing");
        upstream.up(1, 0);
        upstream.hinted(false);
        assert_eq!(stands(&upstream), (false, false));
        upstream.down();
        assert_eq!(stands(&upstream), (false, true), "the next one may be of an older release");
        upstream.up(2, 5);
        upstream.hinted(true);
        assert_eq!(stands(&upstream), (true, true));
        upstream.up(3, 9);
        assert_eq!(stands(&upstream), (false, true));
    }

    /// The connection of a new [`Outlet`].
    const FIRST: u64 = 0;

    fn registered(now_ms: u64) -> Upstream {
        let mut upstream = Upstream::new(Arc::default());
        upstream.up(FIRST, now_ms);
        upstream.request("m", &(), WaitingRequest::Register);
        assert!(matches!(upstream.answered(1), Some(WaitingRequest::Register)));
        upstream.set_stage(LinkStage::Ready);
        upstream
    }

    #[test]
    fn bodies_are_told_to_stop_when_their_grace_still_fits_into_the_lease() {
        let lease_ms = LEASE_MS as u64;
        for grace_ms in [0, 50, 1_000 * STOP_GRACE_SEC, 1_000 * STOP_GRACE_MAX_SEC] {
            let mut upstream = registered(1_000);
            let last_ms = 1_000 + lease_ms - STOP_MARGIN_MS - grace_ms;
            assert!(!upstream.is_out_of_contact(grace_ms, last_ms), "not before it must be: {grace_ms}");
            assert!(upstream.is_out_of_contact(grace_ms, last_ms + 1), "{grace_ms}");
            assert!(last_ms + 1 + grace_ms < 1_000 + lease_ms, "a body has ended before its lease has: {grace_ms}");
            // A heartbeat proves contact when it is answered, and from when it was sent: nobody knows when it arrived.
            upstream.tick(1, 5_000);
            assert!(upstream.is_out_of_contact(grace_ms, last_ms + 1), "it was not answered: {grace_ms}");
            assert!(matches!(upstream.answered(2), Some(WaitingRequest::Heartbeat { sent_ms: 5_000 })));
            assert!(!upstream.is_out_of_contact(grace_ms, last_ms + 4_000), "{grace_ms}");
            assert!(upstream.is_out_of_contact(grace_ms, last_ms + 4_001), "{grace_ms}");
            upstream.down();
            assert!(upstream.is_out_of_contact(grace_ms, last_ms + 4_001), "also without a connection: {grace_ms}");
        }
        assert!(!Upstream::new(Arc::default()).is_out_of_contact(0, 1 << 40), "no lease has begun");
    }

    #[test]
    fn credit_is_given_again_well_before_it_is_void() {
        let mut upstream = registered(1_000);
        upstream.credit(4, 0.0, 2_000);
        assert!(!upstream.credit_is_due(2_000));
        assert!(upstream.credit_is_due(2_000 + CREDIT_MS as u64 / 2));
        upstream.down();
        assert!(!upstream.credit_is_due(1 << 40), "nobody is there to take it");
    }
}
