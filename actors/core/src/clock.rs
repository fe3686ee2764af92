//! The clock guard. Firing follows the wall clock, but a wall clock may jump. Each tick compares it with
//! CLOCK_BOOTTIME, which does not jump and counts suspend. Pure: readings are arguments.
//!
//! - A jump of more than 500 ms pauses firing until two ticks agree on the new offset.
//! - A forward jump of more than ten minutes halts firing until an operator confirms the clock.
//! - At the start, the wall clock is compared with the last time in the journal and, on the same boot, with a saved
//!   reading.
//! - In a cluster, the clocks of most nodes decide ([`crate::agreement`]): a reading that agrees with them is trusted
//!   at once, and a reading that does not halts firing, while the node continues with their time.
//!
//! While a forward jump is not trusted, the node's time continues from its value before the jump ([`trusted_us`]):
//! decisions must not carry a time that the clock has not reached yet when somebody corrects it.

use crate::agreement::{AGREE_MS, WRONG_MS};
pub use campanile_schema::stored::clock::Saved;

/// Jump that pauses, microseconds.
const PAUSE_US: i64 = 500_000;
/// Forward jump that halts, microseconds.
const HALT_US: i64 = 600_000_000;
/// Ahead of the journal at start that halts on another boot, microseconds (30 days).
const AHEAD_US: i64 = 30 * 86_400 * 1_000_000;

/// One reading of both clocks, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub wall_us: i64,
    pub boot_us: u64,
}

/// What firing may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Run,
    /// Until two ticks agree.
    Paused,
    /// Until somebody agrees, or (behind the journal) the clock has caught up.
    Halted(String),
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ClockGuard {
    /// wall - boot that is believed.
    offset_us: i64,
    /// A new offset seen once.
    candidate_us: Option<i64>,
    halted: Option<Halt>,
    forward_halt_us: i64,
    /// wall - boot that most nodes agree on.
    agreed_us: Option<i64>,
}

#[derive(Clone, Debug)]
enum Halt {
    /// Ends when the wall clock passes this.
    Behind { until_us: i64 },
    /// The clock stands at `offset_us` (wall - boot), which nobody has agreed to.
    Ahead { reason: String, offset_us: i64 },
    /// Most nodes say otherwise: the clock was so far off when that was told.
    Alone { off_us: i64 },
}

fn offset(r: Reading) -> i64 {
    r.wall_us.saturating_sub_unsigned(r.boot_us)
}

/// What decisions may call now, microseconds: the wall clock, unless it has jumped from the offset (wall - boot) that is
/// believed; then the time by that offset.
pub fn trusted_us(now: Reading, believed_us: i64) -> i64 {
    if (offset(now) - believed_us).abs() > PAUSE_US {
        believed_us.saturating_add_unsigned(now.boot_us)
    } else {
        now.wall_us
    }
}

impl ClockGuard {
    /// `last_us`: newest time in the journal. `saved`: reading of an earlier start, with its boot id. `forward_halt_us`: 0 = default.
    pub fn start(
        now: Reading,
        boot_id: &str,
        last_us: Option<i64>,
        saved: Option<&Saved>,
        forward_halt_us: i64,
    ) -> Self {
        let forward_halt_us = if forward_halt_us == 0 { HALT_US } else { forward_halt_us };
        let mut guard =
            Self { offset_us: offset(now), candidate_us: None, halted: None, forward_halt_us, agreed_us: None };
        if let Some(saved) = saved.filter(|s| s.boot_id == boot_id) {
            let before = offset(Reading { wall_us: saved.wall_us, boot_us: saved.boot_us });
            if guard.offset_us - before > forward_halt_us {
                guard.halt_ahead(before, guard.offset_us, "of the last reading on this boot");
            }
        }
        if let Some(last) = last_us {
            if now.wall_us < last {
                guard.halted = Some(Halt::Behind { until_us: last });
            } else if now.wall_us - last > AHEAD_US
                && guard.halted.is_none()
                && saved.is_none_or(|s| s.boot_id != boot_id)
            {
                let journal = Reading { wall_us: last, boot_us: now.boot_us };
                guard.halt_ahead(offset(journal), guard.offset_us, "of the last time in the journal");
            }
        }
        guard
    }

    /// What most nodes' clocks say as an offset from this node's boot clock, microseconds; None: there are no others, or they disagree.
    pub fn agree(&mut self, agreed_us: Option<i64>) {
        self.agreed_us = agreed_us;
    }

