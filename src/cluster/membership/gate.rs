//! Which packets get as far as the protocol, and what others are told whose packets do not.

use super::{
    card::Card,
    driver::{Body, Content, Driver},
    identity::Identity,
    refusal::{Notice, Reason, Refusal},
    seal::Unopened,
    settings::SUSPECT_MS,
};
use campanile_schema::limits::{GOSSIP_CLOCK_MS, GOSSIP_NOTICES_PER_SEC, GOSSIP_PACKET_BYTES};
use foca::Identity as _;
use std::net::SocketAddr;

impl Driver {
    pub(super) fn open(&mut self, from: SocketAddr, packet: &[u8]) {
        if packet.len() > GOSSIP_PACKET_BYTES {
            return self.complain(Reason::Malformed, || format!("a packet from {from} is longer than any of ours"));
        }
        if let Some(notice) = Notice::decode(packet) {
            return self.noticed(from, &notice);
        }
        let (sent_ms, plain) = match self.seal.open(packet) {
            Ok(opened) => opened,
            Err(why) => return self.unopened(from, why),
        };
        let body: Option<Body> = rmp_serde::from_slice(&plain).ok();
        let read =
            body.and_then(|body| Card::decode(&body.card).filter(|card| card.is_of(&body.from)).map(|c| (body, c)));
        let Some((body, card)) = read else {
            return self.complain(Reason::Malformed, || {
                format!("a packet from {from} is sealed as ours but cannot be read: is it of another release?")
            });
        };
        if body.from.same_process(&self.me()) {
            // We are one of our seeds.
            return;
        }
        let ahead = sent_ms.saturating_sub(self.cluster_ms());
        if ahead.saturating_abs() > GOSSIP_CLOCK_MS {
            if let Content::Refused(refusal @ Refusal::Clock { .. }) = &body.content {
                return self.refused_for_clock(from, &body, &card, refusal);
            }
            let name = &card.name;
            self.complain(Reason::Clock, || {
                format!(
                    "a packet from node '{name}' at {from} is refused: by this node's clock it was sent {} ms {}; set the clocks \
                     right, or it is an old packet that somebody sent again",
                    ahead.saturating_abs(),
                    if ahead > 0 { "ahead" } else { "ago" }
                )
            });
            // Under seal, since it is acted on. As seldom as notices are: an old packet that is sent again must not make a flood.
            if self.may_notice() {
                let refusal = Refusal::Clock { process: body.from.process, number: body.number, ahead_ms: ahead };
                self.send(from, Content::Refused(refusal));
            }
            return;
        }
        let sender = (body.from.node, body.from.generation, body.from.process);
        if !self.replay.first_time(sender, body.number, self.now.mono_ms) {
            return self.complain(Reason::Replay, || {
                format!("a packet of node '{}' came from {from} again, and is refused", card.name)
            });
        }
        let clock_ms = sent_ms.saturating_add(card.clock_off_ms).saturating_sub(self.now.boot_ms);
        self.views.heard(&body.from, self.now.mono_ms, clock_ms, self.own_offset_ms(), body.standing_ms);
        match body.content {
            // On its way while a clock was set.
            Content::Refused(Refusal::Clock { .. }) => {}
            Content::Refused(refusal) => self.refused_by(&body.from, from, &card, &refusal),
            Content::Swim(data) => match self.judge(&body.from, &card) {
                Some(refusal) => self.refuse(from, &body.from, &card, refusal),
                None => {
                    let news = self.cards.lock().offer(card);
                    if news {
                        // As a broadcast it would come too late: we know it already, and would not pass it on.
                        let _ = self.swim.add_broadcast(&body.card);
                    }
                    self.drive(|swim, effects| swim.handle_data(&data, effects));
                }
            },
        }
    }

    /// Why the sender cannot be a member, if so.
    fn judge(&self, from: &Identity, card: &Card) -> Option<Refusal> {
        let me = self.me();
        if from.node == me.node {
            return Some(Refusal::SameNode { holder: me, standing_ms: self.standing_ms() });
        }
        if let Some(refusal) = Refusal::of_cards(&self.card, card) {
            return Some(refusal);
        }
        // At another address both may be alive: the known one stays until it is down. At the same address only one can be.
        let known = self.swim.iter_members().map(foca::Member::id).find(|known| known.node == from.node);
        if let Some(holder) = known.filter(|known| known.address != from.address) {
            let standing_ms = self.views.standing_ms(holder).max(SUSPECT_MS);
            return Some(Refusal::SameNode { holder: *holder, standing_ms });
        }
        let later = |known: &&Identity| {
            known.addr() == from.addr() && !known.same_process(from) && known.order() > from.order()
        };
        let known = self.swim.iter_membership_state().map(foca::Member::id).find(later);
        known.map(|known| Refusal::Generation(*known))
    }

