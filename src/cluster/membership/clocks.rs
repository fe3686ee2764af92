//! Whether this node's wall clock is the one that most members go by, from the times in their packets.
//!
//! A node whose clock is wrong seals with the time of the others for as long as they hear each other, and says on its card how far its
//! clock is off: it stays a member, so that all know it and its shards can be handed over.

use super::{
    driver::Driver,
    refusal::Reason,
    settings::{CLOCKS_MS, OFFSET_STEP_MS},
};
use campanile_core::agreement::WRONG_MS;

impl Driver {
    /// What the cluster's wall clock is now: the own one, unless most members say otherwise.
    pub(super) fn cluster_ms(&self) -> i64 {
        self.now.wall_ms - self.clocks.agreement.off_ms().unwrap_or(0)
    }

    /// What most clocks say, as an offset from CLOCK_BOOTTIME, milliseconds.
    pub fn agreed_ms(&self) -> Option<i64> {
        self.clocks.agreement.agreed_ms()
    }

    pub(super) fn own_offset_ms(&self) -> i64 {
        self.now.wall_ms - self.now.boot_ms
    }

    /// Now and then, and at once when the own clock has jumped: nothing may leave with a time that nobody would take.
    pub(super) fn look_at_clocks(&mut self) {
        let own_ms = self.own_offset_ms();
        let jumped = (own_ms - self.clocks.own_ms).abs() > WRONG_MS / 2;
        if self.now.mono_ms < self.clocks.next_ms && !jumped {
            return;
        }
        self.clocks.own_ms = own_ms;
        self.clocks.next_ms = self.now.mono_ms + CLOCKS_MS;
        let others = self.views.clocks(&self.swim, self.me().node, self.now.mono_ms);
        let was_off = self.clocks.agreement.off_ms().is_some();
        self.clocks.agreement.look(self.now.mono_ms, own_ms, &others);
        let (off_ms, stands) = (self.clocks.agreement.off_ms(), self.clocks.agreement.stands());
        match off_ms {
            Some(off) if !was_off => self.tell(true, wrong(off, others.len())),
            None if was_off => {
                self.tell(false, "this node's wall clock agrees with most members' again".to_owned());
            }
            None if self.agreed_ms().is_none() && !others.is_empty() => self.nobody_agrees(own_ms, &others),
            Some(_) | None => {}
        }
        let off_ms = off_ms.unwrap_or(0);
        let known_ms = self.card.clock_off_ms;
        let moved = known_ms.abs_diff(off_ms) >= OFFSET_STEP_MS || (known_ms == 0) != (off_ms == 0);
        if moved || self.card.clock_wrong != stands {
            self.change_card(|card| (card.clock_off_ms, card.clock_wrong) = (off_ms, stands));
        }
    }

    /// Everybody goes on by the own clock: who is wrong cannot be told.
    fn nobody_agrees(&mut self, own_ms: i64, others: &[i64]) {
        let Some(untold) = self.complaints.due(Reason::Clock, true, self.now.mono_ms) else { return };
        let furthest = others.iter().map(|other| other - own_ms).max_by_key(|off| off.abs()).unwrap_or(0);
        let more = if untold == 0 { String::new() } else { format!(" ({untold} more)") };
        self.tell(
            true,
            format!(
                "the clocks of {} nodes disagree by up to {} ms and there is no majority: each goes on by its own; set the clocks \
                 right (`campanile cluster members` shows them){more}",
                others.len() + 1,
                furthest.abs()
            ),
        );
    }
}

fn wrong(off_ms: i64, others: usize) -> String {
    format!(
        "this node's wall clock is {} ms {} most of {} nodes: it fires nothing, and gives its shards away unless that changes at \
         once; set the clock right, and it takes part again by itself",
        off_ms.abs(),
        if off_ms > 0 { "ahead of" } else { "behind" },
        others + 1
    )
}
