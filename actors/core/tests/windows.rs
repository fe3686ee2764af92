//! Windows and blackouts in the schedule, against looking at each instant of the trigger and asking the civil clock; what jitter and fixed
//! delays do with them; and what is refused. Each clause is broken once, and that is seen.

use crate::support::{
    civil::{closed, windows},
    config,
    make::{cron, every, job_id, ms, plain},
};
use campanile_core::{
    cron::{CronExpr, CronSchedule, OccurrenceKind},
    job::apply::created,
    schedule::{RemovedBy, RemovedStretch, Schedule},
    spec::resolve,
    windows::rules::{Rule, break_rule},
};
use campanile_schema::{
    error::ErrorCode,
    event::SkipReason,
    job::{Dialect, Gap, JobSpec, Overlap, Trigger},
    stored::{StoredBlackout, StoredJob, StoredTrigger, StoredWindow, StoredWindows},
};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{TestCaseError, TestRunner},
};
use serde_json::json;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// A job with windows, and the stretch of its time that is looked at.
#[derive(Clone, Debug)]
struct Case {
    def: StoredJob,
    from_ms: i64,
    until_ms: i64,
    keep: u64,
}

const EXPRESSIONS: [&str; 8] = [
    "*/10 * * * *",
    "0 * * * *",
    "0,30 0-23 * * *",
    "15 2 * * *",
    "0 0,1,2,3 * * *",
    "0-59 2 * * *",
    "59 8,16,17,23 * * *",
    "0 9,17 * * *",
];

fn case() -> impl Strategy<Value = Case> {
    let base =
        select(vec!["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-06-15T11:59:58Z", "2011-12-29T20:00:00Z"]);
    base.prop_flat_map(|base| {
        let base_ms = ms(base);
        let zone = select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]);
        let by_cron = (select(&EXPRESSIONS[..]), zone, select(Gap::ALL), select(Overlap::ALL)).prop_map(
            |(expr, zone, gap, overlap)| StoredTrigger::Cron {
                expr: expr.into(),
                dialect: Dialect::Unix,
                zone: zone.into(),
                gap,
                overlap,
            },
        );
        let by_rate = (select(vec![420, 3_600, 7_200]), 0i64..3_600_000)
            .prop_map(move |(seconds, offset)| every(seconds, base_ms - 9 * DAY + offset));
        let trigger = prop_oneof![3 => by_cron, 1 => by_rate];
        (trigger, windows(base_ms), -3 * DAY..3 * DAY, 1i64..12 * 24, 0u64..30).prop_map(
            move |(trigger, windows, offset, hours, keep)| {
                let mut def = plain(trigger);
                def.windows = Some(Box::new(windows));
                let from_ms = base_ms + offset;
                Case { def, from_ms, until_ms: from_ms + hours * HOUR, keep }
            },
        )
    })
}

/// Every instant of the trigger, and what takes it away.
fn instants(case: &Case) -> Vec<(i64, Option<RemovedBy>)> {
    let windows = case.def.windows.as_deref().unwrap();
    let removed = |at_ms: i64| closed(windows, at_ms).map(RemovedBy::Reason);
    let (mut found, mut after) = (Vec::new(), case.from_ms);
    match &case.def.trigger {
        StoredTrigger::Cron { expr, dialect, zone, gap, overlap } => {
            let cron = CronSchedule::new(CronExpr::parse(expr, *dialect, 0).unwrap().0, zone, *gap, *overlap).unwrap();
            while let Some(next) = cron.next_occurrence(after, case.until_ms) {
                after = next.at_ms;
                let by = match next.kind {
                    OccurrenceKind::Fire => removed(after),
                    OccurrenceKind::DstSkipped => Some(RemovedBy::DaylightSaving),
                };
                found.push((after, by));
            }
        }
        StoredTrigger::FixedRate { every_ms, anchor_ms } => {
            let mut at = *anchor_ms;
            while at <= case.until_ms {
                if at > after {
                    found.push((at, removed(at)));
                }
                at += every_ms;
            }
        }
        other => panic!("{other:?}"),
    }
    found
}

