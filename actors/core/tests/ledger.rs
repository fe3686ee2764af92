//! The fire ledger: over random histories (outages, crashes, pauses, edits, clock jumps, daylight saving, every policy), and
//! by examples that can be read. The rules are in `support::ledger` and `support::policy`.

use crate::support::{
    config, judge, ledger,
    make::{cron, every, ms, plain},
    ops::{Op, history},
    policy,
    sim::Sim,
};
use campanile_core::job::{Command, HeldTimes, decide};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, LedgerEntry},
    job::{ConcurrencyPolicy, Gap, MisfirePolicy, Overlap},
    record::AttemptState,
    stored::{StoredJob, StoredTrigger},
};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn every_due_instant_has_one_outcome(history in history()) {
        let sim = Sim::run(&history, true);
        prop_assert_eq!(ledger::check(&sim.steps), Ok(()));
        prop_assert_eq!(policy::check(&sim.steps), Ok(()));
    }
}

/// A plain afternoon.
const BASE: &str = "2026-06-15T12:00:00Z";

fn base() -> i64 {
    ms(BASE)
}

/// Every 60 s, first at 60 s, and an end of each run at once when `ends`.
fn sim_of(change: impl FnOnce(&mut StoredJob)) -> Sim {
    let mut def = plain(every(60, base()));
    def.concurrency = ConcurrencyPolicy::Allow;
    change(&mut def);
    Sim::create(def, base(), true)
}

fn outage(sim: &mut Sim, seconds: i64) {
    sim.now_ms += seconds * 1000;
    sim.settle();
}

/// Ends all runs that are queued.
fn work(sim: &mut Sim) {
    while sim.job.hot.runs.iter().any(|r| r.state() == campanile_schema::record::RunState::Queued) {
        sim.op(&Op::Start { pick: 0 });
        sim.op(&Op::Finish { pick: 0, state: AttemptState::Success });
    }
}

/// The ledger as text, seconds since `BASE`; checked first.
fn told(sim: &Sim) -> String {
    assert_eq!(judge(sim), Ok(()));
    let s = |at: i64| (at - base()) / 1000;
    let entry = |e: &LedgerEntry| {
        let reason = e.reason.map_or(String::new(), |r| format!("({r})"));
        let span = if e.count == 1 {
            s(e.first_ms).to_string()
        } else {
            format!("{}-{}x{}", s(e.first_ms), s(e.last_ms), e.count)
        };
        format!("{}{reason} {span}", e.outcome)
    };
    let mut lines = Vec::new();
    for event in sim.events() {
        if let Event::CursorMoved { entries, .. } = event {
            lines.extend(entries.iter().map(entry));
        }
        if let Event::RunCreated { logical_ms: Some(at), late, held, interval: Some(_), .. } = event {
            let (late, held) = (if *late { "_LATE" } else { "" }, if *held { " held" } else { "" });
            lines.push(format!("FIRED{late} {}{held}", s(*at)));
        }
    }
    lines.join(", ")
}

#[test]
fn within_the_threshold_each_instant_fires() {
    for misfire in MisfirePolicy::ALL {
        let mut sim = sim_of(|def| {
            def.misfire = *misfire;
            def.misfire_threshold_sec = 130;
        });
        outage(&mut sim, 190);
        assert_eq!(told(&sim), "FIRED_LATE 60, FIRED_LATE 120, FIRED_LATE 180");
    }
}

#[test]
fn skip_leaves_misfires_out() {
    let mut sim = sim_of(|def| def.misfire = MisfirePolicy::Skip);
    outage(&mut sim, 610);
    assert_eq!(told(&sim), "SKIPPED(MISFIRE) 60-540x9, FIRED_LATE 600");
}

#[test]
fn fire_once_now_carries_the_latest_missed_instant() {
    let mut sim = sim_of(|def| def.misfire = MisfirePolicy::FireOnceNow);
    outage(&mut sim, 610);
    sim.pass(base() + 660_000);
    assert_eq!(told(&sim), "COALESCED 60-540x9, FIRED_LATE 600, FIRED 660");
}

