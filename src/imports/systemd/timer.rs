//! `[Timer]`: when.

use super::{
    Refusal,
    calendar::{Event, event},
    unit::{Setting, Unit, is_true, span_ms},
};
use crate::{
    Options, Place,
    draft::{CronRules, cron, open_hour},
};
use campanile_core::cron::CronExpr;
use campanile_schema::job::{Dialect, Gap, MisfirePolicy, Overlap, Trigger};

/// Triggers with their places.
pub struct Timer {
    pub triggers: Vec<(Trigger, Place)>,
    pub changed: Vec<String>,
}

/// Settings that start a service at instants which have no counterpart.
const STARTS: [&str; 3] = ["OnBootSec", "OnStartupSec", "OnActiveSec"];
/// Settings that say when. An empty one of them takes back all that were written before it.
const SCHEDULES: [&str; 6] =
    ["OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec", "OnBootSec", "OnStartupSec", "OnActiveSec"];
const EVENTS: [&str; 2] = ["OnClockChange", "OnTimezoneChange"];
const KNOWN: [&str; 7] =
    ["OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec", "AccuracySec", "RandomizedDelaySec", "Persistent", "Unit"];
/// Seconds after which an instant was missed.
const THRESHOLD_SEC: u32 = 60;

pub fn triggers(unit: &Unit, options: &Options) -> Result<Timer, Refusal> {
    let mut timer = Timer { triggers: Vec::new(), changed: Vec::new() };
    for name in EVENTS {
        if let Some(setting) = unit.last("Timer", name).filter(|setting| is_true(&setting.value)) {
            let reason = format!("{name}= has no counterpart: no job is started by a change of the machine's clock");
            return Err(Refusal::new(&setting.place, reason, "take it out"));
        }
    }
    let schedules = unit.group("Timer", &SCHEDULES);
    let named = |name: &str| schedules.iter().copied().filter(|setting| setting.name == name).collect::<Vec<_>>();
    let calendar = named("OnCalendar");
    let (active, inactive) = (named("OnUnitActiveSec"), named("OnUnitInactiveSec"));
    let intervals: Vec<&Setting> = active.iter().chain(&inactive).copied().collect();
    let starts: Vec<&Setting> = STARTS.into_iter().filter_map(|name| named(name).pop()).collect();
    let jitter_sec = delay(unit, &mut timer.changed)?;
    match (calendar.as_slice(), intervals.as_slice()) {
        ([], []) => return Err(none(starts.first().copied())),
        ([], [interval]) => {
            let trigger = interval_trigger(interval, active.is_empty(), jitter_sec, &mut timer.changed)?;
            timer.triggers.push((trigger, interval.place.clone()));
        }
        (_, []) => {
            for setting in calendar {
                let trigger = calendar_trigger(setting, unit, jitter_sec, options, &mut timer.changed)?;
                timer.triggers.push((trigger, setting.place.clone()));
            }
        }
        (_, [setting, ..]) => {
            let reason =
                format!("{}= beside another schedule cannot be expressed: a job has one trigger", setting.name);
            return Err(Refusal::new(&setting.place, reason, "make a timer for each schedule"));
        }
    }
    if !starts.is_empty() {
        let starts: Vec<&str> = starts.iter().map(|setting| setting.name.as_str()).collect();
        let told = "nothing here starts when a machine starts";
        timer.changed.push(format!("{}= is left out: {told}", starts.join("= and ")));
    }
    others(unit, &mut timer.changed);
    Ok(timer)
}

/// A timer without a schedule that can be expressed.
fn none(start: Option<&Setting>) -> Refusal {
    match start {
        Some(setting) => Refusal::new(
            &setting.place,
            format!("{}= alone has no counterpart: nothing here starts when a machine or a timer starts", setting.name),
            "keep this timer in systemd, or write OnCalendar=",
        ),
        None => Refusal::new(&Place::default(), "the timer has no schedule", "write OnCalendar="),
    }
}

fn delay(unit: &Unit, changed: &mut Vec<String>) -> Result<u32, Refusal> {
    let Some(setting) = unit.last("Timer", "RandomizedDelaySec") else { return Ok(0) };
    let seconds = span_ms(&setting.value).map(|ms| ms.div_ceil(1_000));
    let Some(seconds) = seconds.and_then(|seconds| u32::try_from(seconds).ok()) else {
        let reason = format!("RandomizedDelaySec={} is not a time span", setting.value);
        return Err(Refusal::new(&setting.place, reason, "write it as 30s, 5min or 1h"));
    };
    if unit.last("Timer", "FixedRandomDelay").is_some_and(|setting| is_true(&setting.value)) {
        changed.push("FixedRandomDelay= is not kept: the delay is drawn for each run".to_owned());
    }
    Ok(seconds)
}

