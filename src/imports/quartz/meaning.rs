//! Jobs and triggers of Quartz as jobs here.

use super::model::{Found, Key, Kind, Misfire, QuartzJob, QuartzTrigger, State};
use crate::{
    Options,
    draft::{CronRules, DEFAULT_TENANT, Draft, Drafts, cron, open_hour, plain, serial, within},
    text,
};
use campanile_core::cron::{CronExpr, find_zone};
use campanile_schema::{
    job::{Action, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, Trigger},
    limits::PRIORITY_MAX,
    payload::Payload,
    time::Timestamp,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const LABEL_JOB: &str = "quartz.job";
const LABEL_TRIGGER: &str = "quartz.trigger";
/// Seconds after which Quartz calls an instant a misfire, unless its properties say otherwise.
const THRESHOLD_SEC: u32 = 60;
/// What Quartz' `CronExpression` does with an open time field where the clock goes back.
const LEAVES_OUT: &str = "Quartz leaves out the hour that comes the first time";
/// Priority of a trigger that names none.
const PRIORITY: i64 = 5;

/// Where the names of a file are made.
struct Naming {
    /// The dump has jobs of several schedulers.
    several_schedulers: bool,
    /// Triggers of each job, count.
    triggers: BTreeMap<Key, usize>,
}

pub fn drafts(found: Found, options: &Options, drafts: &mut Drafts) {
    let schedulers: BTreeSet<&str> = found.jobs.iter().map(|job| job.key.scheduler.as_str()).collect();
    let mut naming = Naming { several_schedulers: schedulers.len() > 1, triggers: BTreeMap::new() };
    for trigger in &found.triggers {
        *naming.triggers.entry(trigger.job.clone()).or_default() += 1;
    }
    let jobs: BTreeMap<&Key, &QuartzJob> = found.jobs.iter().map(|job| (&job.key, job)).collect();
    for trigger in &found.triggers {
        let origin = format!("trigger {} of job {}", trigger.key.shown(), trigger.job.shown());
        let Some(job) = jobs.get(&trigger.job) else {
            let advice = "import the file with the job too";
            drafts.refuse(&trigger.place, &origin, "its job is not in the file", advice);
            continue;
        };
        match of_trigger(trigger, job, &naming, options) {
            Ok(draft) => drafts.add(Draft { origin, ..draft }),
            Err(why) => drafts.refuse(&trigger.place, &origin, text::sentence(&why.0), why.1),
        }
    }
    for job in found.jobs.iter().filter(|job| !naming.triggers.contains_key(&job.key)) {
        let mut draft = of_job(job, Trigger::Manual {}, &naming, options);
        draft.changed.push("it has no trigger: the job is MANUAL".to_owned());
        drafts.add(draft);
    }
}

/// A reason, and what to do.
type Why = (String, &'static str);

fn of_job(job: &QuartzJob, trigger: Trigger, naming: &Naming, options: &Options) -> Draft {
    let tenant = options.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    let scheduler = Some(job.key.scheduler.as_str()).filter(|_| naming.several_schedulers);
    let parts: Vec<&str> =
        ["quartz"].into_iter().chain(scheduler).chain([job.key.group.as_str(), job.key.name.as_str()]).collect();
    let mut spec = plain(tenant, &text::name(&parts), trigger);
    let mut changed = Vec::new();
    spec.action = Some(Action::Handler { name: text::part(&job.class) });
    spec.description = text::description(&job.description);
    spec.labels.insert(LABEL_JOB.to_owned(), text::label(&format!("{}.{}", job.key.group, job.key.name)));
    if let Some(pool) = &options.pool {
        pool.clone_into(&mut spec.executor_selector);
    }
    match job.one_at_a_time {
        Some(true) => serial(&mut spec, &mut changed),
        Some(false) => spec.concurrency_policy = ConcurrencyPolicy::Allow,
        None => {
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            let told = "runs may overlap (ALLOW); if the class has @DisallowConcurrentExecution set concurrencyPolicy: QueueOne";
            changed.push(told.to_owned());
        }
    }
    if job.recovers {
        changed.push(
            "it asks for recovery: set retryPolicy.maxAttempts, so that a run that lost its executor runs again"
                .to_owned(),
        );
    }
    params(&mut spec, &job.data, job.data_lost.as_deref(), &mut changed);
    let origin = format!("job {}", job.key.shown());
    Draft { spec, suspend: None, place: job.place.clone(), origin, changed }
}

fn of_trigger(trigger: &QuartzTrigger, job: &QuartzJob, naming: &Naming, options: &Options) -> Result<Draft, Why> {
    if let Some(calendar) = &trigger.calendar {
        let why = format!(
            "the calendar '{}' leaves out some of its times, which a schedule here cannot",
            text::shown(calendar)
        );
        return Err((why, "write the times that are meant, or create the job without the calendar"));
    }
    if trigger.state == State::Complete {
        return Err(("it is complete: it never fires again".to_owned(), "delete it in Quartz"));
    }
    let mut changed = Vec::new();
    let schedule = schedule(trigger, options, &mut changed)?;
    let mut draft = of_job(job, schedule, naming, options);
    draft.place = trigger.place.clone();
    draft.changed.splice(0..0, changed);
    let spec = &mut draft.spec;
    spec.labels.insert(LABEL_TRIGGER.to_owned(), text::label(&format!("{}.{}", trigger.key.group, trigger.key.name)));
    if naming.triggers.get(&job.key).is_some_and(|count| *count > 1) {
        spec.name = text::name(&[&spec.name.split('/').collect::<Vec<_>>()[..], &[trigger.key.name.as_str()]].concat());
        let told = "its job has several triggers: each is a job here, and they do not wait for each other";
        draft.changed.push(told.to_owned());
    }
    if let Some(priority) = trigger.priority.filter(|priority| *priority != PRIORITY) {
        let ours = (100 + (priority - PRIORITY).clamp(-100, 100) * 10).clamp(0, i64::from(PRIORITY_MAX));
        spec.priority = u16::try_from(ours).unwrap_or(PRIORITY_MAX);
        draft.changed.push(format!("the priority {priority} (of 5 as usual) becomes {ours} (of 100 as usual)"));
    }
    let mut data = job.data.clone();
    data.extend(trigger.data.clone());
    params(spec, &data, trigger.data_lost.as_deref(), &mut draft.changed);
    match trigger.state {
        State::Active | State::Complete => {}
        State::Paused => draft.suspend = Some(true),
        State::Error => {
            draft.suspend = Some(true);
            draft.changed.push("the trigger is in the state ERROR: the job is made paused".to_owned());
        }
    }
    Ok(draft)
}

fn params(spec: &mut JobSpec, data: &BTreeMap<String, String>, lost: Option<&str>, changed: &mut Vec<String>) {
    if !data.is_empty() {
        spec.params = Payload::from_value(&json!(data));
    }
    changed.extend(lost.map(|why| format!("its job data is not imported: {why}; give it as params")));
}

fn misfire(trigger: &QuartzTrigger, smart: MisfirePolicy, changed: &mut Vec<String>) -> MisfirePolicy {
    match trigger.misfire {
        Misfire::Smart => smart,
        Misfire::Ignore => MisfirePolicy::FireAllMissed,
        Misfire::Fire => MisfirePolicy::FireOnceNow,
        Misfire::Skip => MisfirePolicy::Skip,
        Misfire::Unknown => {
            changed.push("its misfire instruction is not known: missed instants are made up for once".to_owned());
            MisfirePolicy::FireOnceNow
        }
    }
}

fn schedule(trigger: &QuartzTrigger, options: &Options, changed: &mut Vec<String>) -> Result<Trigger, Why> {
    // What began already needs no beginning.
    let start = trigger.start.filter(|at| at.ms() > options.now_ms);
    match &trigger.kind {
        Kind::Cron { expr, zone } => {
            let mut made = of_cron(trigger, expr, zone.as_deref(), options, changed)?;
            within(&mut made, start, trigger.end);
            Ok(made)
        }
        Kind::Simple { repeats, interval_ms } => simple(trigger, *repeats, *interval_ms, changed),
        Kind::Interval { count, unit } => {
            let seconds = match unit.as_str() {
                "SECOND" => 1,
                "MINUTE" => 60,
                "HOUR" => 3_600,
                "DAY" | "WEEK" => {
                    changed.push(format!("a {unit} has the same number of hours here where the clock changes"));
                    if unit == "DAY" { 86_400 } else { 604_800 }
                }
                other => {
                    let why = format!("an interval of the unit {} cannot be expressed", text::shown(other));
                    return Err((why, "write a cron expression, such as 0 0 0 1 * ? for each month"));
                }
            };
            let every_ms = count.checked_mul(seconds).and_then(|seconds| seconds.checked_mul(1_000));
            fixed_rate(trigger, every_ms.unwrap_or(0), MisfirePolicy::FireOnceNow, before(trigger.end), changed)
        }
        Kind::Other(why) => Err((why.clone(), "write a job with the schedule that is meant by hand")),
    }
}

fn of_cron(
    trigger: &QuartzTrigger,
    expr: &str,
    zone: Option<&str>,
    options: &Options,
    changed: &mut Vec<String>,
) -> Result<Trigger, Why> {
    // Quartz reads it with any blanks between.
    let expr = expr.split_whitespace().collect::<Vec<_>>().join(" ");
    if expr.split([' ', ',', '-', '/', '(']).any(|part| part.eq_ignore_ascii_case("H")) {
        return Err((
            format!("Quartz does not know the H of '{}'", text::shown(&expr)),
            "write the time that is meant",
        ));
    }
    if let Err(error) = CronExpr::parse(&expr, Dialect::Quartz, 0) {
        let advice = if error.never_fires { "delete it in Quartz" } else { "correct the expression" };
        return Err((format!("the expression '{}': {error}", text::shown(&expr)), advice));
    }
    let zone = match zone {
        Some(zone) => {
            if let Err(error) = find_zone(zone) {
                return Err((
                    format!("the zone '{}' of Java: {error}", text::shown(zone)),
                    "write a name such as Europe/Berlin",
                ));
            }
            zone
        }
        None => options.zone.as_deref().unwrap_or(&options.machine_zone),
    };
    let rules = CronRules {
        dialect: Dialect::Quartz,
        // Quartz leaves out a time that the clock skips, and takes the second of two.
        gap: Gap::Skip,
        overlap: Overlap::Second,
        misfire: misfire(trigger, MisfirePolicy::FireOnceNow, changed),
        threshold_sec: THRESHOLD_SEC,
    };
    let made = cron(&expr, zone, rules);
    changed.extend(open_hour(&made, options.now_ms, LEAVES_OUT));
    Ok(made)
}

fn simple(trigger: &QuartzTrigger, repeats: i64, interval_ms: i64, changed: &mut Vec<String>) -> Result<Trigger, Why> {
    const HAND: &str = "make the job by hand, or trigger it once";
    match (repeats, trigger.start) {
        (0, Some(at)) => {
            let mut once = Trigger::once_at(at);
            let policy = misfire(trigger, MisfirePolicy::FireOnceNow, changed);
            if let Trigger::Once { misfire_policy, .. } = &mut once {
                *misfire_policy = policy;
            }
            Ok(once)
        }
        (0, None) => Err(("it fires once when Quartz loads the file, which is not a fixed instant".to_owned(), HAND)),
        (-1, _) => fixed_rate(trigger, interval_ms, MisfirePolicy::Skip, before(trigger.end), changed),
        (1.., Some(start)) => {
            let last = repeats.checked_mul(interval_ms).and_then(|ms| start.ms().checked_add(ms)).map(Timestamp);
            let end = [last, before(trigger.end)].into_iter().flatten().min();
            fixed_rate(trigger, interval_ms, MisfirePolicy::FireOnceNow, end, changed)
        }
        (1.., None) => {
            let why =
                format!("it fires {repeats} more times after Quartz loads the file, which is not a fixed instant");
            Err((why, "write a start-time"))
        }
        (_, _) => Err((format!("the repeat count {repeats} is not known"), "correct it")),
    }
}

/// The last instant of an interval: at its end itself Quartz fires a cron trigger only.
fn before(end: Option<Timestamp>) -> Option<Timestamp> {
    end.map(|at| Timestamp(at.ms().saturating_sub(1)))
}

fn fixed_rate(
    trigger: &QuartzTrigger,
    every_ms: i64,
    smart: MisfirePolicy,
    end: Option<Timestamp>,
    changed: &mut Vec<String>,
) -> Result<Trigger, Why> {
    if every_ms < 1_000 || every_ms % 1_000 != 0 {
        let why = format!("the interval of {every_ms} ms is not a whole number of seconds");
        return Err((why, "make it whole seconds"));
    }
    if trigger.start.is_none() {
        changed.push(
            "Quartz counts from when it loads the file; here the instants count from when the job is made".to_owned(),
        );
    }
    let mut made = Trigger::fixed_rate(every_ms.unsigned_abs() / 1_000);
    let policy = misfire(trigger, smart, changed);
    if let Trigger::FixedRate { anchor_at, misfire_policy, end_at, start_at, .. } = &mut made {
        (*anchor_at, *misfire_policy, *end_at, *start_at) = (trigger.start, policy, end, trigger.start);
    }
    Ok(made)
}
