//! The protocol without a socket or a clock: packets and the time go in, packets and what is seen come out. The thread that has the
//! socket and the simulation of the tests run the same code.
//!
//! What is ours around foca: sealing, what is refused, cards, joining, and what a process may conclude that slept.

use super::{
    Me,
    card::{Card, Cards},
    effects::{Effects, Timers},
    identity::Identity,
    members::{Counters, Members},
    refusal::{Complaints, Reason, Refusal},
    replay::Replay,
    seal::{NONCE_BYTES, Seal},
    settings::{self, FAREWELLS, LATE_MS, SUSPECT_MS, UPKEEP_MS},
    swim::{Swim, swim},
    view::Views,
};
use campanile_core::agreement::Agreement;
use campanile_schema::limits::{GOSSIP_CARD_BYTES, GOSSIP_PACKET_BYTES};
use foca::{OwnedNotification, State, Timer};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::{net::SocketAddr, sync::Arc};

/// Packets after which an answer to one is too late, count.
const SENT_LATELY: u64 = 1_000;

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Now {
    /// Never jumps; its beginning means nothing.
    pub mono_ms: u64,
    /// CLOCK_BOOTTIME: never jumps, and goes on while the machine sleeps.
    pub boot_ms: i64,
    pub wall_ms: i64,
}

/// What a sealed packet says.
#[derive(Serialize, Deserialize)]
pub(super) struct Body {
    pub from: Identity,
    /// Of the packet, by its process.
    pub number: u64,
    /// How long it has been a member, milliseconds; 0: it is none.
    pub standing_ms: u64,
    pub card: ByteBuf,
    pub content: Content,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Content {
    Swim(ByteBuf),
    Refused(Refusal),
}

/// A sentence for the operator, and whether it is about something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OperatorNotice {
    pub warning: bool,
    pub text: String,
}

/// What is known of clocks; `clocks.rs` looks after it.
#[derive(Default)]
pub(super) struct Clocks {
    pub(super) agreement: Agreement,
    /// When it is looked at next.
    pub(super) next_ms: u64,
    /// Wall clock minus boot clock when it was looked at last.
    pub(super) own_ms: i64,
}

/// One member.
pub(super) struct Driver {
    pub(super) swim: Swim,
    pub(super) seal: Seal,
    pub(super) cards: Arc<Mutex<Cards>>,
    pub(super) card: Card,
    pub(super) sealed_card: Vec<u8>,
    pub(super) replay: Replay,
    pub(super) complaints: Complaints,
    pub(super) counters: Counters,
    pub(super) views: Views,
    pub(super) clocks: Clocks,
    pub(super) now: Now,
    pub(super) seeds: Vec<SocketAddr>,
    /// Some member knows us.
    pub(super) connected: bool,
    /// Since when we are a member, or alone on purpose.
    pub(super) member_since: Option<u64>,
    /// Why others do not take us, and where they are.
    pub(super) refused: Option<(String, SocketAddr)>,
    pub(super) next_join_ms: u64,
    pub(super) next_seeds_ms: u64,
    /// Notices sent in the second that began then.
    pub(super) notices: (u64, u32),
    timers: Timers,
    next_upkeep_ms: u64,
    farewells: Option<u32>,
    rng: StdRng,
    number: u64,
    out: Vec<(SocketAddr, Vec<u8>)>,
    operator_notices: Vec<OperatorNotice>,
}

impl Driver {
    /// `seed` must be unpredictable where packets go over a network: nonces come from it. No seeds: this node is the first one.
    pub fn new(
        seal: Seal,
        me: &Me,
        address: SocketAddr,
        seeded: bool,
        seed: [u8; 32],
        now: Now,
    ) -> Result<Self, String> {
        let mut rng = StdRng::from_seed(seed);
        let process = rng.random();
        let identity = Identity { node: me.node.0, address, generation: me.generation, process, life: 0 };
        let card = me.card(process);
        let sealed_card = card.encode()?;
        let cards = Arc::new(Mutex::new(Cards::default()));
        let swim = swim(identity, &card, &cards, &mut rng);
        let views = Views::new(&identity, &card);
        Ok(Self {
            swim,
            seal,
            cards,
            card,
            sealed_card,
            replay: Replay::default(),
            complaints: Complaints::default(),
            counters: Counters::default(),
            views,
            clocks: Clocks::default(),
            now,
            seeds: Vec::new(),
            connected: false,
            member_since: (!seeded).then_some(now.mono_ms),
            refused: None,
            next_join_ms: 0,
            next_seeds_ms: 0,
            notices: (0, 0),
            timers: Timers::default(),
            next_upkeep_ms: now.mono_ms,
            farewells: None,
            rng,
            number: 0,
            out: Vec::new(),
            operator_notices: Vec::new(),
        })
    }

    pub fn me(&self) -> Identity {
        *self.swim.identity()
    }

