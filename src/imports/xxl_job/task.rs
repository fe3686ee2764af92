//! A row of `xxl_job_info` as a job.

use super::{Known, action};
use crate::{
    Place,
    draft::{CronRules, DEFAULT_TENANT, cron, open_hour, plain, serial},
    sql::Row,
    text,
};
use campanile_core::{
    cron::{CronExpr, find_zone},
    names::check_tenant,
};
use campanile_schema::{
    job::{Backoff, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, RetryPolicy, Trigger},
    limits::{ATTEMPTS_MAX, SECONDS_MAX},
    payload::Payload,
    time::Timestamp,
};
use serde_json::json;

const LABEL_ID: &str = "xxl.id";
const LABEL_GROUP: &str = "xxl.group";
const LABEL_ALARM: &str = "xxl.alarmEmail";
/// XXL-JOB calls an instant a misfire when it is so much late, seconds.
const THRESHOLD_SEC: u32 = 5;
/// XXL-JOB looks for runs that failed at this interval, seconds.
const RETRY_SEC: f64 = 10.0;

/// A task that can be a job.
pub struct Task {
    pub id: i64,
    /// Without its trigger.
    pub spec: JobSpec,
    pub trigger: Trigger,
    /// Whether it is stopped (`trigger_status` 0).
    pub is_stopped: bool,
    pub children: Vec<i64>,
    pub changed: Vec<String>,
    pub place: Place,
}

impl Task {
    pub fn origin(&self) -> String {
        origin(self.id, self.spec.display_name.as_deref().unwrap_or_default())
    }
}

fn origin(id: i64, description: &str) -> String {
    format!("task {id} {}", text::shown(description))
}

