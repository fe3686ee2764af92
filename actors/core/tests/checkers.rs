//! The checkers turn red: histories that are right, spoiled in one place, are all found out.

use crate::support::{
    attempts, ledger, policy,
    sim::{Sim, Step},
};
use campanile_schema::{
    event::{Event, LedgerEntry, Next, Outcome, SkipReason},
    ids::Token,
    record::{AttemptState, RunState},
};
use std::sync::Arc;

type Check = fn(&[Step]) -> Result<(), String>;

/// Spoils the first event that `spoil` changes, in each of some histories; every one must be found out by `check`.
fn found_out(what: &str, check: Check, mut spoil: impl FnMut(&mut Event) -> bool) {
    found_out_in(what, check, |events| events.iter_mut().any(&mut spoil));
}

/// The same with a decision's events as a whole.
fn found_out_in(what: &str, check: Check, mut spoil: impl FnMut(&mut Vec<Event>) -> bool) {
    let mut spoiled = 0;
    for history in crate::support::fixed_histories(250) {
        let mut steps = Sim::run(&history, true).steps;
        check(&steps).unwrap();
        if steps.iter_mut().skip(1).any(|step| spoil(&mut step.events)) {
            spoiled += 1;
            assert!(check(&steps).is_err(), "{what} is not found out in {history:?}");
        }
    }
    assert!(spoiled >= 5, "{what} was tried in {spoiled} histories only");
}

/// Changes the entries of a cursor's move.
fn entries(change: impl Fn(&mut Vec<LedgerEntry>) -> bool) -> impl FnMut(&mut Event) -> bool {
    move |event| if let Event::CursorMoved { entries, .. } = event { change(entries) } else { false }
}

#[test]
fn the_ledgers_checker() {
    let check = ledger::check;
    found_out("an outcome that is forgotten", check, entries(|e| e.pop().is_some()));
    found_out("an outcome twice", check, entries(|e| e.first().cloned().map(|first| e.push(first)).is_some()));
    found_out("a count too high", check, entries(|e| e.last_mut().map(|e| e.count += 1).is_some()));
    found_out("a stretch that ends late", check, entries(|e| e.last_mut().map(|e| e.last_ms += 1000).is_some()));
    for untrue in [SkipReason::Window, SkipReason::Blackout] {
        let change = |entries: &mut Vec<LedgerEntry>| {
            let changed = entries.iter_mut().find(|e| e.reason.is_some_and(|reason| reason != untrue));
            changed.map(|e| e.reason = Some(untrue)).is_some()
        };
        found_out("a window that is open", check, entries(change));
    }
    found_out("an outcome that never was", check, |event| {
        let Event::CursorMoved { interval, entries, .. } = event else { return false };
        if !entries.is_empty() {
            return false;
        }
        let (at, reason) = (interval.to_ms, Some(SkipReason::Paused));
        entries.push(LedgerEntry { first_ms: at, last_ms: at, count: 1, outcome: Outcome::Skipped, reason, run: None });
        true
    });
    found_out("a cursor off by one", check, |event| {
        let Event::CursorMoved { interval, .. } = event else { return false };
        interval.from_ms += 1;
        true
    });
    found_out("another version", check, |event| {
        let Event::CursorMoved { interval, .. } = event else { return false };
        interval.version += 1;
        true
    });
    found_out("a run of another instant", check, |event| {
        let Event::RunCreated { interval: Some(interval), logical_ms, .. } = event else { return false };
        (interval.to_ms, *logical_ms) = (interval.to_ms + 1, Some(interval.to_ms + 1));
        true
    });
    found_out("a run before its time", check, |event| {
        let Event::RunCreated { interval: Some(interval), at_ms, .. } = event else { return false };
        *at_ms = interval.to_ms - 1;
        true
    });
    found_out("a late run that is not told so", check, |event| {
        let Event::RunCreated { interval: Some(interval), at_ms, late, .. } = event else { return false };
        let right = *late && *at_ms - interval.to_ms > 91_000;
        *late = false;
        right
    });
    found_out_in("an event that is lost", check, |events| {
        let moves = |e: &Event| matches!(e, Event::RunCreated { interval: Some(_), .. } | Event::CursorMoved { .. });
        let several = events.iter().filter(|e| moves(e)).count() > 1;
        let at = events.iter().position(moves).filter(|_| several);
        at.map(|at| events.remove(at)).is_some()
    });
    found_out_in("an instant that fired twice", check, |events| {
        let at = events.iter().position(|e| matches!(e, Event::RunCreated { interval: Some(_), .. }));
        at.map(|at| events.insert(at, events[at].clone())).is_some()
    });
}

