//! What of the protocol's state others get to see: made anew only when it changed.

use super::{
    card::{Card, Cards},
    identity::Identity,
    members::{Member, Members},
    settings::{CARD_MS, CLOCK_HEARD_MS, OFFSET_PACKETS, OFFSET_STEP_MS},
    swim::Swim,
};
use campanile_core::agreement::AGREE_MS;
use foca::State;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// Node, generation, process.
type Process = (u64, u64, u32);

fn process(identity: &Identity) -> Process {
    (identity.node, identity.generation, identity.process)
}

/// What was heard of one process directly.
#[derive(Default)]
struct ProcessRecord {
    /// How long it said that it has been a member, milliseconds.
    standing_ms: u64,
    /// Its wall clock minus our boot clock, the largest of the last packets: the time on the way only lowers it.
    offset_ms: Option<i64>,
    /// When it was heard last.
    at_ms: u64,
    gathering: Option<i64>,
    packets: u32,
    /// The difference to our wall clock that the view shows.
    shown: Option<i64>,
}

/// The view and what it is made from beside foca.
pub(super) struct Views {
    last: Arc<Members>,
    print: u64,
    heard: HashMap<Process, ProcessRecord>,
    /// When a process without a card was seen, or asked for it last.
    asked: HashMap<Process, u64>,
    offsets_moved: u64,
}

impl Views {
    pub fn new(me: &Identity, card: &Card) -> Self {
        let own = Member { is_self: true, ..Member::new(me, card) };
        let last = Arc::new(Members { all: vec![own], refused: None });
        Self { last, print: 0, heard: HashMap::new(), asked: HashMap::new(), offsets_moved: 0 }
    }

    pub fn last(&self) -> Arc<Members> {
        self.last.clone()
    }

    /// A packet of that process came. `offset_ms`: its wall clock then minus our boot clock now; `own_ms`: that of our wall clock.
    pub fn heard(&mut self, from: &Identity, now_ms: u64, offset_ms: i64, own_ms: i64, standing_ms: u64) {
        let heard = self.heard.entry(process(from)).or_default();
        (heard.standing_ms, heard.at_ms) = (standing_ms, now_ms);
        // So much less is a clock that was set back, or one late packet: the next ones make up for that.
        if heard.gathering.is_some_and(|before| before - offset_ms > AGREE_MS) {
            (heard.gathering, heard.packets) = (None, 0);
        }
        heard.gathering = heard.gathering.max(Some(offset_ms));
        heard.packets += 1;
        if heard.offset_ms.is_none() || heard.packets >= OFFSET_PACKETS {
            heard.packets = 0;
            heard.offset_ms = heard.gathering.take();
        }
        let ahead_ms = heard.offset_ms.map(|offset_ms| offset_ms - own_ms);
        let moved = match (ahead_ms, heard.shown) {
            (Some(now), Some(shown)) => now.abs_diff(shown) >= OFFSET_STEP_MS,
            (now, shown) => now != shown,
        };
        if moved {
            heard.shown = ahead_ms;
            self.offsets_moved += 1;
        }
    }

    /// Clocks of other members that were heard lately, as offsets from our boot clock, milliseconds.
    pub fn clocks(&self, swim: &Swim, own: u64, now_ms: u64) -> Vec<i64> {
        let others = swim.iter_members().filter(|member| member.id().node != own);
        let heard = others.filter_map(|member| self.heard.get(&process(member.id())));
        heard.filter(|heard| now_ms <= heard.at_ms + CLOCK_HEARD_MS).filter_map(|heard| heard.offset_ms).collect()
    }

    pub fn standing_ms(&self, of: &Identity) -> u64 {
        self.heard.get(&process(of)).map_or(0, |heard| heard.standing_ms)
    }

    pub fn came(&mut self, member: &Identity, now_ms: u64) {
        self.asked.insert(process(member), now_ms);
    }

    /// Whether it is time to ask it for its card.
    pub fn may_ask(&mut self, member: &Identity, now_ms: u64) -> bool {
        let asked = self.asked.entry(process(member)).or_insert(now_ms);
        let may = now_ms >= *asked + CARD_MS;
        if may {
            *asked = now_ms;
        }
        may
    }

    /// Forgets processes that are no members.
    pub fn keep(&mut self, is_member: impl Fn(&Identity) -> bool) {
        let any = |(node, generation, process): &Process| Identity {
            node: *node,
            generation: *generation,
            process: *process,
            ..Identity::whoever(([0, 0, 0, 0], 0).into())
        };
        self.heard.retain(|key, _| is_member(&any(key)));
        self.asked.retain(|key, _| is_member(&any(key)));
    }

    pub fn refresh(
        &mut self,
        swim: &Swim,
        cards: &Mutex<Cards>,
        me: &Identity,
        card: &Card,
        refused: Option<&str>,
        gone: bool,
    ) {
        let cards = cards.lock();
        let print = self.print(swim, &cards, card, refused, gone);
        if print == self.print {
            return;
        }
        self.print = print;
        let mut all = BTreeMap::from([(me.node, Member { is_self: true, ..Member::new(me, card) })]);
        let mut chosen: HashMap<u64, u64> = HashMap::new();
        for member in swim.iter_members().filter(|member| !gone && member.id().node != me.node) {
            let identity = member.id();
            let Some(card) = cards.of(identity) else { continue };
            let standing = self.standing_ms(identity);
            if chosen.get(&identity.node).is_some_and(|other| *other > standing) {
                continue;
            }
            chosen.insert(identity.node, standing);
            let suspect = member.state() == State::Suspect;
            let clock_offset_ms = self.heard.get(&process(identity)).and_then(|heard| heard.shown);
            all.insert(identity.node, Member { suspect, clock_offset_ms, ..Member::new(identity, card) });
        }
        let members = Members { all: all.into_values().collect(), refused: refused.map(str::to_owned) };
        if members != *self.last {
            self.last = Arc::new(members);
        }
    }

    /// Of all that the view shows. foca keeps its members in an order that changes, so their sum counts.
    fn print(&self, swim: &Swim, cards: &Cards, card: &Card, refused: Option<&str>, gone: bool) -> u64 {
        let of = |value: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        let members = swim
            .iter_members()
            .map(|member| of(&|hasher| (member.id(), member.state() == State::Suspect).hash(hasher)));
        let rest = of(&|hasher| (cards.changes, card.revision, self.offsets_moved, refused, gone).hash(hasher));
        members.fold(rest | 1, u64::wrapping_add)
    }
}