    /// A packet came.
    pub fn receive(&mut self, now: Now, from: SocketAddr, packet: &[u8]) {
        self.at(now);
        self.counters.received += 1;
        if self.farewells.is_none() {
            self.open(from, packet);
        }
        self.refresh();
    }

    /// The time has come that [`Driver::next_wake_ms`] named, or a later one.
    pub fn wake(&mut self, now: Now) {
        self.at(now);
        while let Some((due, timer)) = self.timers.take(now.mono_ms) {
            self.timer(due, timer);
        }
        if now.mono_ms >= self.next_upkeep_ms {
            self.next_upkeep_ms = now.mono_ms + UPKEEP_MS;
            match &mut self.farewells {
                Some(0) => {}
                Some(left) => {
                    *left -= 1;
                    self.drive(|swim, effects| swim.gossip(effects));
                }
                None => self.upkeep(),
            }
        }
        self.refresh();
    }

    pub fn next_wake_ms(&self) -> u64 {
        self.timers.next_ms().unwrap_or(u64::MAX).min(self.next_upkeep_ms)
    }

    /// Where to ask for the cluster. Our own address may be among them.
    pub fn set_seeds(&mut self, seeds: Vec<SocketAddr>) {
        let own = self.me().address;
        self.seeds = seeds.into_iter().filter(|seed| *seed != own).collect();
    }

    /// Changes what this node says of itself, and tells all.
    pub fn say(&mut self, now: Now, change: impl FnOnce(&mut Card)) {
        self.at(now);
        self.change_card(change);
    }

    pub(super) fn change_card(&mut self, change: impl FnOnce(&mut Card)) {
        let before = self.card.clone();
        change(&mut self.card);
        if self.card == before {
            return;
        }
        self.card.revision += 1;
        match self.card.encode() {
            Ok(bytes) => self.sealed_card = bytes,
            Err(why) => {
                self.card = before;
                self.tell(true, why);
                return;
            }
        }
        self.spread_card();
        self.drive(|swim, effects| swim.broadcast(effects));
        self.refresh();
    }

    /// Says farewell. What comes afterwards is not heard; [`Driver::has_left`] when it was said often enough.
    pub fn leave(&mut self, now: Now) {
        if self.farewells.is_some() {
            return;
        }
        self.at(now);
        self.part();
        self.timers.clear();
        self.farewells = Some(FAREWELLS - 1);
        self.next_upkeep_ms = now.mono_ms + UPKEEP_MS;
        self.tell(false, "this node has left the cluster".to_owned());
        self.refresh();
    }

    pub fn has_left(&self) -> bool {
        self.farewells == Some(0)
    }