/// Neighbours that one cause took away, as one stretch.
fn stretches(instants: &[(i64, Option<RemovedBy>)]) -> Vec<RemovedStretch> {
    let mut found: Vec<RemovedStretch> = Vec::new();
    let mut before = None;
    for (at, by) in instants {
        if let Some(by) = *by {
            match found.last_mut().filter(|_| before == Some(by)) {
                Some(last) => (last.last_ms, last.count) = (*at, last.count + 1),
                None => found.push(RemovedStretch { first_ms: *at, last_ms: *at, count: 1, by }),
            }
        }
        before = *by;
    }
    found
}

fn judge(case: &Case) -> Result<(), TestCaseError> {
    let Case { def, from_ms, until_ms, keep } = case;
    let schedule = Schedule::compile(def).unwrap();
    let instants = instants(case);
    let open: Vec<i64> = instants.iter().filter(|(_, by)| by.is_none()).map(|(at, _)| *at).collect();
    prop_assert_eq!(schedule.removed(*from_ms, *until_ms), stretches(&instants));
    prop_assert_eq!(schedule.count(*from_ms, *until_ms, None), open.len() as u64);
    prop_assert_eq!(schedule.next(*from_ms, None).filter(|at| at <= until_ms), open.first().copied());
    prop_assert_eq!(schedule.last(*from_ms, *until_ms, None), open.last().copied());
    let upto = schedule.drop_before(*from_ms, *until_ms, *keep, None);
    prop_assert_eq!(open.iter().filter(|at| **at > upto).count() as u64, *keep.min(&(open.len() as u64)));
    jitter_stays(def, &open)
}

