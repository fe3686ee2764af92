//! `Schedule`'s counting and bisecting against looking at one instant after the other, in all zones; and what
//! `spec::resolve` refuses because it would never fire or would not be what was meant.

use crate::support::{config, make::plain};
use campanile_core::{
    cron::{CronExpr, CronSchedule, OccurrenceKind, known_zone_names},
    schedule::{RemovedBy, RemovedStretch, Schedule},
    spec::resolve,
};
use campanile_schema::{
    error::ErrorCode,
    job::{Dialect, Gap, JobSpec, Overlap, Trigger},
    stored::{MASK, Sealed, StoredJob, StoredTrigger},
    time::Timestamp,
};
use proptest::{prelude::*, sample::select};

const EXPRESSIONS: [&str; 6] =
    ["0 2 * * *", "0,30 0-23 * * *", "0 0,1,2,3 * * 0", "*/30 * * * *", "15 3 L * *", "0,20,40 22,23,0 * * *"];

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn counting_agrees_with_looking(
        zone in select(known_zone_names()),
        expr in select(&EXPRESSIONS[..]),
        gap in select(Gap::ALL),
        overlap in select(Overlap::ALL),
        from in 0i64..2_000_000_000_000,
        days in 1i64..500,
        keep in 0u64..50,
        ends in any::<bool>(),
    ) {
        let mut def = plain(StoredTrigger::Cron {
            expr: expr.into(), dialect: Dialect::Unix, zone: zone.as_str().into(), gap, overlap,
        });
        let until = from + days * 86_400_000;
        if ends {
            (def.start_ms, def.end_ms) = (Some(from + 7_200_000), Some(until - 7_200_000));
        }
        let schedule = Schedule::compile(&def).unwrap();
        let cron = CronSchedule::new(CronExpr::parse(expr, Dialect::Unix, 0).unwrap().0, &zone, gap, overlap).unwrap();
        let (mut fires, mut gone): (Vec<i64>, Vec<RemovedStretch>) = (Vec::new(), Vec::new());
        let (mut after, end) = (def.start_ms.map_or(from, |s| s - 1), def.end_ms.unwrap_or(until));
        let mut apart = true;
        while let Some(next) = cron.next_occurrence(after, end) {
            after = next.at_ms;
            match (next.kind, gone.last_mut()) {
                (OccurrenceKind::Fire, _) => {
                    fires.push(after);
                    apart = true;
                }
                (OccurrenceKind::DstSkipped, Some(last)) if !apart => {
                    (last.last_ms, last.count) = (after, last.count + 1);
                }
                (OccurrenceKind::DstSkipped, _) => {
                    gone.push(RemovedStretch { first_ms: after, last_ms: after, count: 1, by: RemovedBy::DaylightSaving });
                    apart = false;
                }
            }
        }
        prop_assert_eq!(schedule.removed(from, until), gone);
        prop_assert_eq!(schedule.count(from, until, None), fires.len() as u64);
        prop_assert_eq!(schedule.next(from, None).filter(|at| *at <= until), fires.first().copied());
        prop_assert_eq!(schedule.last(from, until, None), fires.last().copied());
        let upto = schedule.drop_before(from, until, keep, None);
        let kept = fires.iter().filter(|at| **at > upto).count() as u64;
        prop_assert_eq!(kept, keep.min(fires.len() as u64));
    }
}

const NOW: i64 = 1_782_000_000_000;

fn refused(spec: &JobSpec, old: Option<&StoredJob>) -> Option<(ErrorCode, String)> {
    resolve(spec, None, old, NOW).err().map(|r| (r.code, r.message))
}

fn once(at_ms: i64) -> JobSpec {
    let trigger = serde_json::json!({"type": "ONCE", "at": Timestamp(at_ms).to_string()});
    JobSpec::new("t", "n", serde_json::from_value(trigger).unwrap())
}

#[test]
fn a_once_too_far_in_the_past_is_refused() {
    assert_eq!(refused(&once(NOW + 1), None), None);
    assert_eq!(refused(&once(NOW - 60_000), None), None, "within the threshold it is still due");
    assert_eq!(refused(&once(NOW - 60_001), None).unwrap().0, ErrorCode::ScheduleNeverFires);
    // An edit of labels of a job that has fired is no new instant.
    let old = resolve(&once(NOW - 50_000), None, None, NOW - 50_000).unwrap();
    let mut later = once(NOW - 50_000);
    later.labels.insert("k".to_owned(), "v".to_owned());
    assert!(resolve(&later, None, Some(&old), NOW + 1_000_000).is_ok());
}

