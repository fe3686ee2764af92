//! Wall clocks that are wrong when a node starts, or jump while it runs: no storm, nothing early, nothing twice, and words
//! that say what to do.
use super::{
    program::{Dev, Line, eventually, run},
    support::now_ms,
};
use serde_json::json;
use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600_000;
const TEN_YEARS: i64 = 315_360_000_000;
/// Long enough for two instants of a job that is due every second.
const WATCHED: Duration = Duration::from_millis(2_200);

/// A directory of a node whose clock is set from here.
struct World {
    dir: tempfile::TempDir,
    offset: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let offset = dir.path().join("offset");
        fs::write(&offset, "0").unwrap();
        Self { dir, offset }
    }

    /// The node's wall clock is off by so many milliseconds from now on.
    fn set(&self, offset_ms: i64) {
        let new = self.offset.with_extension("new");
        fs::write(&new, offset_ms.to_string()).unwrap();
        fs::rename(new, &self.offset).unwrap();
    }

    fn start(&self) -> Dev {
        let offset = self.offset.to_str().unwrap();
        Dev::start_with(self.dir.path(), &["--no-demo"], &[("CAMPANILE_CLOCK_OFFSET_MS", offset)])
    }

    /// A node with a right clock that has fired, then stopped.
    fn fired_and_stopped() -> Self {
        let world = Self::new();
        let dev = world.start();
        every_second(&dev, "tick");
        eventually("a fire", || (fires(&dev, "tick") > 0).then_some(()));
        assert_eq!(dev.stop(), 0);
        world
    }

    /// As if the machine had been started anew since.
    fn another_boot(&self) {
        let path = self.dir.path().join("node/CLOCK");
        let mut saved: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        saved["boot_id"] = "another".into();
        fs::write(path, saved.to_string()).unwrap();
    }

    fn is_whole(&self) {
        let checked = run(&["store", "check", self.dir.path().join("node").to_str().unwrap()]).ok();
        assert!(checked.ends_with("whole\n"), "{checked}");
    }
}

fn every_second(dev: &Dev, name: &str) {
    let spec = json!({"name": name, "trigger": {"type": "FIXED_RATE", "everySec": 1}, "concurrencyPolicy": "ALLOW",
        "action": {"kind": "COMMAND", "command": ["/bin/true"]}});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
    assert_eq!(status, 201, "{made}");
}

fn view(dev: &Dev, name: &str) -> serde_json::Value {
    dev.run(&["job", "get", name, "-o", "json"]).json()
}

fn fires(dev: &Dev, name: &str) -> u64 {
    view(dev, name)["runCount"].as_u64().unwrap()
}

/// The only reason why the node is not ready.
fn halted(dev: &Dev) -> String {
    // Until two readings agree it is only paused.
    let is_halt = |reasons: &Vec<String>| reasons.iter().any(|reason| !reason.contains("two readings"));
    let mut reasons = eventually("firing is halted", || Some(dev.not_ready()).filter(is_halt));
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.pop().unwrap()
}

fn nothing_fires(dev: &Dev, name: &str) {
    let before = fires(dev, name);
    let began = Instant::now();
    while began.elapsed() < WATCHED {
        assert_eq!(fires(dev, name), before);
    }
    assert!(!dev.not_ready().is_empty());
}

/// Every instant once; each run of one that a run carries. Gives the lines.
fn whole(dev: &Dev, name: &str) -> Vec<Line> {
    let lines = dev.ledger(name);
    assert!(lines.windows(2).all(|pair| pair[1].at_ms - pair[0].at_ms == SECOND), "{lines:?}");
    lines
}

fn with_outcome(lines: &[Line], outcomes: &[&str]) -> usize {
    lines.iter().filter(|line| outcomes.contains(&line.outcome.as_str())).count()
}

fn goes_on(dev: &Dev, name: &str) {
    eventually("it is ready", || dev.not_ready().is_empty().then_some(()));
    let before = fires(dev, name);
    eventually("it fires", || (fires(dev, name) >= before + 2).then_some(()));
}