    /// Packets to send, with where to.
    pub fn take_packets(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.out)
    }

    pub fn take_notices(&mut self) -> Vec<OperatorNotice> {
        std::mem::take(&mut self.operator_notices)
    }

    /// As seen now; the same one as long as nothing changes.
    pub fn members(&self) -> Arc<Members> {
        self.views.last()
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether a packet of ours with that number can be one that others answer now.
    pub(super) fn sent_lately(&self, number: u64) -> bool {
        number <= self.number && number + SENT_LATELY > self.number
    }

    /// Tells all active members that we go.
    pub(super) fn part(&mut self) {
        // Only the periods of timers may not change, and these stay: it cannot fail.
        let _ = self.swim.set_config(settings::farewell(self.swim.num_members()));
        self.drive(|swim, effects| swim.leave_cluster(effects));
        self.connected = false;
    }

    /// Leaves for now, so that the others are not disturbed, and goes on asking.
    pub(super) fn yield_to(&mut self, why: String, by: SocketAddr) {
        if self.connected {
            self.part();
        }
        self.timers.clear();
        let identity = foca::Identity::renew(&self.me()).unwrap_or(self.me());
        self.swim = swim(identity, &self.card, &self.cards, &mut self.rng);
        self.member_since = None;
        self.refused = Some((why, by));
        self.next_join_ms = self.now.mono_ms + settings::REFUSED_MS;
    }

    /// How long this node has been a member, for those who must choose between two; 0: it is none.
    pub(super) fn standing_ms(&self) -> u64 {
        self.member_since.map_or(0, |since| self.now.mono_ms - since + 1)
    }

    pub(super) fn tell(&mut self, warning: bool, text: String) {
        self.operator_notices.push(OperatorNotice { warning, text });
    }

    pub(super) fn send(&mut self, to: SocketAddr, content: Content) {
        self.number += 1;
        let card = ByteBuf::from(self.sealed_card.clone());
        debug_assert!(card.len() <= GOSSIP_CARD_BYTES);
        let body = Body { from: self.me(), number: self.number, standing_ms: self.standing_ms(), card, content };
        let nonce: [u8; NONCE_BYTES] = self.rng.random();
        let plain = rmp_serde::to_vec(&body).ok();
        let packet = plain.and_then(|plain| self.seal.close(self.cluster_ms(), &nonce, &plain));
        match packet {
            Some(packet) if packet.len() <= GOSSIP_PACKET_BYTES => self.send_raw(to, packet),
            // The parts are bounded so that it fits: a bug, and one packet less.
            Some(_) | None => self.tell(true, "bug: a packet of membership is too long".to_owned()),
        }
    }

    pub(super) fn send_raw(&mut self, to: SocketAddr, packet: Vec<u8>) {
        self.counters.sent += 1;
        self.out.push((to, packet));
    }

    /// Our card as a broadcast; what is not passed on by now is replaced.
    pub(super) fn spread_card(&mut self) {
        let card = self.sealed_card.clone();
        // Refused only when longer than a packet, and it is not.
        let _ = self.swim.add_broadcast(&card);
    }

    /// One call of foca with what follows from it.
    pub(super) fn drive(&mut self, call: impl FnOnce(&mut Swim, &mut Effects) -> Result<(), foca::Error>) {
        let mut effects = Effects::default();
        if let Err(error) = call(&mut self.swim, &mut effects) {
            self.complain(Reason::Malformed, || format!("a packet says what the protocol does not know: {error}"));
        }
        for (after, timer) in effects.timers {
            let due = self.now.mono_ms + u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            self.timers.add(due, timer);
        }
        for (to, data) in effects.packets {
            self.send(to.address, Content::Swim(ByteBuf::from(data)));
        }
        for news in effects.news {
            self.hear(news);
        }
    }

    /// Counts it, and tells it when it was not told lately.
    pub(super) fn complain(&mut self, reason: Reason, text: impl FnOnce() -> String) {
        let at = Reason::ALL.iter().position(|known| *known == reason).unwrap_or_default();
        self.counters.refused[at] += 1;
        metrics::counter!("campanile_membership_refused_total", "reason" => reason.label()).increment(1);
        if let Some(untold) = self.complaints.due(reason, true, self.now.mono_ms) {
            let more = if untold == 0 { String::new() } else { format!(" ({untold} more like it since the last)") };
            self.tell(true, format!("{}{more}", text()));
        }
    }

    fn at(&mut self, now: Now) {
        self.now = now;
        self.cards.lock().now_ms = now.mono_ms;
        if self.farewells.is_none() {
            self.look_at_clocks();
        }
    }

    pub(super) fn timer(&mut self, due: u64, timer: Timer<Identity>) {
        if let Timer::ChangeSuspectToDown { member_id, incarnation, .. } = &timer {
            let suspect = |known: &&foca::Member<Identity>| {
                known.id() == member_id && known.state() == State::Suspect && known.incarnation() == *incarnation
            };
            // foca looks at the incarnation only: an alive member whose incarnation another one raised meanwhile would be down.
            if !self.swim.iter_membership_state().any(|known| suspect(&known)) {
                return;
            }
            // We slept: its answer may be in the socket, or lost with many others.
            if self.now.mono_ms > due + LATE_MS {
                self.timers.add(self.now.mono_ms + SUSPECT_MS, timer);
                return;
            }
        }
        self.drive(|swim, effects| swim.handle_timer(timer, effects));
    }

    fn hear(&mut self, news: OwnedNotification<Identity>) {
        match news {
            OwnedNotification::MemberUp(member) => {
                self.counters.ups += 1;
                self.views.came(&member, self.now.mono_ms);
                self.tell(false, format!("{} is up", self.named(&member)));
            }
            OwnedNotification::MemberDown(member) => {
                self.counters.downs += 1;
                self.tell(false, format!("{} is down", self.named(&member)));
            }
            OwnedNotification::Rename(old, new) => {
                self.views.came(&new, self.now.mono_ms);
                // A fast restart shows only so: nobody saw it down. The same process that came back lost nothing.
                if !old.same_process(&new) {
                    self.counters.downs += 1;
                    self.counters.ups += 1;
                    self.tell(false, format!("{} was started again", self.named(&new)));
                }
            }
            OwnedNotification::Active => {
                self.connected = true;
                // Others will hear of us from others; those that miss a card ask for it.
                self.spread_card();
                self.member_since.get_or_insert(self.now.mono_ms);
                if self.refused.take().is_some() {
                    self.tell(false, "the cluster takes this node now".to_owned());
                }
            }
            OwnedNotification::Idle | OwnedNotification::Defunct => self.connected = false,
            OwnedNotification::Rejoin(_) => {
                // Nobody knows the new identity until somebody answers it.
                self.connected = false;
                self.counters.rejoins += 1;
                self.tell(true, "others took this node for down; it joins again".to_owned());
            }
        }
    }

    fn named(&self, member: &Identity) -> String {
        let cards = self.cards.lock();
        match cards.of(member) {
            Some(card) => format!("node '{}' at {}", card.name, member.address),
            None => format!("the node at {}", member.address),
        }
    }

    fn refresh(&mut self) {
        let me = *self.swim.identity();
        let refused = self.refused.as_ref().map(|(why, _)| why.as_str());
        let gone = self.farewells.is_some();
        self.views.refresh(&self.swim, &self.cards, &me, &self.card, refused, gone);
    }
}