#[test]
fn the_policies_checker() {
    let check = policy::check;
    for reason in [SkipReason::Quarantined, SkipReason::SystemPaused, SkipReason::CatchUpCap] {
        found_out(
            "an untrue reason",
            check,
            entries(|entries| {
                let changed = entries.iter_mut().find(|e| e.reason == Some(SkipReason::Paused));
                changed.map(|e| e.reason = Some(reason)).is_some()
            }),
        );
    }
    found_out("a run that is held in vain", check, |event| {
        let Event::RunCreated { held, .. } = event else { return false };
        *held = !*held;
        true
    });
    found_out_in("a second run let in", check, |events| {
        let skipped = |e: &Event| {
            let Event::CursorMoved { interval, entries, job } = e else { return None };
            let active = entries.iter().any(|e| e.reason == Some(SkipReason::RunActive));
            active.then(|| (*job, interval.clone()))
        };
        let Some((at, (job, interval))) = events.iter().enumerate().find_map(|(n, e)| skipped(e).map(|s| (n, s)))
        else {
            return false;
        };
        events[at] = Event::RunCreated {
            job,
            run: campanile_schema::ids::RunId(u64::MAX),
            source: campanile_schema::record::Source::Schedule,
            logical_ms: Some(interval.to_ms),
            key: None,
            params: None,
            reason: None,
            by: None,
            held: false,
            at_ms: interval.to_ms,
            interval: Some(interval),
            late: false,
            dag: None,
            depth: 0,
            marked: false,
            timeout_sec: None,
            backfill: None,
            budget: None,
        };
        true
    });
    found_out_in("a run that is let go on too early", check, |events| {
        let at = events.iter().position(|e| matches!(e, Event::RunReleased { .. }));
        let Some(at) = at.filter(|at| *at > 0) else { return false };
        events.swap(at, at - 1);
        matches!(events[at], Event::RunEnded { .. })
    });
}

#[test]
fn the_attempts_checker() {
    let check = attempts::check;
    let mut first = None;
    found_out("a token used twice", check, |event| {
        let Event::AttemptStarted { token, attempt, .. } = event else { return false };
        if *attempt == 1 {
            first = Some(*token);
            return false;
        }
        *token = first.unwrap();
        true
    });
    found_out("a token that does not rise", check, |event| {
        let Event::AttemptStarted { token, attempt, .. } = event else { return false };
        let right = *attempt > 1;
        if right {
            *token = Token(1);
        }
        right
    });
    found_out("an attempt number left out", check, |event| {
        let Event::AttemptStarted { attempt, .. } = event else { return false };
        *attempt += 1;
        true
    });
    found_out("a stale result that was taken", check, |event| {
        let Event::AttemptEnded { token, .. } = event else { return false };
        token.0 += 1;
        true
    });
    found_out("a retry without budget", check, |event| {
        let Event::AttemptEnded { state, next, .. } = event else { return false };
        *next = Next::Requeue;
        *state == AttemptState::Failed
    });
    found_out("a retry that waits too long", check, |event| {
        let Event::AttemptEnded { next: Next::RetryAt(at), .. } = event else { return false };
        *at += 100_000_000;
        true
    });
    found_out_in("a second outcome of one generation", check, |events| {
        let at = events.iter().position(|e| matches!(e, Event::RunEnded { .. }));
        at.map(|at| events.insert(at, events[at].clone())).is_some()
    });
    found_out("a generation that is not raised", check, |event| {
        let Event::RunReopened { record, .. } = event else { return false };
        Arc::make_mut(record).generation -= 1;
        true
    });
    found_out("a dead letter that is forgotten", check, |event| {
        let Event::RunEnded { record, .. } = event else { return false };
        std::mem::take(&mut Arc::make_mut(record).dead_letter)
    });
    found_out("another final state", check, |event| {
        let Event::RunEnded { record, .. } = event else { return false };
        // A person may have said either of a run that was asked about after its attempt.
        let ended_ms = record.ended_ms;
        let last = record.attempts.last().filter(|a| a.state == AttemptState::Failed && a.ended_ms == ended_ms);
        let right = record.state == RunState::Failed && last.is_some();
        if right {
            Arc::make_mut(record).state = RunState::Success;
        }
        right
    });
    found_out("a record that tells other attempts", check, |event| {
        let Event::RunEnded { record, .. } = event else { return false };
        Arc::make_mut(record).attempts.pop().is_some()
    });
}