    /// Looks at the clocks; call it every tick.
    pub fn tick(&mut self, now: Reading) -> Verdict {
        let seen = offset(now);
        if let Some(agreed_us) = self.agreed_us {
            return self.beside_others(now, seen, agreed_us);
        }
        if matches!(self.halted, Some(Halt::Alone { .. })) {
            // Nobody is left who could say so.
            self.halted = None;
        }
        let near = |known: i64| (seen - known).abs() <= PAUSE_US;
        let jump = seen - self.offset_us;
        // Slewing (NTP) is followed.
        if near(self.offset_us) {
            self.offset_us = seen;
            self.candidate_us = None;
            if matches!(self.halted, Some(Halt::Ahead { .. })) {
                // It came back by itself.
                self.halted = None;
            }
        } else if let Some(Halt::Ahead { offset_us, .. }) = &mut self.halted
            && near(*offset_us)
        {
            *offset_us = seen;
            self.candidate_us = None;
        } else if !self.candidate_us.is_some_and(near) {
            self.candidate_us = Some(seen);
            return Verdict::Paused;
        } else {
            self.candidate_us = None;
            if jump > self.forward_halt_us {
                self.halt_ahead(self.offset_us, seen, "of a moment ago");
            } else {
                self.offset_us = seen;
                if matches!(self.halted, Some(Halt::Ahead { .. })) {
                    self.halted = None;
                }
            }
        }
        self.verdict(now)
    }

    /// A tick in a cluster: the own clock counts as one of many.
    fn beside_others(&mut self, now: Reading, seen: i64, agreed_us: i64) -> Verdict {
        self.candidate_us = None;
        let off_us = seen - agreed_us;
        let told_us = if let Some(Halt::Alone { off_us }) = self.halted { Some(off_us) } else { None };
        let limit_ms = if told_us.is_some() { AGREE_MS } else { WRONG_MS };
        if off_us.abs() > limit_ms * 1_000 {
            // A figure that changes from tick to tick would be told each time.
            let off_us = told_us.filter(|told| (told - off_us).abs() <= WRONG_MS * 1_000).unwrap_or(off_us);
            (self.offset_us, self.halted) = (agreed_us, Some(Halt::Alone { off_us }));
            return Verdict::Halted(wrong(off_us));
        }
        self.offset_us = seen;
        if matches!(self.halted, Some(Halt::Ahead { .. } | Halt::Alone { .. })) {
            self.halted = None;
        }
        self.verdict(now)
    }

    fn verdict(&mut self, now: Reading) -> Verdict {
        match &self.halted {
            None | Some(Halt::Alone { .. }) => Verdict::Run,
            Some(Halt::Behind { until_us }) if now.wall_us >= *until_us => {
                self.halted = None;
                Verdict::Run
            }
            Some(Halt::Behind { until_us }) => Verdict::Halted(format!(
                "the wall clock is {:.1} s behind the last time in the journal; firing starts when it has caught up, or set the clock",
                (until_us - now.wall_us) as f64 / 1e6
            )),
            Some(Halt::Ahead { reason, .. }) => Verdict::Halted(reason.clone()),
        }
    }

    /// Offset (wall - boot) that is believed, microseconds: see [`trusted_us`].
    pub fn believed_us(&self) -> i64 {
        self.offset_us
    }

    /// Halts: the clock stands at `seen_us`, `believed_us` is where it is thought to be.
    fn halt_ahead(&mut self, believed_us: i64, seen_us: i64, since: &str) {
        self.offset_us = believed_us;
        self.halted = Some(Halt::Ahead { reason: ahead(seen_us - believed_us, since), offset_us: seen_us });
    }

    /// The operator says that the clock is right.
    pub fn accept(&mut self) {
        if let Some(Halt::Ahead { offset_us, .. }) = self.halted {
            self.offset_us = offset_us;
        }
        self.halted = None;
        self.candidate_us = None;
    }
}

fn ahead(jump_us: i64, since: &str) -> String {
    format!(
        "the wall clock is {:.0} s ahead {since}; firing is halted: set the clock right, or say that it is right (`campanile system accept-clock`, POST /api/v1/cluster/clock/accept)",
        jump_us as f64 / 1e6
    )
}