/// Whatever jitter does with an instant, the run begins in its window and before the next instant.
fn jitter_stays(def: &StoredJob, open: &[i64]) -> Result<(), TestCaseError> {
    let windows = def.windows.as_deref().unwrap();
    let job = created(job_id(), StoredJob { jitter_sec: 7_200, ..def.clone() }, ms("2011-01-01T00:00:00Z"));
    for (n, at) in open.iter().enumerate().take(12) {
        let starts = job.due_with_jitter(*at);
        prop_assert!((*at..*at + 7_200_000).contains(&starts));
        prop_assert!(open.get(n + 1).is_none_or(|next| starts < *next));
        let between = (*at..=starts).step_by(60_000).chain([starts]);
        prop_assert_eq!(between.filter(|at| closed(windows, *at).is_some()).count(), 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn the_schedule_agrees_with_looking_at_each_instant(case in case()) {
        judge(&case)?;
    }
}

fn window(days: u8, from: u16, to: u16) -> StoredWindow {
    StoredWindow { deny: false, days, from, to, zone: "Europe/Berlin".into() }
}

fn with(trigger: StoredTrigger, windows: Vec<StoredWindow>, blackouts: &[(&str, &str)]) -> StoredJob {
    let blackouts =
        blackouts.iter().map(|(from, to)| StoredBlackout { from_ms: ms(from), to_ms: ms(to), reason: None });
    let mut def = plain(trigger);
    def.windows = Some(Box::new(StoredWindows { windows, blackouts: blackouts.collect() }));
    def
}

/// The first moment at or after `due` at which a fixed delay may be due, looked for minute by minute.
fn delay_waits() -> bool {
    let def = with(StoredTrigger::FixedDelay { every_ms: 600_000 }, vec![window(0x1f, 540, 1_020)], &[]);
    let schedule = Schedule::compile(&def).unwrap();
    let windows = def.windows.as_deref().unwrap();
    ["2026-02-02T15:45:00Z", "2026-02-02T15:55:30Z", "2026-02-06T15:50:00Z", "2026-03-28T12:00:00Z"].iter().all(
        |base| {
            let base_ms = ms(base);
            let due = base_ms + 600_000;
            let mut opening = due;
            while closed(windows, opening).is_some() {
                opening = (opening / 60_000 + 1) * 60_000;
            }
            schedule.next(base_ms, Some(base_ms)) == Some(opening)
                && schedule.count(base_ms, opening, Some(base_ms)) == 1
                && schedule.count(base_ms, opening - 1, Some(base_ms)) == 0
                && schedule.removed(base_ms, opening).is_empty()
        },
    )
}

#[test]
fn a_fixed_delay_waits_for_the_opening() {
    assert!(delay_waits());
}

#[test]
fn each_clause_that_is_broken_is_found() {
    let mut runner = TestRunner::new(config(1));
    let cases: Vec<Case> = (0..400).map(|_| case().new_tree(&mut runner).unwrap().current()).collect();
    let shows = || !delay_waits() || cases.iter().any(|case| judge(case).is_err());
    assert!(!shows(), "the clauses are kept");
    for rule in Rule::ALL {
        break_rule(Some(rule));
        let found = shows();
        break_rule(None);
        assert!(found, "{rule:?} is broken, and nothing shows it");
    }
}

/// One instant in the hour that an autumn night has twice, in a window that ends between the two.
#[test]
fn both_hours_of_an_overlap_are_in_a_window_that_names_the_hour() {
    let def = with(cron("*/30 * * * *", "UTC"), vec![window(0x7f, 120, 180)], &[]);
    let schedule = Schedule::compile(&def).unwrap();
    let (from, to) = (ms("2026-10-24T22:00:00Z"), ms("2026-10-25T06:00:00Z"));
    let mut found = Vec::new();
    let mut at = from;
    while let Some(next) = schedule.next(at, None).filter(|next| *next <= to) {
        found.push(next);
        at = next;
    }
    let wanted = ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"];
    assert_eq!(found, wanted.map(ms));
    // In spring there is no such hour.
    let (from, to) = (ms("2026-03-28T22:00:00Z"), ms("2026-03-29T22:00:00Z"));
    assert_eq!(schedule.count(from, to, None), 0);
}

#[test]
fn a_blackout_is_named_before_the_window_it_lies_in() {
    let blackout = [("2026-02-02T10:00:00Z", "2026-02-02T12:00:00Z")];
    let schedule = Schedule::compile(&with(cron("0 * * * *", "UTC"), vec![window(0x1f, 540, 720)], &blackout)).unwrap();
    let told: Vec<_> = schedule
        .removed(ms("2026-02-02T07:00:00Z"), ms("2026-02-02T13:00:00Z"))
        .iter()
        .map(|stretch| (stretch.first_ms, stretch.count, stretch.by))
        .collect();
    let by = RemovedBy::Reason;
    let wanted = [
        (ms("2026-02-02T10:00:00Z"), 2, by(SkipReason::Blackout)),
        (ms("2026-02-02T12:00:00Z"), 2, by(SkipReason::Window)),
    ];
    assert_eq!(told, wanted);
}

const NOW: &str = "2026-06-21T00:00:00Z";

fn spec(trigger: serde_json::Value, rest: serde_json::Value) -> JobSpec {
    let mut whole = json!({"name": "n", "trigger": trigger});
    for (name, value) in rest.as_object().unwrap() {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn refused(trigger: serde_json::Value, rest: serde_json::Value) -> (ErrorCode, String) {
    let refusal = resolve(&spec(trigger, rest), None, None, ms(NOW)).unwrap_err();
    (refusal.code, refusal.message)
}

#[test]
fn what_never_opens_is_refused_by_a_code_and_says_why() {
    let daily = json!({"type": "CRON", "expr": "0 3 * * *"});
    let nothing_is_open = [
        (daily.clone(), json!({"windows": [{"from": "09:00", "to": "17:00"}]})),
        (daily.clone(), json!({"windows": [{}, {"effect": "DENY"}]})),
        (
            json!({"type": "FIXED_RATE", "everySec": 60}),
            json!({"windows": [{"days": ["MON"]}, {"effect": "DENY", "days": ["MON"]}]}),
        ),
        (json!({"type": "FIXED_DELAY", "everySec": 60}), json!({"windows": [{"effect": "DENY"}]})),
        (
            json!({"type": "CRON", "expr": "0 3 * * *", "endAt": "2026-12-01T00:00:00Z"}),
            json!({"blackouts": [{"from": "2026-01-01T00:00:00Z", "to": "2027-01-01T00:00:00Z"}]}),
        ),
        (
            json!({"type": "ONCE", "at": "2026-06-22T03:00:00Z"}),
            json!({"blackouts": [{"from": "2026-06-22T00:00:00Z", "to": "2026-06-23T00:00:00Z"}]}),
        ),
    ];
    for (trigger, rest) in nothing_is_open {
        let (code, message) = refused(trigger, rest);
        assert_eq!(code, ErrorCode::ScheduleNeverFires, "{message}");
        assert!(message.contains("take away every instant of the trigger (the first would be 2026-06-2"), "{message}");
    }
    // A leap day on a Monday: in 2044.
    let rare = spec(json!({"type": "CRON", "expr": "0 0 29 2 *"}), json!({"windows": [{"days": ["MON"]}]}));
    let schedule = Schedule::compile(&resolve(&rare, None, None, ms(NOW)).unwrap()).unwrap();
    assert_eq!(schedule.next(ms(NOW), None), Some(ms("2044-02-29T00:00:00Z")));
}

#[test]
fn wrong_windows_are_refused_with_their_place() {
    let daily = || json!({"type": "CRON", "expr": "0 3 * * *"});
    let many = |n: usize| vec![json!({"from": "02:00"}); n];
    let blackout = |from: &str, to: &str| json!([{"from": from, "to": to}]);
    for (trigger, rest, wanted, why) in [
        (daily(), json!({"windows": many(17)}), ErrorCode::InvalidArgument, "windows: at most 16"),
        (
            daily(),
            json!({"windows": [{}, {"timezone": "Mars/Base"}]}),
            ErrorCode::UnknownTimezone,
            "windows[1].timezone: ",
        ),
        (
            daily(),
            json!({"blackouts": blackout("2026-07-01T00:00:00Z", "2026-07-01T00:00:00Z")}),
            ErrorCode::InvalidArgument,
            "blackouts[0].to must lie after from",
        ),
        (
            daily(),
            json!({"blackouts": [{"from": -5, "to": 5}]}),
            ErrorCode::InvalidArgument,
            "blackouts[0] must lie between",
        ),
        (
            daily(),
            json!({"blackouts": [{"from": 5, "to": 6, "reason": "a\nb"}]}),
            ErrorCode::InvalidArgument,
            "blackouts[0].reason: ",
        ),
        (
            daily(),
            json!({"blackouts": vec![json!({"from": 5, "to": 6}); 65]}),
            ErrorCode::InvalidArgument,
            "blackouts: at most 64",
        ),
        (json!({"type": "MANUAL"}), json!({"windows": [{}]}), ErrorCode::InvalidArgument, "a MANUAL trigger has no"),
    ] {
        let (code, message) = refused(trigger, rest);
        assert_eq!(code, wanted, "{message}");
        assert!(message.contains(why), "{message}");
    }
}

/// What is stored is read back as it was written, with zones and minutes filled in.
#[test]
fn windows_are_read_back_with_their_zone() {
    let written = spec(
        json!({"type": "CRON", "expr": "*/5 * * * *", "timezone": "Europe/Berlin"}),
        json!({
            "windows": [
                {"days": ["MON", "FRI"], "from": "22:00", "to": "02:00"},
                {"effect": "deny", "timezone": "Asia/Tokyo", "to": "01:00"},
            ],
            "blackouts": [{"from": "2026-12-24T00:00:00Z", "to": "2026-12-27T00:00:00Z", "reason": "closed"}],
        }),
    );
    let stored = resolve(&written, None, None, ms(NOW)).unwrap();
    let read = serde_json::to_value(stored.to_spec()).unwrap();
    let wanted = json!([
        {"effect": "ALLOW", "days": ["MON", "FRI"], "from": "22:00", "to": "02:00", "timezone": "Europe/Berlin"},
        {"effect": "DENY", "from": "00:00", "to": "01:00", "timezone": "Asia/Tokyo"},
    ]);
    assert_eq!(read["windows"], wanted);
    let reason = &read["blackouts"][0]["reason"];
    assert_eq!(reason, "closed");
    let again = resolve(&stored.to_spec(), None, Some(&stored), ms(NOW)).unwrap();
    assert_eq!(again.windows, stored.windows, "an edit of nothing changes nothing");
    let none = resolve(&JobSpec::new("t", "n", Trigger::fixed_rate(60)), None, None, ms(NOW)).unwrap();
    assert!(none.windows.is_none());
}