    pub(super) fn refuse(&mut self, to: SocketAddr, who: &Identity, card: &Card, refusal: Refusal) {
        let (name, why) = (&card.name, refusal.explain(card));
        self.complain(refusal.reason(), || format!("node '{name}' at {to} is refused: {why}"));
        if let Refusal::SameNode { holder, .. } = &refusal
            && holder.node != self.me().node
        {
            // So that its log says it too.
            let claim = Refusal::SameNode { holder: *who, standing_ms: 0 };
            self.send(holder.address, Content::Refused(claim));
        }
        self.send(to, Content::Refused(refusal));
    }

    /// Another node says that we, or it, cannot be here. The one that has not been a member, or not for so long, goes.
    fn refused_by(&mut self, who: &Identity, from: SocketAddr, theirs: &Card, refusal: &Refusal) {
        let me = self.me();
        let ours = self.standing_ms();
        let (other, standing) = match refusal {
            Refusal::SameNode { holder, standing_ms } => (holder, *standing_ms),
            Refusal::Generation(known) if known.order() <= me.order() => return,
            Refusal::Generation(known) => (known, u64::MAX),
            Refusal::Clock { .. } => return,
            Refusal::Shards(_) | Refusal::Formats { .. } => (who, self.views.standing_ms(who)),
        };
        if other.same_process(&me) {
            return;
        }
        let goes = standing > ours || standing == ours && (other.order(), other.node) > (me.order(), me.node);
        let why = refusal.explain(&self.card);
        let name = &theirs.name;
        let text = if goes {
            format!("node '{name}' at {from} refuses this node: {why}")
        } else {
            format!("node '{name}' at {from} says that another process claims to be this node: {why}; this one stays")
        };
        if let Some(untold) = self.complaints.due(refusal.reason(), false, self.now.mono_ms) {
            self.tell(true, if untold == 0 { text.clone() } else { format!("{text} ({untold} more)") });
        }
        if goes {
            self.yield_to(text, from);
        }
    }

    fn unopened(&mut self, from: SocketAddr, why: Unopened) {
        let ours = self.seal.cluster().to_owned();
        let reason = match &why {
            Unopened::Malformed => Reason::Malformed,
            Unopened::OtherCluster(_) => Reason::Cluster,
            Unopened::UnknownKey(_) => Reason::Key,
            Unopened::Spoilt(_) => Reason::Seal,
        };
        self.complain(reason, || match why {
            Unopened::Malformed => format!("a packet from {from} is none of membership; what sends it?"),
            Unopened::OtherCluster(theirs) => {
                format!("a packet from {from} is of cluster '{theirs}', and this node belongs to '{ours}'; it is refused")
            }
            Unopened::UnknownKey(id) => format!(
                "a packet from {from} is sealed with key '{id}', which is not in this node's key file ([cluster] key_file); it is \
                 refused"
            ),
            Unopened::Spoilt(id) => format!(
                "a packet from {from} does not open with key '{id}': the sender has another key with that id, or somebody changed \
                 it; it is refused"
            ),
        });
        if reason != Reason::Malformed {
            self.notice(from, reason);
        }
    }

    /// Another node says that our clock is too far off: it counts when it answers a packet that we have just sent, since its own time says
    /// nothing. Who is a member already is no less one for that.
    fn refused_for_clock(&mut self, from: SocketAddr, body: &Body, theirs: &Card, refusal: &Refusal) {
        let Refusal::Clock { process, number, .. } = refusal else { return };
        if *process != self.me().process || !self.sent_lately(*number) {
            return;
        }
        let (me, ours) = (self.me(), self.standing_ms());
        let other = &body.from;
        let later = (other.order(), other.node) > (me.order(), me.node);
        let goes = body.standing_ms > ours || body.standing_ms == ours && later;
        let (name, why) = (&theirs.name, refusal.explain(&self.card));
        let text = format!("node '{name}' at {from} refuses this node: {why}");
        if let Some(untold) = self.complaints.due(Reason::Clock, false, self.now.mono_ms) {
            self.tell(true, if untold == 0 { text.clone() } else { format!("{text} ({untold} more)") });
        }
        if goes && !self.connected {
            self.yield_to(text, from);
        }
    }

    /// Whether we may send one more answer to what we do not take.
    fn may_notice(&mut self) -> bool {
        if self.now.mono_ms >= self.notices.0 + 1_000 {
            self.notices = (self.now.mono_ms, 0);
        }
        self.notices.1 += 1;
        self.notices.1 <= GOSSIP_NOTICES_PER_SEC
    }

    /// Tells the sender in clear, a few times a second.
    fn notice(&mut self, to: SocketAddr, reason: Reason) {
        if self.may_notice() {
            let packet = Notice::encode(reason, self.seal.cluster(), self.now.wall_ms);
            self.send_raw(to, packet);
        }
    }

    /// Anybody could say so: it is told when it comes from where we asked, and changes nothing.
    fn noticed(&mut self, from: SocketAddr, notice: &Notice) {
        let asked = self.seeds.contains(&from) || self.swim.iter_members().any(|member| member.id().address == from);
        let text = notice.explain(from, self.seal.cluster());
        if let (true, Some(reason), Some(text)) = (asked, notice.reason(), text)
            && self.complaints.due(reason, false, self.now.mono_ms).is_some()
        {
            self.tell(true, text);
        }
    }
}