#[test]
fn fire_all_missed_goes_in_order_paced_and_capped() {
    let mut sim = sim_of(|def| {
        def.misfire = MisfirePolicy::FireAllMissed;
        def.max_catch_up = 9;
    });
    outage(&mut sim, 1_210);
    assert_eq!(sim.job.hot.runs.len(), 8, "one wake's share");
    sim.pass(sim.now_ms + 70);
    assert_eq!(sim.job.hot.runs.len(), 8);
    sim.pass(sim.now_ms + 100);
    let fired: Vec<String> = (11..=20).map(|n| format!("FIRED_LATE {}", n * 60)).collect();
    assert_eq!(told(&sim), format!("MISSED(CATCH_UP_CAP) 60-600x10, {}", fired.join(", ")));
}

#[test]
fn fire_all_missed_waits_for_the_active_run_unless_allow() {
    let mut sim = sim_of(|def| {
        def.misfire = MisfirePolicy::FireAllMissed;
        def.concurrency = ConcurrencyPolicy::Forbid;
    });
    outage(&mut sim, 250);
    sim.pass(sim.now_ms + 3_000);
    assert_eq!(told(&sim), "FIRED_LATE 60");
    for _ in 0..3 {
        work(&mut sim);
        sim.pass(sim.now_ms + 1_000);
    }
    assert_eq!(told(&sim), "FIRED_LATE 60, FIRED_LATE 120, FIRED_LATE 180, SKIPPED(RUN_ACTIVE) 240");
}

#[test]
fn concurrency_policies() {
    let played = |policy: ConcurrencyPolicy| {
        let mut sim = sim_of(|def| def.concurrency = policy);
        sim.pass(base() + 60_000);
        sim.op(&Op::Start { pick: 0 });
        sim.pass(base() + 185_000);
        sim.op(&Op::Finish { pick: 0, state: AttemptState::Canceled });
        sim.pass(base() + 190_000);
        let waiting: Vec<i64> =
            sim.job.hot.runs.iter().map(|r| (r.record.logical_ms.unwrap() - base()) / 1000).collect();
        (told(&sim), waiting)
    };
    assert_eq!(played(ConcurrencyPolicy::Allow), ("FIRED 60, FIRED 120, FIRED 180".to_owned(), vec![60, 120, 180]));
    let (forbid, _) = played(ConcurrencyPolicy::Forbid);
    assert_eq!(forbid, "FIRED 60, SKIPPED(RUN_ACTIVE) 120, SKIPPED(RUN_ACTIVE) 180");
    let (queue_one, _) = played(ConcurrencyPolicy::QueueOne);
    assert_eq!(queue_one, "FIRED 60, FIRED 120 held, SKIPPED(ONE_QUEUED) 180");
    let (replace, waiting) = played(ConcurrencyPolicy::Replace);
    assert_eq!((replace.as_str(), waiting), ("FIRED 60, FIRED 120 held, FIRED 180 held", vec![180]));
}

/// A full queue, a paused tenant: every instant is told, none fires, and the job does not spin.
#[test]
fn a_fixed_delay_begins_again_after_a_skip() {
    let delay = |def: &mut StoredJob| def.trigger = StoredTrigger::FixedDelay { every_ms: 30_000 };
    for on in [Op::QueueFull { on: true }, Op::TenantPause { on: true }] {
        let mut sim = sim_of(delay);
        sim.op(&on);
        sim.pass(base() + 65_000);
        let steps = sim.steps.len();
        assert!(steps < 6, "{steps} decisions for two instants");
        let reason = if matches!(on, Op::QueueFull { .. }) { "QUEUE_FULL" } else { "TENANT_PAUSED" };
        assert_eq!(told(&sim), format!("SKIPPED({reason}) 30, SKIPPED({reason}) 60"));
    }
    // One instant, however long the outage; then the end of the run counts.
    for (misfire, told_then) in [
        (MisfirePolicy::FireOnceNow, "FIRED_LATE 30, FIRED 3635"),
        (MisfirePolicy::FireAllMissed, "FIRED_LATE 30, FIRED 3635"),
        (MisfirePolicy::Skip, "SKIPPED(MISFIRE) 30, FIRED 3630"),
    ] {
        let mut sim = sim_of(|def| {
            delay(def);
            def.misfire = misfire;
        });
        outage(&mut sim, 3_600);
        sim.pass(sim.now_ms + 5_000);
        work(&mut sim);
        sim.pass(sim.now_ms + 31_000);
        assert_eq!(told(&sim), told_then, "{misfire}");
    }
}

