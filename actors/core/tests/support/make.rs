//! Definitions and small things that tests need.

use super::civil::{closed, windows};
use campanile_schema::{
    ids::{JobId, make_id, slot_of},
    job::{Backoff, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, Trigger},
    payload::Payload,
    stored::{StoredJob, StoredTrigger, StoredWindows},
};
use proptest::{option, prelude::*, sample::select};

/// Times around which daylight saving changes, and a plain one; all shortly before the change.
pub const BASES: [&str; 7] = [
    "2026-03-28T20:00:00Z", // Berlin, forward at 01:00Z
    "2026-10-24T20:00:00Z", // Berlin, back
    "2026-03-08T04:00:00Z", // New York, forward at 07:00Z
    "2026-11-01T02:30:00Z", // New York, back at 06:00Z
    "2026-04-04T10:00:00Z", // Lord Howe, half an hour back at 15:00Z
    "2011-12-29T20:00:00Z", // Apia leaves out 30 December
    "2026-06-15T11:59:58.250Z",
];

pub fn ms(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

pub fn job_id() -> JobId {
    JobId(make_id(1, slot_of("default", "job")))
}

/// A definition with every default.
pub fn plain(trigger: StoredTrigger) -> StoredJob {
    StoredJob::from_spec(&JobSpec::new("default", "job", Trigger::Manual {}), trigger, None)
}

pub fn every(seconds: i64, anchor_ms: i64) -> StoredTrigger {
    StoredTrigger::FixedRate { every_ms: seconds * 1000, anchor_ms }
}

pub fn cron(expr: &str, zone: &str) -> StoredTrigger {
    StoredTrigger::Cron {
        expr: expr.into(),
        dialect: Dialect::Unix,
        zone: zone.into(),
        gap: Gap::default(),
        overlap: Overlap::default(),
    }
}

/// From every ten seconds to a day a month; half of them fixed times that daylight saving touches.
const EXPRESSIONS: [&str; 10] = [
    "*/10 * * * * *",
    "*/5 * * * *",
    "0 2 * * *",
    "30 1,2,3 * * *",
    "0,15,30,45 0,1,2,3 * * *",
    "0-59 2 * * *",
    "0 0,20,40 1,2 * * *",
    "15 10 L * *",
    "0 12 * * 1-5",
    "0 */2 * * *",
];
const ZONES: [&str; 5] = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"];

fn trigger(base_ms: i64) -> impl Strategy<Value = StoredTrigger> {
    prop_oneof![
        4 => (select(&EXPRESSIONS[..]), select(&ZONES[..]), select(Gap::ALL), select(Overlap::ALL)).prop_map(
            |(expr, zone, gap, overlap)| StoredTrigger::Cron {
                expr: expr.into(), dialect: Dialect::Unix, zone: zone.into(), gap, overlap,
            }
        ),
        3 => (select(vec![1_000, 7_000, 60_000, 3_600_000]), -100_000i64..100_000)
            .prop_map(move |(every_ms, offset)| StoredTrigger::FixedRate { every_ms, anchor_ms: base_ms + offset }),
        2 => select(vec![1_000, 30_000, 300_000]).prop_map(|every_ms| StoredTrigger::FixedDelay { every_ms }),
        1 => (-30_000i64..600_000).prop_map(move |offset| StoredTrigger::Once { at_ms: base_ms + offset }),
        1 => Just(StoredTrigger::Manual {}),
    ]
}

/// A MANUAL job has none, and a ONCE none that take its instant away.
fn may_have(trigger: &StoredTrigger, windows: &StoredWindows) -> bool {
    match trigger {
        StoredTrigger::Cron { .. } | StoredTrigger::FixedRate { .. } | StoredTrigger::FixedDelay { .. } => true,
        StoredTrigger::Once { at_ms } => closed(windows, *at_ms).is_none(),
        StoredTrigger::Manual {} => false,
    }
}

/// Any definition that `spec::resolve` lets through, as far as decisions depend on it.
pub fn definition(base_ms: i64) -> impl Strategy<Value = StoredJob> {
    let timing = (
        trigger(base_ms),
        option::weighted(0.1, -7_200_000i64..7_200_000),
        option::weighted(0.1, 0i64..172_800_000),
        select(vec![0, 0, 0, 5, 90]),
        select(MisfirePolicy::ALL),
        select(vec![0, 1, 60, 60, 600]),
        select(vec![0, 1, 5, 1000]),
        select(ConcurrencyPolicy::ALL),
    );
    let retry = (
        select(vec![1, 2, 3, 3, 30]),
        select(Backoff::ALL),
        select(vec![0, 1_000, 10_000]),
        select(vec![0, 15_000, 3_600_000]),
        select(vec![0, 200, 1000]),
        select(vec![5, 60, 3_600]),
    );
    let limits =
        (select(vec![None, None, None, Some(30), Some(600)]), select(vec![None, None, None, Some(5), Some(300)]));
    let flags = (prop::bool::weighted(0.25), any::<bool>(), any::<bool>(), any::<bool>());
    let windows = option::weighted(0.25, windows(base_ms));
    (timing, retry, limits, flags, windows).prop_map(move |(timing, retry, limits, flags, windows)| {
        let (trigger, start, end, jitter, misfire, threshold, cap, concurrency) = timing;
        let (attempts, backoff, base_delay, max_delay, retry_jitter, timeout) = retry;
        let mut def = plain(trigger);
        let spread = matches!(def.trigger, StoredTrigger::Cron { .. } | StoredTrigger::FixedRate { .. });
        if spread || matches!(def.trigger, StoredTrigger::FixedDelay { .. }) {
            def.start_ms = start.map(|offset| base_ms + offset);
            def.end_ms = end.map(|offset| base_ms + offset.max(start.unwrap_or(0)));
        }
        if spread {
            (def.jitter_sec, def.max_catch_up) = (jitter, cap);
        }
        (def.misfire, def.misfire_threshold_sec, def.concurrency) = (misfire, threshold, concurrency);
        (def.max_attempts, def.backoff, def.base_delay_ms) = (attempts, backoff, base_delay);
        (def.max_delay_ms, def.retry_jitter_milli, def.timeout_sec) = (max_delay, retry_jitter, timeout);
        (def.max_elapsed_sec, def.max_runtime_sec) = limits;
        (def.not_idempotent, def.no_dead_letter) = (flags.0, flags.1);
        def.pool = if flags.2 { "default" } else { "other" }.into();
        def.windows = windows.filter(|windows| may_have(&def.trigger, windows)).map(Box::new);
        if flags.3 {
            def.params = Payload(r#"{"a":1}"#.to_owned());
        }
        def
    })
}