fn interval_trigger(
    setting: &Setting,
    after_last: bool,
    jitter_sec: u32,
    changed: &mut Vec<String>,
) -> Result<Trigger, Refusal> {
    let ms = span_ms(&setting.value).filter(|ms| *ms > 0 && ms % 1_000 == 0);
    let Some(seconds) = ms.map(|ms| ms / 1_000) else {
        let reason = format!("{}={} is not a whole number of seconds", setting.name, setting.value);
        return Err(Refusal::new(&setting.place, reason, "write it as 30s, 5min or 1h"));
    };
    if after_last {
        if jitter_sec > 0 {
            changed.push("RandomizedDelaySec= is left out: an interval after the last run has none here".to_owned());
        }
        let mut trigger = Trigger::fixed_delay(seconds);
        if let Trigger::FixedDelay { misfire_policy, .. } = &mut trigger {
            *misfire_policy = MisfirePolicy::Skip;
        }
        return Ok(trigger);
    }
    changed.push(
        "OnUnitActiveSec= counts from the last start; here the instants are fixed from when the job is made".to_owned(),
    );
    let mut trigger = Trigger::fixed_rate(seconds);
    if let Trigger::FixedRate { jitter_sec: jitter, misfire_policy, .. } = &mut trigger {
        (*jitter, *misfire_policy) = (jitter_sec, MisfirePolicy::Skip);
    }
    Ok(trigger)
}

fn calendar_trigger(
    setting: &Setting,
    unit: &Unit,
    jitter: u32,
    options: &Options,
    changed: &mut Vec<String>,
) -> Result<Trigger, Refusal> {
    let refused = |why: &str| {
        let reason = format!("OnCalendar={}: {why}", setting.value);
        Refusal::new(&setting.place, reason, "write a cron expression in a manifest, or split it into several jobs")
    };
    let Event { expr, zone } = event(&setting.value).map_err(|why| refused(&why))?;
    CronExpr::parse(&expr, Dialect::Unix, 0).map_err(|error| refused(&error.to_string()))?;
    let is_persistent = unit.last("Timer", "Persistent").is_some_and(|setting| is_true(&setting.value));
    let zone = zone.unwrap_or_else(|| options.zone.clone().unwrap_or_else(|| options.machine_zone.clone()));
    let rules = CronRules {
        dialect: Dialect::Unix,
        // A time that the clock skips is left out by systemd, and one that comes twice is due at its first.
        gap: Gap::Skip,
        overlap: Overlap::First,
        misfire: if is_persistent { MisfirePolicy::FireOnceNow } else { MisfirePolicy::Skip },
        threshold_sec: THRESHOLD_SEC,
    };
    let mut trigger = cron(&expr, &zone, rules);
    let leaves_out = "systemd leaves out the hour that comes a second time";
    let told = open_hour(&trigger, options.now_ms, leaves_out).filter(|told| !changed.contains(told));
    changed.extend(told);
    if let Trigger::Cron { jitter_sec, .. } = &mut trigger {
        *jitter_sec = jitter;
    }
    Ok(trigger)
}

/// What has no counterpart and changes little.
fn others(unit: &Unit, changed: &mut Vec<String>) {
    if unit.last("Timer", "WakeSystem").is_some_and(|setting| is_true(&setting.value)) {
        changed.push("WakeSystem= is not kept: no machine is woken up for a run".to_owned());
    }
    let mut unknown: Vec<&str> = unit
        .settings
        .iter()
        .filter(|setting| setting.section == "Timer")
        .map(|setting| setting.name.as_str())
        .filter(|name| {
            let told = ["FixedRandomDelay", "WakeSystem", "RemainAfterElapse"];
            ![&KNOWN[..], &STARTS[..], &EVENTS[..], &told[..]].concat().contains(name)
        })
        .collect();
    unknown.dedup();
    if !unknown.is_empty() {
        changed.push(format!("unknown settings of [Timer] are ignored: {}", unknown.join(", ")));
    }
}