#[test]
fn a_fixed_delay_outlives_a_clock_that_is_put_back() {
    let mut sim = sim_of(|def| def.trigger = StoredTrigger::FixedDelay { every_ms: 30_000 });
    sim.pass(base() + 31_000);
    sim.now_ms -= 100_000;
    work(&mut sim);
    sim.pass(base() + 70_000);
    assert_eq!(told(&sim), "FIRED 30, FIRED 60");
}

#[test]
fn jitter_keeps_the_order_and_makes_no_misfire() {
    for misfire in MisfirePolicy::ALL {
        let mut sim = sim_of(|def| {
            (def.jitter_sec, def.misfire, def.misfire_threshold_sec) = (3_600, *misfire, 1);
        });
        sim.pass(base() + 3_600_000);
        let told = told(&sim);
        let fired = told.matches("FIRED").count();
        assert!(fired >= 59, "{misfire}: {told}");
        assert!(!told.contains("MISFIRE"), "{misfire}: {told}");
        assert!(!told.contains("LATE"), "{misfire}: {told}");
    }
}

#[test]
fn daylight_saving_is_in_the_ledger_whatever_happens_there() {
    // 02:00 to 02:59 does not exist on 29 March in Berlin: 60 instants become one, at the gap's end.
    let at = |text: &str| (ms(text) - base()) / 1000;
    let job = |gap: Gap, overlap: Overlap| {
        let mut def = plain(cron("0-59 2 * * *", "Europe/Berlin"));
        if let StoredTrigger::Cron { gap: g, overlap: o, .. } = &mut def.trigger {
            (*g, *o) = (gap, overlap);
        }
        def
    };
    let gone = at("2026-03-29T01:00:00Z");
    let (before, after) = ("2026-03-29T00:30:00Z", "2026-03-29T03:00:00Z");
    let mut paused = Sim::create(job(Gap::Skip, Overlap::First), ms(before), true);
    paused.op(&Op::Pause);
    paused.pass(ms(after));
    paused.op(&Op::Resume);
    assert_eq!(told(&paused), format!("DST_SKIPPED {gone}"));

    // 02:00 to 02:59 comes twice on 25 October; an outage over both.
    let (first, second) = (at("2026-10-25T00:00:00Z"), at("2026-10-25T01:00:00Z"));
    for (overlap, gone, kept) in [(Overlap::First, second, first), (Overlap::Second, first, second)] {
        let mut sim = Sim::create(job(Gap::Shift, overlap), ms("2026-10-24T20:00:00Z"), true);
        sim.now_ms = ms("2026-10-25T05:00:00Z");
        sim.settle();
        let (coalesced, dst) = (
            format!("COALESCED {kept}-{}x59, FIRED_LATE {}", kept + 58 * 60, kept + 59 * 60),
            format!("DST_SKIPPED {gone}-{}x60", gone + 59 * 60),
        );
        if overlap == Overlap::First {
            // The hour that falls away comes later: with the next instant, or with a pause.
            assert_eq!(told(&sim), coalesced);
            sim.op(&Op::Pause);
            assert_eq!(told(&sim), format!("{coalesced}, {dst}"));
        } else {
            assert_eq!(told(&sim), format!("{dst}, {coalesced}"));
        }
    }
}