/// The instant of a ONCE, or why it is refused.
fn once_of(trigger: serde_json::Value) -> Result<String, (ErrorCode, String)> {
    let spec = JobSpec::new("t", "n", serde_json::from_value(trigger).unwrap());
    match resolve(&spec, None, None, NOW).map_err(|r| (r.code, r.message))?.trigger {
        StoredTrigger::Once { at_ms } => Ok(Timestamp(at_ms).to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_local_time_is_the_instant_that_the_clocks_of_its_zone_show() {
    for (at, zone, instant) in [
        ("2027-01-15 10:00:00.000", "Asia/Shanghai", "2027-01-15T02:00:00.000Z"),
        ("2027-01-15 10:00:00.250", "asia/shanghai", "2027-01-15T02:00:00.250Z"),
        ("2027-07-15T10:00", "America/New_York", "2027-07-15T14:00:00.000Z"),
        ("2027-01-15T10:00:00Z", "Asia/Shanghai", "2027-01-15T10:00:00.000Z"),
        // The clocks go from 02:00 to 03:00: the first instant after the gap.
        ("2027-03-28 01:59:59", "Europe/Berlin", "2027-03-28T00:59:59.000Z"),
        ("2027-03-28 02:00:00", "Europe/Berlin", "2027-03-28T01:00:00.000Z"),
        ("2027-03-28 02:59:59.999", "Europe/Berlin", "2027-03-28T01:00:00.000Z"),
        ("2027-03-28 03:00:00", "Europe/Berlin", "2027-03-28T01:00:00.000Z"),
        // They go from 03:00 back to 02:00: the first of the two.
        ("2027-10-31 02:30:00", "Europe/Berlin", "2027-10-31T00:30:00.000Z"),
        ("2027-10-31 03:00:00", "Europe/Berlin", "2027-10-31T02:00:00.000Z"),
        // A gap of half an hour.
        ("2027-10-03 02:10:00", "Australia/Lord_Howe", "2027-10-02T15:30:00.000Z"),
    ] {
        let trigger = serde_json::json!({"type": "ONCE", "at": at, "timezone": zone});
        assert_eq!(once_of(trigger), Ok(instant.to_owned()), "{at} {zone}");
    }
}

/// Both are times of a zone, so they must mean the same.
#[test]
fn a_local_time_means_what_a_fixed_cron_time_means() {
    for (at, expr) in [
        ("2027-03-28 02:30:00", "0 30 2 28 3 ? 2027"),
        ("2027-10-31 02:30:00", "0 30 2 31 10 ? 2027"),
        ("2027-06-01 12:00:00", "0 0 12 1 6 ? 2027"),
    ] {
        let once = serde_json::json!({"type": "ONCE", "at": at, "timezone": "Europe/Berlin"});
        let cron = serde_json::json!({"type": "CRON", "expr": expr, "timezone": "Europe/Berlin"});
        let spec = JobSpec::new("t", "n", serde_json::from_value(cron).unwrap());
        let due = Schedule::compile(&resolve(&spec, None, None, NOW).unwrap()).unwrap().next(NOW, None).unwrap();
        assert_eq!(once_of(once), Ok(Timestamp(due).to_string()), "{at}");
    }
}

#[test]
fn delays_count_from_now_to_the_millisecond() {
    let at = |ms: i64| Ok(Timestamp(NOW + ms).to_string());
    assert_eq!(once_of(serde_json::json!({"type": "DELAY", "delaySec": 90})), at(90_000));
    assert_eq!(once_of(serde_json::json!({"type": "DELAY", "delayMs": 250})), at(250));
    assert_eq!(once_of(serde_json::json!({"type": "IMMEDIATE"})), at(0));
}

#[test]
fn an_instant_that_is_not_clear_is_refused_and_says_what_to_write() {
    let local = "2027-01-15 10:00:00";
    for (trigger, code, why) in [
        (serde_json::json!({"at": local}), ErrorCode::InvalidArgument, "has no offset: add \"timezone\""),
        (serde_json::json!({"at": local, "timezone": "Asia/Shangai"}), ErrorCode::UnknownTimezone, "Asia/Shanghai"),
        (
            serde_json::json!({"at": "2027-01-15T10:00:00Z", "timezone": "x"}),
            ErrorCode::UnknownTimezone,
            "trigger.timezone",
        ),
        (serde_json::json!({"delaySec": 1, "timezone": "UTC"}), ErrorCode::InvalidArgument, "belongs to 'at'"),
        (serde_json::json!({"delaySec": 1, "delayMs": 1}), ErrorCode::InvalidArgument, "exactly one of"),
        (serde_json::json!({"at": local, "delayMs": 1}), ErrorCode::InvalidArgument, "exactly one of"),
        (serde_json::json!({}), ErrorCode::InvalidArgument, "exactly one of"),
        (serde_json::json!({"delayMs": 315_360_000_001u64}), ErrorCode::InvalidArgument, "0 to 315360000000"),
        (
            serde_json::json!({"at": "9999-12-31 10:00:00", "timezone": "UTC"}),
            ErrorCode::InvalidArgument,
            "between the years 1970 and 9998",
        ),
        (
            serde_json::json!({"at": "1969-12-31 10:00:00", "timezone": "UTC"}),
            ErrorCode::InvalidArgument,
            "between the years 1970 and 9998",
        ),
        (
            serde_json::json!({"at": "2020-01-01 10:00:00", "timezone": "UTC"}),
            ErrorCode::ScheduleNeverFires,
            "lies in the past",
        ),
    ] {
        let mut written = trigger.clone();
        written["type"] = "ONCE".into();
        let (is, message) = once_of(written).unwrap_err();
        assert_eq!(is, code, "{trigger}: {message}");
        assert!(message.contains(why), "{trigger}: {message}");
    }
}

#[test]
fn a_schedule_without_an_instant_from_now_on_is_refused_and_says_why() {
    // NOW is 2026-06-21.
    for (text, why) in [
        (
            r#"{"type":"FIXED_DELAY","everySec":30,"endAt":"2026-01-01T00:00:00Z"}"#,
            "endAt 2026-01-01T00:00:00.000Z is not after",
        ),
        (
            r#"{"type":"FIXED_RATE","everySec":30,"endAt":"2026-01-01T00:00:00Z"}"#,
            "endAt 2026-01-01T00:00:00.000Z is not after",
        ),
        (r#"{"type":"CRON","expr":"0 0 30 2 *"}"#, "February has no 30th"),
        (r#"{"type":"CRON","expr":"0 0 0 1 1 ? 2020"}"#, "trigger.expr has no instant after 2026-06-21"),
        (
            r#"{"type":"CRON","expr":"0 0 24 12 *","endAt":"2026-12-01T00:00:00Z"}"#,
            "would be 2026-12-24T00:00:00.000Z, but trigger.endAt is 2026-12-01T00:00:00.000Z",
        ),
        (
            r#"{"type":"FIXED_RATE","everySec":30,"anchorAt":"2026-12-24T00:00:00Z","endAt":"2026-12-01T00:00:00Z"}"#,
            "would be 2026-12-24T00:00:00.000Z",
        ),
        (
            r#"{"type":"CRON","expr":"0 0 24 12 *","startAt":"2027-01-01T00:00:00Z","endAt":"2027-12-01T00:00:00Z"}"#,
            "would be 2027-12-24T00:00:00.000Z",
        ),
    ] {
        let spec = JobSpec::new("t", "n", serde_json::from_str(text).unwrap());
        let (code, message) = refused(&spec, None).unwrap();
        assert_eq!(code, ErrorCode::ScheduleNeverFires, "{text}: {message}");
        assert!(message.contains(why), "{text}: {message}");
        assert!(message.contains("never fires"), "{message}");
    }
    let fires = r#"{"type":"CRON","expr":"0 0 24 12 *","endAt":"2026-12-24T00:00:00Z"}"#;
    assert_eq!(refused(&JobSpec::new("t", "n", serde_json::from_str(fires).unwrap()), None), None, "endAt is included");
}

#[test]
fn instants_beyond_the_calendar_are_refused_by_name() {
    for far in [i64::MIN, -1, 253_402_300_800_000, i64::MAX] {
        for field in ["startAt", "endAt", "anchorAt"] {
            let mut trigger = serde_json::json!({"type": "FIXED_RATE", "everySec": 30});
            trigger[field] = serde_json::json!(far);
            let spec = JobSpec::new("t", "n", serde_json::from_value(trigger).unwrap());
            let (code, message) = refused(&spec, None).unwrap();
            assert_eq!(code, ErrorCode::InvalidArgument, "{message}");
            assert!(message.contains(field), "{message}");
        }
        let trigger = serde_json::json!({"type": "ONCE", "at": far});
        let spec = JobSpec::new("t", "n", serde_json::from_value(trigger).unwrap());
        assert_eq!(refused(&spec, None).unwrap().0, ErrorCode::InvalidArgument);
    }
}

/// `***` is what secrets read back as; it is never sealed as a value, and never drops one.
#[test]
fn masked_secrets_keep_the_stored_ones_or_are_refused() {
    let spec = |secrets: &[(&str, &str)]| {
        let mut spec = JobSpec::new("t", "n", Trigger::Manual {});
        spec.secret_params = secrets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        spec
    };
    let names = vec!["a".to_owned(), "b".to_owned()];
    let sealed = Sealed { names, key_id: "k1".to_owned(), nonce: vec![0; 24], ciphertext: vec![1, 2] };
    let old = resolve(&spec(&[("a", "1"), ("b", "2")]), Some(sealed.clone()), None, NOW).unwrap();
    let kept = resolve(&spec(&[("a", MASK), ("b", MASK)]), None, Some(&old), NOW).unwrap();
    assert_eq!(kept.secrets, Some(sealed));
    for wrong in [&[("a", MASK), ("b", "new")][..], &[("a", MASK)][..], &[("a", MASK), ("c", MASK)][..]] {
        assert_eq!(refused(&spec(wrong), Some(&old)).unwrap().0, ErrorCode::InvalidArgument, "{wrong:?}");
    }
    assert!(refused(&spec(&[("a", MASK)]), None).is_some(), "nothing is stored yet");
}
