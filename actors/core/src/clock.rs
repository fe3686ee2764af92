//! The clock guard: firing follows the wall clock, but a wall clock may jump. Each tick compares it with a clock that does
//! not (CLOCK_BOOTTIME, which counts suspend). Pure: readings are arguments.
//!
//! - A jump of more than 500 ms pauses firing until two ticks agree on the new offset.
//! - A forward jump of more than ten minutes halts firing until somebody agrees (operator; later a peer or the store).
//! - At start the wall clock is held against the last time in the journal (and, on the same boot, against a saved reading).

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

/// A reading saved by an earlier start.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Saved {
    pub boot_id: String,
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
}

#[derive(Clone, Debug)]
enum Halt {
    /// Ends when the wall clock passes this.
    Behind {
        until_us: i64,
    },
    Ahead {
        reason: String,
    },
}

fn offset(r: Reading) -> i64 {
    r.wall_us.saturating_sub_unsigned(r.boot_us)
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
        let mut guard = Self { offset_us: offset(now), candidate_us: None, halted: None, forward_halt_us };
        if let Some(saved) = saved.filter(|s| s.boot_id == boot_id) {
            let before = offset(Reading { wall_us: saved.wall_us, boot_us: saved.boot_us });
            if guard.offset_us - before > forward_halt_us {
                guard.halted = Some(ahead(guard.offset_us - before, "since the last start on this boot"));
            }
        }
        if let Some(last) = last_us {
            if now.wall_us < last {
                guard.halted = Some(Halt::Behind { until_us: last });
            } else if now.wall_us - last > AHEAD_US
                && guard.halted.is_none()
                && saved.is_none_or(|s| s.boot_id != boot_id)
            {
                guard.halted = Some(ahead(now.wall_us - last, "of the last time in the journal"));
            }
        }
        guard
    }

    /// Looks at the clocks; call it every tick.
    pub fn tick(&mut self, now: Reading) -> Verdict {
        let seen = offset(now);
        let jump = seen - self.offset_us;
        if jump.abs() > PAUSE_US {
            let agreed = self.candidate_us.is_some_and(|c| (seen - c).abs() <= PAUSE_US);
            if !agreed {
                self.candidate_us = Some(seen);
                return Verdict::Paused;
            }
            self.candidate_us = None;
            self.offset_us = seen;
            if jump > self.forward_halt_us {
                self.halted = Some(ahead(jump, "while running"));
            } else if jump < 0 && matches!(self.halted, Some(Halt::Ahead { .. })) {
                // It came back by itself.
                self.halted = None;
            }
        } else {
            self.candidate_us = None;
            // Slewing (NTP) is followed.
            self.offset_us = seen;
        }
        match &self.halted {
            None => Verdict::Run,
            Some(Halt::Behind { until_us }) if now.wall_us >= *until_us => {
                self.halted = None;
                Verdict::Run
            }
            Some(Halt::Behind { until_us }) => Verdict::Halted(format!(
                "the wall clock is {:.1} s behind the last time in the journal; firing starts when it has caught up, or set the clock",
                (until_us - now.wall_us) as f64 / 1e6
            )),
            Some(Halt::Ahead { reason }) => Verdict::Halted(reason.clone()),
        }
    }

    /// The operator says that the clock is right.
    pub fn accept(&mut self) {
        self.halted = None;
        self.candidate_us = None;
    }
}

fn ahead(jump_us: i64, since: &str) -> Halt {
    Halt::Ahead {
        reason: format!(
            "the wall clock jumped {:.0} s forward {since}; firing is halted until the clock is set back or an operator accepts it (`campanile system accept-clock`, POST /api/v1/cluster/clock/accept)",
            jump_us as f64 / 1e6
        ),
    }
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
