//! What foca leaves to its user: joining and coming back, cards that are missing, two processes of one node.

use super::{
    driver::Driver,
    identity::Identity,
    refusal::Refusal,
    settings::{JOIN_MS, REFUSED_MS, SEEDS_MS},
};
use foca::State;
use std::net::SocketAddr;

/// Members and lost ones that are asked beside the seeds, count each.
const ASKED: usize = 3;

impl Driver {
    pub(super) fn upkeep(&mut self) {
        let now = self.now.mono_ms;
        if !self.connected {
            if now >= self.next_join_ms {
                self.join();
            }
            return;
        }
        if self.swim.custom_broadcast_backlog() > 0 {
            // By themselves: while many are suspected, news of them fill the other packets.
            self.drive(|swim, effects| swim.broadcast(effects));
        }
        if now >= self.next_seeds_ms {
            self.next_seeds_ms = now + SEEDS_MS;
            // After a partition in which both sides forgot each other only the seeds know where to ask.
            let known: Vec<SocketAddr> = self.swim.iter_members().map(|member| member.id().address).collect();
            let strangers: Vec<SocketAddr> = self.seeds.iter().copied().filter(|seed| !known.contains(seed)).collect();
            for seed in strangers {
                self.ask(Identity::whoever(seed));
            }
            let members: Vec<Identity> = self.swim.iter_membership_state().map(|member| *member.id()).collect();
            self.cards.lock().keep(|card| members.iter().any(|member| card.is_of(member)));
            self.views.keep(|identity| members.iter().any(|member| member.same_process(identity)));
        }
        let active: Vec<Identity> = self.swim.iter_members().map(|member| *member.id()).collect();
        let missing: Vec<Identity> = {
            let cards = self.cards.lock();
            active.iter().copied().filter(|member| cards.of(member).is_none()).collect()
        };
        for member in missing {
            if self.views.may_ask(&member, now) {
                self.ask(member);
            }
        }
        let (me, standing_ms) = (self.me(), self.standing_ms());
        for other in active.iter().filter(|other| other.node == me.node) {
            // Two parts of a cluster came together, and each had one. It is for the one that was there for less long to go.
            self.send(other.address, super::driver::Content::Refused(Refusal::SameNode { holder: me, standing_ms }));
        }
    }

    /// Asks seeds and whom we know, dead or alive, until somebody answers.
    fn join(&mut self) {
        let now = self.now.mono_ms;
        self.next_join_ms = now + if self.refused.is_some() { REFUSED_MS } else { JOIN_MS };
        let seeds: Vec<SocketAddr> = match &self.refused {
            Some((_, by)) if !self.seeds.contains(by) => self.seeds.iter().copied().chain([*by]).collect(),
            Some(_) | None => self.seeds.clone(),
        };
        for seed in seeds {
            self.ask(Identity::whoever(seed));
        }
        let of = |down: bool| {
            let members = self.swim.iter_membership_state();
            members.filter(move |member| (member.state() == State::Down) == down).map(|member| *member.id())
        };
        // foca shuffles them now and then, so that it is not always the same ones.
        let known: Vec<Identity> = of(false).take(ASKED).chain(of(true).take(ASKED)).collect();
        for member in known {
            self.ask(member);
        }
    }

    /// Whoever answers sends its card and names others.
    fn ask(&mut self, whom: Identity) {
        self.drive(|swim, effects| swim.announce(whom, effects));
    }
}