#[test]
fn a_once_fires_once() {
    let once = |offset: i64| StoredTrigger::Once { at_ms: base() + offset };
    let mut sim = sim_of(|def| def.trigger = once(-5_000));
    sim.pass(base() + 100_000);
    work(&mut sim);
    for stale in [false, true, false] {
        let def = Box::new((*sim.job.def).clone());
        sim.op(&Op::Replace { def, stale });
        sim.pass(sim.now_ms + 100_000);
    }
    assert_eq!(told(&sim), "FIRED_LATE -5");
    // An edit to an instant that has passed would never fire: refused, not silent. A later one fires.
    let mut replaced = (*sim.job.def).clone();
    let now = sim.now_ms - base();
    for (offset, taken) in [(now - 1, false), (now, false), (now + 5_000, true)] {
        replaced.trigger = once(offset);
        let version = sim.job.hot.version;
        let result = sim.command(&Command::Replace { version, spec: Box::new(replaced.clone()) });
        assert_eq!(result.is_ok(), taken, "{offset}");
    }
    sim.pass(sim.now_ms + 10_000);
    assert_eq!(told(&sim), format!("FIRED_LATE -5, FIRED {}", (now + 5_000) / 1000));
}

#[test]
fn edits_and_pauses_close_their_stretch() {
    let mut sim = sim_of(|_| {});
    sim.pass(base() + 65_000);
    sim.op(&Op::Pause);
    sim.pass(base() + 305_000);
    let mut def = (*sim.job.def).clone();
    def.trigger = every(100, base());
    sim.op(&Op::Replace { def: Box::new(def), stale: false });
    sim.pass(base() + 450_000);
    sim.op(&Op::Resume);
    sim.pass(base() + 500_000);
    sim.op(&Op::Quarantine);
    sim.pass(base() + 700_500);
    sim.op(&Op::Pause);
    sim.pass(base() + 800_500);
    sim.op(&Op::Delete);
    assert_eq!(
        told(&sim),
        "FIRED 60, SKIPPED(PAUSED) 120-300x4, SKIPPED(PAUSED) 400, FIRED 500, SKIPPED(QUARANTINED) 600-700x2, \
         SKIPPED(QUARANTINED) 800"
    );
}

/// Time in which the node held instants back itself does not count to the misfire threshold, and other time does.
#[test]
fn what_the_node_held_back_itself_is_no_misfire() {
    let told_after = |held_from: i64, held_to: i64| {
        let mut sim = sim_of(|def| (def.misfire, def.misfire_threshold_sec) = (MisfirePolicy::Skip, 60));
        sim.now_ms = base() + 190_500;
        let mut context = sim.context(Command::Wake.ids_wanted());
        let mut held = HeldTimes::default();
        held.look(true, base() + held_from);
        held.look(false, base() + held_to);
        context.held = Some(Arc::new(held));
        let decision = decide(&sim.job, &Command::Wake, &context).unwrap();
        let skipped = decision.events.iter().filter(|event| matches!(event, Event::CursorMoved { .. })).count();
        let fired = decision.events.iter().filter(|event| matches!(event, Event::RunCreated { .. })).count();
        (skipped, fired)
    };
    let (skipped, fired) = told_after(0, 1);
    assert!(skipped > 0, "an outage is no backlog");
    let (none, all) = told_after(0, 190_000);
    assert_eq!(none, 0, "the node held all of them back");
    assert!(all > fired, "{all} runs, and {fired} of what was no misfire anyway");
}

/// The node's own backlog skips nothing: the instant waits undecided, its retries do not, and it fires late.
#[test]
fn an_overloaded_node_decides_no_instant_and_skips_none() {
    let mut sim = sim_of(|_| {});
    sim.now_ms = base() + 190_000;
    let mut context = sim.context(Command::Wake.ids_wanted());
    context.overloaded = true;
    let waits = decide(&sim.job, &Command::Wake, &context).unwrap();
    assert!(waits.events.is_empty(), "{waits:?}");
    for command in [
        Command::Pause { reason: None },
        Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None },
    ] {
        context.ids.count = command.ids_wanted();
        let refused = decide(&sim.job, &command, &context).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Overloaded, "{command:?}");
    }
    sim.settle();
    work(&mut sim);
    assert!(!told(&sim).contains("SKIPPED"), "{}", told(&sim));
    assert!(told(&sim).contains("FIRED_LATE"), "{}", told(&sim));
}
