//! Switchable faults for the proofs: fail points at which the process ends itself, and mutations that break a rule on
//! purpose so that the checkers are seen red. Only with the cargo feature `faults`; a release has none of it.
//!
//! Set by the environment: `CAMPANILE_FAULT=point:NAME=kill:NTH`, `CAMPANILE_FAULT=mutation:NAME`, or the name of a rule that is broken with
//! what it is of ([`RULES`]), such as `backfill:PageFollows`; several separated by `;`.

use campanile_core::{
    backfill, bulk, calendar, dispatch, graph, hooks,
    job::{Command, Job, rules},
    outbox, ownership, windows,
};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Every how many appends a mutation strikes: often enough to be found, rare enough to look like a bug.
const STRIDE: u64 = 97;

/// All fail points; `before_append` is passed only with the mutation `ack_before_sync`.
const NAMES: [&str; 16] = [
    "after_append",
    "after_dispatch",
    "backup",
    "before_append",
    "bulk_page_begun",
    "bulk_page_done",
    "history_day",
    "history_name",
    "migrate",
    "outbox_answer",
    "outbox_send",
    "outbox_settle",
    "restore",
    "segment_roll",
    "snapshot",
    "view_flush",
];

/// How long an acknowledgement that came too early has to reach its caller before the write.
pub const HEARD_EARLY: Duration = Duration::from_millis(20);

struct Point {
    name: String,
    left: AtomicU64,
}

fn points() -> &'static Vec<Point> {
    static POINTS: OnceLock<Vec<Point>> = OnceLock::new();
    POINTS.get_or_init(|| {
        settings()
            .filter_map(|s| {
                let (name, action) = s.strip_prefix("point:")?.split_once('=')?;
                let nth: u64 = action.strip_prefix("kill:")?.parse().ok()?;
                // One that is never passed would prove nothing.
                if !NAMES.contains(&name) {
                    eprintln!("there is no fail point '{name}'; there are {NAMES:?}");
                    std::process::abort();
                }
                Some(Point { name: name.to_owned(), left: AtomicU64::new(nth) })
            })
            .collect()
    })
}

fn settings() -> impl Iterator<Item = String> {
    std::env::var("CAMPANILE_FAULT").unwrap_or_default().split(';').map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// A fail point: the process ends here, as by `kill -9`, the n-th time it is passed.
pub fn point(name: &str) {
    debug_assert!(NAMES.contains(&name), "fail point '{name}' is not listed");
    for point in points().iter().filter(|p| p.name == name) {
        if point.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            eprintln!("fail point {name}: the process ends itself");
            std::process::abort();
        }
    }
}

/// Breaks a rule by its name. False: there is none.
type Break = fn(&str) -> bool;

/// What stands before the names of rules, and what they are of.
const RULES: [(&str, &str, Break); 10] = [
    ("rule:", "ownership", ownership::rules::break_by_name),
    ("outbox:", "the outbox", outbox::rules::break_by_name),
    ("graph:", "DAGs", graph::clauses::break_by_name),
    ("backfill:", "backfills", backfill::rules::break_by_name),
    ("bulk:", "bulk operations", bulk::rules::break_by_name),
    ("hooks:", "hooks", hooks::rules::break_by_name),
    ("job:", "runs of a job", rules::break_by_name),
    ("dispatch:", "matching", dispatch::rules::break_by_name),
    ("calendars:", "calendars", calendar::rules::break_by_name),
    ("windows:", "windows and blackouts", windows::rules::break_by_name),
];

/// Switches on what concerns the core; once, at the start of a node.
pub fn set_in_core() {
    use campanile_core::faults;
    for name in faults::Mutation::ALL {
        faults::set(name, mutation(name.name()));
    }
    if mutation("ignore_deadline") {
        faults::ignore_deadlines();
    }
    for setting in settings() {
        let of = RULES.iter().find_map(|(prefix, what, breaks)| Some((what, breaks, setting.strip_prefix(prefix)?)));
        // One that is not there would prove nothing.
        if let Some((what, breaks, name)) = of
            && !breaks(name)
        {
            eprintln!("there is no rule '{name}' of {what}");
            std::process::abort();
        }
    }
}

/// Is a mutation set?
pub fn mutation(name: &str) -> bool {
    settings().any(|s| s.strip_prefix("mutation:") == Some(name))
}

fn strikes(name: &'static str, set: &'static OnceLock<bool>, count: &'static AtomicU64) -> bool {
    *set.get_or_init(|| mutation(name)) && count.fetch_add(1, Ordering::Relaxed) % STRIDE == STRIDE - 1
}

/// Some batches are not written at all.
pub fn skip_append() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    strikes("skip_append", &SET, &COUNT)
}

/// Batches are acknowledged before they are written.
pub fn ack_before_sync() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("ack_before_sync"))
}

/// Who takes a shard over misses the last frame of its journal.
pub fn forget_tail() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("forget_tail"))
}

/// Tenants get one permit more than their quota has.
pub fn quota_plus_one() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("quota_plus_one"))
}

/// Tenants' rates are not kept.
pub fn forget_rate() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("forget_rate"))
}

/// Some triggers by hand are refused, and their runs are made all the same.
pub fn refuse_yet_run(now_ms: i64) -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("refuse_yet_run")) && now_ms.div_euclid(1000).rem_euclid(5) == 0
}

/// A shard that was loaded tells of its attempts so much later, when executors have registered.
pub fn late_attempts() -> Option<Duration> {
    static SET: OnceLock<bool> = OnceLock::new();
    SET.get_or_init(|| mutation("late_attempts")).then_some(Duration::from_secs(2))
}

/// Every node of a cluster lends a tenant's permits as if it were alone.
pub fn limits_alone() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("limits_alone"))
}

/// A node whose lease has run out for a moment gives its session up, instead of waiting for the store.
pub fn leave_at_deadline() -> bool {
    static SET: OnceLock<bool> = OnceLock::new();
    *SET.get_or_init(|| mutation("leave_at_deadline"))
}

/// Jobs with the label `campanile.fault=panic` break their actor when they are woken, those with `panic_on_pause` when they are paused.
pub fn panic_if_poisoned(job: &Job, command: &Command) {
    let poison = if matches!(command, Command::Wake) {
        "panic"
    } else if matches!(command, Command::Pause { .. }) {
        "panic_on_pause"
    } else {
        return;
    };
    assert!(job.def.labels.get("campanile.fault").is_none_or(|v| v != poison), "poisoned job {}", job.id);
}
