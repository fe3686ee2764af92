//! The leap second at the end of 2016. POSIX time has none: no instant is in second 60. Without slewing, a wall clock shows the last second
//! of the day twice, and nothing may fire twice because of it.

use crate::support::{
    judge,
    make::{cron, ms, plain},
    sim::Sim,
};
use campanile_core::{
    clock::{ClockGuard, Reading, Verdict},
    cron::{CronExpr, CronSchedule},
    job::Command,
};
use campanile_schema::{
    event::Event,
    job::{ConcurrencyPolicy, Dialect, Gap, Overlap},
    time::Timestamp,
};

const SECOND: i64 = 1_000;

/// The first instant after it.
fn midnight() -> i64 {
    ms("2017-01-01T00:00:00Z")
}

fn fires(expr: &str) -> Vec<i64> {
    let expr = CronExpr::parse(expr, Dialect::Unix, 0).unwrap().0;
    let schedule = CronSchedule::new(expr, "UTC", Gap::Shift, Overlap::First).unwrap();
    let (mut at, until) = (midnight() - 3 * SECOND, midnight() + SECOND);
    let next = || {
        at = schedule.next_occurrence(at, until)?.at_ms;
        Some(at - midnight())
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn no_instant_is_in_second_60() {
    assert_eq!(fires("* * * * * *"), [-2 * SECOND, -SECOND, 0, SECOND]);
    assert_eq!(fires("59 59 23 31 12 *"), [-SECOND]);
    let refused = CronExpr::parse("60 59 23 31 12 *", Dialect::Unix, 0).unwrap_err().to_string();
    assert!(refused.contains("60"), "{refused}");
    // A caller who writes it means the last second that there is.
    let written: Timestamp = "2016-12-31T23:59:60Z".parse().unwrap();
    assert_eq!(written.ms(), midnight() - SECOND);
}

#[test]
fn a_second_that_the_clock_shows_twice_fires_once() {
    let mut def = plain(cron("* * * * * *", "UTC"));
    def.concurrency = ConcurrencyPolicy::Allow;
    let mut sim = Sim::create(def, midnight() - 2_500, true);
    sim.pass(midnight() - 1);
    // The clock is set back by the second that was inserted.
    sim.now_ms = midnight() - SECOND;
    sim.command(&Command::Wake).unwrap();
    sim.pass(midnight() - 1);
    sim.pass(midnight() + SECOND);
    let made = |event: &Event| match event {
        Event::RunCreated { logical_ms, .. } => logical_ms.map(|at| at - midnight()),
        _ => None,
    };
    let runs: Vec<i64> = sim.events().filter_map(made).collect();
    assert_eq!(runs, [-2 * SECOND, -SECOND, 0, SECOND]);
    judge(&sim).unwrap();
}

#[test]
fn the_clock_guard_takes_the_step_and_follows_a_smear() {
    let start = Reading { wall_us: (midnight() - 10 * SECOND) * 1_000, boot_us: 10_000_000 };
    let at = |seconds: i64, step_us: i64| Reading {
        wall_us: start.wall_us + seconds * 1_000_000 - step_us,
        boot_us: start.boot_us + seconds as u64 * 1_000_000,
    };
    let mut guard = ClockGuard::start(start, "boot", None, None, 0);
    assert_eq!(guard.tick(at(9, 0)), Verdict::Run);
    // One tick of doubt, then it goes on, with nobody asked.
    assert_eq!(guard.tick(at(11, 1_000_000)), Verdict::Paused);
    assert_eq!(guard.tick(at(12, 1_000_000)), Verdict::Run);
    // Others spread the second over a day: no tick of doubt.
    let mut guard = ClockGuard::start(start, "boot", None, None, 0);
    for hour in 0..=24 {
        assert_eq!(guard.tick(at(hour * 3_600, hour * 1_000_000 / 24)), Verdict::Run, "hour {hour}");
    }
}