fn wrong(off_us: i64) -> String {
    format!(
        "the wall clock is {:.0} s {} what most nodes of the cluster agree on; this node fires nothing and gives its shards away until its clock is set right (`campanile cluster members` shows all clocks)",
        off_us.abs() as f64 / 1e6,
        if off_us > 0 { "ahead of" } else { "behind" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;
    fn at(wall_s: i64, boot_s: i64) -> Reading {
        Reading { wall_us: wall_s * S, boot_us: (boot_s * S) as u64 }
    }

    #[test]
    fn steady_clock_runs_and_slew_is_followed() {
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        for n in 0..1000 {
            let r = Reading { wall_us: (1000 + n) * S + n * 400, boot_us: ((10 + n) * S) as u64 };
            assert_eq!(guard.tick(r), Verdict::Run);
        }
    }

    #[test]
    fn a_jump_pauses_until_two_ticks_agree() {
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        assert_eq!(guard.tick(at(1100, 11)), Verdict::Paused);
        assert_eq!(guard.tick(at(1101, 12)), Verdict::Run);
        // Backward too; two different jumps never agree.
        assert_eq!(guard.tick(at(1010, 13)), Verdict::Paused);
        assert_eq!(guard.tick(at(1050, 14)), Verdict::Paused);
        assert_eq!(guard.tick(at(1051, 15)), Verdict::Run);
    }

    #[test]
    fn a_long_forward_jump_halts_until_accepted_or_taken_back() {
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        guard.tick(at(4600, 11));
        assert!(matches!(guard.tick(at(4601, 12)), Verdict::Halted(_)));
        assert!(matches!(guard.tick(at(4602, 13)), Verdict::Halted(_)));
        guard.accept();
        assert_eq!(guard.tick(at(4603, 14)), Verdict::Run);
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        guard.tick(at(4600, 11));
        guard.tick(at(4601, 12));
        guard.tick(at(1003, 13));
        assert_eq!(guard.tick(at(1004, 14)), Verdict::Run);
    }

    #[test]
    fn time_goes_on_from_where_it_was_while_a_jump_is_not_believed() {
        let now = |guard: &ClockGuard, r: Reading| trusted_us(r, guard.believed_us()) / S;
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        assert_eq!(now(&guard, at(1001, 11)), 1001);
        // Seen before any tick, and until it is accepted.
        assert_eq!(now(&guard, at(9002, 12)), 1002);
        guard.tick(at(9003, 13));
        guard.tick(at(9004, 14));
        assert_eq!(now(&guard, at(9005, 15)), 1005);
        // Still far ahead after another jump: still not believed.
        guard.tick(at(8006, 16));
        assert!(matches!(guard.tick(at(8007, 17)), Verdict::Halted(_)));
        assert_eq!(now(&guard, at(8008, 18)), 1008);
        guard.accept();
        assert_eq!(now(&guard, at(8009, 19)), 8009);
        assert_eq!(guard.tick(at(8010, 20)), Verdict::Run);
        // From the start on: by the saved reading, or from the last time in the journal.
        let saved = Saved { boot_id: "b".into(), wall_us: 1000 * S, boot_us: 10 * S as u64 };
        let guard = ClockGuard::start(at(4620, 30), "b", Some(1000 * S), Some(&saved), 0);
        assert_eq!(now(&guard, at(4621, 31)), 1021);
        let guard = ClockGuard::start(at(315_360_000, 5), "c", Some(1000 * S), Some(&saved), 0);
        assert_eq!(now(&guard, at(315_360_002, 7)), 1002);
    }

    #[test]
    fn most_nodes_decide_at_once_what_is_believed() {
        let mut guard = ClockGuard::start(at(1000, 10), "b", None, None, 0);
        guard.agree(Some(990 * S));
        assert_eq!(guard.tick(at(1001, 11)), Verdict::Run);
        // Ahead or behind: not a tick is fired, and time goes on by the others' clocks.
        for wall_s in [1007, 907, 4602] {
            let wrong = at(wall_s, 12);
            assert!(matches!(guard.tick(wrong), Verdict::Halted(reason) if reason.contains("most nodes")), "{wall_s}");
            assert_eq!(trusted_us(wrong, guard.believed_us()), 1002 * S);
            assert_eq!(guard.tick(at(1003, 13)), Verdict::Run);
        }
        // All were set, by an hour: no operator is needed.
        guard.agree(Some(4_590 * S));
        assert_eq!(guard.tick(at(4_614, 24)), Verdict::Run);
        assert_eq!(trusted_us(at(4_614, 24), guard.believed_us()), 4_614 * S);
        // The others are gone: as a node alone, from where it was.
        guard.tick(at(4_625, 25));
        guard.agree(None);
        assert_eq!(guard.tick(at(4_626, 26)), Verdict::Paused);
        assert_eq!(guard.tick(at(4_627, 27)), Verdict::Run);
        // A reading of an earlier start that halts counts for less than the others.
        let saved = Saved { boot_id: "b".into(), wall_us: 1000 * S, boot_us: 10 * S as u64 };
        let mut guard = ClockGuard::start(at(4620, 30), "b", None, Some(&saved), 0);
        assert!(matches!(guard.tick(at(4621, 31)), Verdict::Halted(_)));
        guard.agree(Some(4590 * S));
        assert_eq!(guard.tick(at(4622, 32)), Verdict::Run);
    }

    #[test]
    fn start_is_held_against_the_journal_and_the_saved_reading() {
        // -90 s: waits until the clock has caught up.
        let mut guard = ClockGuard::start(at(1000, 10), "b", Some(1090 * S), None, 0);
        assert!(matches!(guard.tick(at(1001, 11)), Verdict::Halted(_)));
        assert_eq!(guard.tick(at(1090, 100)), Verdict::Run);
        // +1 h on the same boot.
        let saved = Saved { boot_id: "b".into(), wall_us: 1000 * S, boot_us: 10 * S as u64 };
        let mut guard = ClockGuard::start(at(4620, 30), "b", Some(1000 * S), Some(&saved), 0);
        assert!(matches!(guard.tick(at(4621, 31)), Verdict::Halted(_)));
        // Another boot a day later: fine. Ten years: halts.
        let mut guard = ClockGuard::start(at(87_400, 5), "c", Some(1000 * S), Some(&saved), 0);
        assert_eq!(guard.tick(at(87_401, 6)), Verdict::Run);
        let mut guard = ClockGuard::start(at(315_360_000, 5), "c", Some(1000 * S), Some(&saved), 0);
        assert!(matches!(guard.tick(at(315_360_001, 6)), Verdict::Halted(_)));
    }
}