/// What it is, why it makes no job, and what to do.
type Refusal = (String, String, &'static str);

pub fn read(row: &Row, place: Place, known: &Known<'_>) -> Result<Task, Refusal> {
    let options = known.options;
    let described = row.words("job_desc");
    let Some(id) = row.number("id") else {
        return Err((text::shown(&described), "its row has no id".to_owned(), "dump the whole table"));
    };
    let refused = |(reason, advice): (String, &'static str)| (origin(id, &described), text::sentence(&reason), advice);
    let mut changed = Vec::new();
    let trigger = trigger(row, known, &mut changed).map_err(refused)?;
    let route = row.words("executor_route_strategy");
    if route == "SHARDING_BROADCAST" {
        let reason =
            "the route strategy SHARDING_BROADCAST runs it on all executors at once; a run here has one executor";
        return Err(refused((reason.to_owned(), "make a job for each executor's pool, or split its work by params")));
    }
    let tenant = options.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    let mut spec = plain(tenant, &text::name(&["xxl", &id.to_string()]), Trigger::Manual {});
    spec.display_name = text::display_name(&described);
    spec.owner = text::display_name(&row.words("author"));
    spec.labels.insert(LABEL_ID.to_owned(), id.to_string());
    alarm(row, &mut spec, &mut changed);
    pool(row, known, &mut spec, &mut changed);
    block_strategy(row, &mut spec, &mut changed);
    limits(row, &mut spec, &mut changed);
    let param = row.words("executor_param");
    let action = action::of(row, &param, &mut changed).map_err(refused)?;
    if action.takes_params && !param.is_empty() {
        spec.params = Payload::from_value(&json!({"jobParam": param}));
    }
    spec.action = Some(action.action);
    let children = children(&row.words("child_jobid")).map_err(refused)?;
    let is_stopped = is_stopped(row, known, &mut changed);
    Ok(Task { id, spec, trigger, is_stopped, children, changed, place })
}

/// Before 2.1.0 there is no such column, and all tasks run.
fn is_stopped(row: &Row, known: &Known<'_>, changed: &mut Vec<String>) -> bool {
    if row.cells.contains_key("trigger_status") {
        return !row.flag("trigger_status");
    }
    let has_default = known.has_status || row.cells.contains_key("schedule_type");
    if has_default {
        changed.push("its row has no trigger_status, which stands for 0, stopped: the job is made paused".to_owned());
    }
    has_default
}

fn alarm(row: &Row, spec: &mut JobSpec, changed: &mut Vec<String>) {
    let address = row.words("alarm_email");
    if !address.trim().is_empty() {
        spec.labels.insert(LABEL_ALARM.to_owned(), text::label(&address));
        changed.push(format!(
            "no mail is sent to {}; the address is kept as the label {LABEL_ALARM}",
            text::shown(&address)
        ));
    }
}

fn pool(row: &Row, known: &Known<'_>, spec: &mut JobSpec, changed: &mut Vec<String>) {
    let group = row.number("job_group");
    let application = group.and_then(|group| known.groups.get(&group));
    if let Some(application) = application {
        spec.labels.insert(LABEL_GROUP.to_owned(), text::label(application));
    }
    match (&known.options.pool, application) {
        (Some(pool), _) => pool.clone_into(&mut spec.executor_selector),
        (None, Some(application)) if check_tenant("pool", application).is_ok() => {
            application.clone_into(&mut spec.executor_selector);
        }
        (None, _) => {
            let group = group.map_or_else(|| "none".to_owned(), |group| group.to_string());
            changed.push(format!(
                "its group {group} has no name in the dump that a pool can have: the pool is {}",
                spec.executor_selector
            ));
        }
    }
}

fn block_strategy(row: &Row, spec: &mut JobSpec, changed: &mut Vec<String>) {
    match row.words("executor_block_strategy").as_str() {
        "DISCARD_LATER" => spec.concurrency_policy = ConcurrencyPolicy::Forbid,
        "COVER_EARLY" => spec.concurrency_policy = ConcurrencyPolicy::Replace,
        "SERIAL_EXECUTION" | "" => serial(spec, changed),
        other => {
            serial(spec, changed);
            changed.push(format!("the block strategy {} is not known", text::shown(other)));
        }
    }
}

/// Retries and the time of a run.
fn limits(row: &Row, spec: &mut JobSpec, changed: &mut Vec<String>) {
    let retries = row.number("executor_fail_retry_count").unwrap_or(0).max(0);
    if retries > 0 {
        let attempts = u32::try_from(retries).unwrap_or(u32::MAX).saturating_add(1).min(ATTEMPTS_MAX);
        spec.retry_policy = RetryPolicy {
            max_attempts: attempts,
            backoff: Backoff::Fixed,
            base_delay_sec: RETRY_SEC,
            max_delay_sec: RETRY_SEC,
            jitter: 0.0,
            max_elapsed_sec: None,
        };
        if i64::from(attempts) <= retries {
            changed.push(format!("it retries {retries} times there, and {} times here", attempts - 1));
        }
    }
    let timeout = row.number("executor_timeout").and_then(|seconds| u64::try_from(seconds).ok());
    if let Some(seconds) = timeout.filter(|seconds| *seconds > 0) {
        spec.timeout_sec = seconds.min(SECONDS_MAX);
    }
}

fn children(text: &str) -> Result<Vec<i64>, (String, &'static str)> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut found: Vec<i64> = Vec::new();
    for id in ids {
        let id = id.parse().map_err(|_| {
            (
                format!("child_jobid '{}' is not a list of ids", text::shown(text)),
                "correct it in XXL-JOB and dump again",
            )
        })?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

fn trigger(row: &Row, known: &Known<'_>, changed: &mut Vec<String>) -> Result<Trigger, (String, &'static str)> {
    // Before 2.3.0 there is a cron expression and nothing else.
    let (kind, conf) = match row.text("schedule_type") {
        Some(kind) => (kind, row.words("schedule_conf")),
        None => ("CRON".to_owned(), row.words("job_cron")),
    };
    let misfire = match row.words("misfire_strategy").as_str() {
        "FIRE_ONCE_NOW" => MisfirePolicy::FireOnceNow,
        "DO_NOTHING" | "" => MisfirePolicy::Skip,
        other => {
            changed.push(format!(
                "the misfire strategy {} is not known: missed instants are left out",
                text::shown(other)
            ));
            MisfirePolicy::Skip
        }
    };
    match kind.as_str() {
        "NONE" | "" => Ok(Trigger::Manual {}),
        "CRON" => of_cron(row, &conf, misfire, known, changed),
        "FIX_RATE" => {
            let Some(seconds) = conf.trim().parse::<u64>().ok().filter(|seconds| *seconds > 0) else {
                return Err((format!("FIX_RATE '{}' is not a number of seconds", text::shown(&conf)), "correct it"));
            };
            let mut made = Trigger::fixed_rate(seconds);
            if let Trigger::FixedRate { anchor_at, misfire_policy, misfire_threshold_sec, .. } = &mut made {
                *anchor_at = row.number("trigger_next_time").filter(|ms| *ms > 0).map(Timestamp);
                (*misfire_policy, *misfire_threshold_sec) = (misfire, THRESHOLD_SEC);
            }
            Ok(made)
        }
        "FIX_DELAY" => match conf.trim().parse::<u64>() {
            Ok(seconds) if seconds > 0 => Ok(Trigger::fixed_delay(seconds)),
            Ok(_) | Err(_) => {
                Err((format!("FIX_DELAY '{}' is not a number of seconds", text::shown(&conf)), "correct it"))
            }
        },
        other => {
            Err((format!("the schedule type '{}' is not known", text::shown(other)), "write a cron expression there"))
        }
    }
}

fn of_cron(
    row: &Row,
    expr: &str,
    misfire: MisfirePolicy,
    known: &Known<'_>,
    changed: &mut Vec<String>,
) -> Result<Trigger, (String, &'static str)> {
    let expr = expr.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Err(error) = CronExpr::parse(&expr, Dialect::Quartz, 0) {
        let advice = if error.never_fires { "stop it in XXL-JOB" } else { "correct the expression" };
        return Err((format!("the expression '{}': {error}", text::shown(&expr)), advice));
    }
    let options = known.options;
    // Only some releases have a zone for each task.
    let own = row.text("schedule_timezone").filter(|zone| !zone.trim().is_empty());
    let zone = own.as_deref().map(str::trim).or(options.zone.as_deref()).unwrap_or(&options.machine_zone);
    if let Err(error) = find_zone(zone) {
        return Err((format!("the zone '{}': {error}", text::shown(zone)), "write a name such as Asia/Shanghai"));
    }
    // It reads expressions with Quartz' own code.
    let (dialect, gap, overlap) = (Dialect::Quartz, Gap::Skip, Overlap::Second);
    let made = cron(&expr, zone, CronRules { dialect, gap, overlap, misfire, threshold_sec: THRESHOLD_SEC });
    changed.extend(open_hour(&made, options.now_ms, "XXL-JOB leaves out the hour that comes the first time"));
    Ok(made)
}