#[test]
fn an_hour_ahead_holds_until_a_person_agrees_and_makes_no_storm() {
    let world = World::fired_and_stopped();
    world.set(HOUR);
    let dev = world.start();
    let reason = halted(&dev);
    assert!(reason.contains("ahead"), "{reason}");
    assert!(reason.contains("campanile system accept-clock"), "{reason}");
    nothing_fires(&dev, "tick");
    let told = dev.run(&["system", "info", "-o", "json"]).json();
    assert_eq!((&told["ready"], &told["notReadyReasons"][0]), (&false.into(), &reason.as_str().into()));
    // Doing what it says helps. The hour that nobody lived through is one run, not thousands.
    dev.run(&["system", "accept-clock", "--reason", "it is right"]).ok();
    goes_on(&dev, "tick");
    let lines = whole(&dev, "tick");
    assert!(with_outcome(&lines, &["COALESCED"]) > 3_400, "{} lines", lines.len());
    let fired = with_outcome(&lines, &["FIRED", "FIRED_LATE"]) as u64;
    assert!(fired <= fires(&dev, "tick"), "{fired}");
    assert!(fired < 100, "{fired}");
    assert_eq!(dev.stop(), 0);
    // From here on this is the clock that is known.
    goes_on(&world.start(), "tick");
    world.another_boot();
    world.set(2 * HOUR);
    // An hour between two boots is a machine that was off: nobody is asked.
    let dev = world.start();
    goes_on(&dev, "tick");
    assert!(with_outcome(&whole(&dev, "tick"), &["COALESCED"]) > 6_800);
}

#[test]
fn ten_years_ahead_leave_no_trace_when_the_clock_is_right_again() {
    let world = World::fired_and_stopped();
    world.set(TEN_YEARS);
    for boot in ["the same boot", "another boot"] {
        if boot == "another boot" {
            world.another_boot();
        }
        let dev = world.start();
        assert!(halted(&dev).contains(if boot == "another boot" { "journal" } else { "this boot" }));
        nothing_fires(&dev, "tick");
        // Calls are taken, at the time that the node had before.
        let name = boot.replace(' ', "-");
        every_second(&dev, &name);
        let made = view(&dev, &name)["createdAt"].as_str().unwrap().to_owned();
        let made = made.parse::<campanile_schema::time::Timestamp>().unwrap().ms();
        assert!((made - now_ms()).abs() < HOUR, "made {} s from now", (made - now_ms()) / SECOND);
        assert_eq!(dev.stop(), 0);
    }
    let dev = world.start();
    halted(&dev);
    // While it runs, and at a start: nothing waits for the year that never came.
    world.set(0);
    for name in ["tick", "the-same-boot", "another-boot"] {
        goes_on(&dev, name);
    }
    assert_eq!(dev.stop(), 0);
    world.is_whole();
    let dev = world.start();
    for name in ["tick", "the-same-boot", "another-boot"] {
        goes_on(&dev, name);
        assert!(whole(&dev, name).last().unwrap().at_ms <= now_ms(), "early");
    }
}

#[test]
fn behind_the_journal_waits_until_the_clock_has_caught_up() {
    let world = World::fired_and_stopped();
    world.set(-90 * SECOND);
    let dev = world.start();
    let reason = halted(&dev);
    assert!(reason.contains("behind the last time in the journal"), "{reason}");
    assert!(reason.contains("set the clock"), "{reason}");
    nothing_fires(&dev, "tick");
    let lines = dev.ledger("tick").len();
    world.set(0);
    goes_on(&dev, "tick");
    let after = whole(&dev, "tick");
    assert!(after.len() > lines, "early: {after:?}");
    assert!(after.last().unwrap().at_ms <= now_ms(), "early: {after:?}");
}

#[test]
fn jumps_while_it_runs() {
    let world = World::new();
    let dev = world.start();
    every_second(&dev, "tick");
    goes_on(&dev, "tick");
    // Small ones are followed; back again, the instants that were decided are not decided twice.
    world.set(5 * SECOND);
    goes_on(&dev, "tick");
    world.set(0);
    goes_on(&dev, "tick");
    let lines = whole(&dev, "tick");
    assert_eq!(with_outcome(&lines, &["FIRED", "FIRED_LATE"]), lines.len(), "{lines:?}");
    // A large one holds, and ends by itself when it is taken back.
    world.set(HOUR);
    assert!(halted(&dev).contains("ahead"));
    nothing_fires(&dev, "tick");
    world.set(0);
    goes_on(&dev, "tick");
    let lines = whole(&dev, "tick");
    assert_eq!(with_outcome(&lines, &["FIRED", "FIRED_LATE"]), lines.len(), "{lines:?}");
    assert!(lines.last().unwrap().at_ms <= now_ms(), "early: {lines:?}");
}
