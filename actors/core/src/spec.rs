//! Checks a caller's job spec and converts it to the stored form. Dialect, anchor and instant are filled in, so that
//! the meaning of what is stored never depends on when it is read.

use crate::{
    cron::{CronError, CronExpr, CronSchedule, find_zone},
    names::check_word,
    once::{self, LAST_INSTANT_MS},
    reject::Rejection,
    schedule::Schedule,
};
use campanile_schema::{
    error::ErrorCode,
    hooks::{Hook, HookKind},
    ids::name_hash,
    job::{Action, JobSpec, Trigger},
    limits,
    shape::shortened,
    stored::{MASK, Sealed, StoredJob, StoredTrigger},
    time::{Moment, Timestamp},
};

pub use crate::names::{check_name, check_tenant};

fn invalid(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::InvalidArgument, message)
}

/// A checked spec in its stored form. `sealed`: the secret params after sealing (None when there are none).
/// `old`: the definition that is replaced; FIXED_RATE keeps its anchor, and masked secrets keep their values.
pub fn resolve(
    spec: &JobSpec,
    sealed: Option<Sealed>,
    old: Option<&StoredJob>,
    now_ms: i64,
) -> Result<StoredJob, Rejection> {
    check_name(&spec.name)?;
    check_tenant("tenantId", &spec.tenant_id)?;
    check_tenant("executorSelector", &spec.executor_selector)?;
    check_numbers(spec)?;
    check_sizes(spec)?;
    check_secrets(spec, old)?;
    check_instants(&spec.trigger)?;
    check_hooks(spec)?;
    check_target(spec)?;
    check_dag(spec)?;
    check_texts(spec)?;
    check_windows(spec)?;
    check_calendar(spec)?;
    let trigger = resolve_trigger(spec, old, now_ms)?;
    let sealed = sealed.or_else(|| old.and_then(|o| o.secrets.clone()).filter(|_| masked(spec)));
    let stored = StoredJob::from_spec(spec, trigger, sealed);
    check_fires(&stored, now_ms)?;
    // A graph has a limit of its own.
    let graph = stored.graph().map_or(0, |graph| graph.encoded_bytes());
    let size = campanile_schema::frame::encode(&stored).len() - graph;
    if size > limits::DEFINITION_BYTES {
        return Err(Rejection::new(
            ErrorCode::BodyTooLarge,
            format!("the definition takes {size} bytes; at most {} are allowed", limits::DEFINITION_BYTES),
        ));
    }
    Ok(stored)
}

/// All secrets were given back masked, as they were read.
pub fn masked(spec: &JobSpec) -> bool {
    !spec.secret_params.is_empty() && spec.secret_params.values().all(|v| v == MASK)
}

/// Masked values stand for the stored ones, so all are given masked, of the names that are stored, or none is.
fn check_secrets(spec: &JobSpec, old: Option<&StoredJob>) -> Result<(), Rejection> {
    let stored = old.and_then(|o| o.secrets.as_ref()).map_or(&[][..], |s| &s.names);
    // They become names in the environment of commands. Those that an earlier release took may stay.
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = |name: &str| !name.is_empty() && name.len() <= limits::SECRET_NAME_BYTES && name.chars().all(fits);
    if let Some(wrong) = spec.secret_params.keys().find(|name| !is_name(name) && !stored.contains(*name)) {
        return Err(invalid(format!(
            "secretParams: '{}' is not a name (1 to {} letters, digits, '.', '_', '-')",
            shortened(wrong),
            limits::SECRET_NAME_BYTES
        )));
    }
    if !spec.secret_params.values().any(|v| v == MASK) {
        return Ok(());
    }
    if masked(spec)
        && spec.secret_params.len() == stored.len()
        && stored.iter().all(|n| spec.secret_params.contains_key(n))
    {
        return Ok(());
    }
    Err(invalid(format!(
        "secretParams: '{MASK}' keeps the stored values only when all of them are given so; else give every value"
    )))
}

/// What a job of attempts has, and a DAG has not: its nodes have it.
fn check_dag(spec: &JobSpec) -> Result<(), Rejection> {
    let Some(Action::Dag(_)) = &spec.action else { return Ok(()) };
    let plain = JobSpec::new(&spec.tenant_id, &spec.name, spec.trigger.clone());
    if spec.retry_policy != plain.retry_policy {
        return Err(invalid("retryPolicy: a DAG has no attempts; leave it out and set it for the jobs of its nodes"));
    }
    if spec.max_runtime_sec.is_some() {
        return Err(invalid("maxRuntimeSec: it is over all attempts, and a DAG has none; set action.timeoutSec"));
    }
    if spec.timeout_sec != plain.timeout_sec {
        return Err(invalid(
            "timeoutSec: it is per attempt, and a DAG has none; for a whole run set action.timeoutSec",
        ));
    }
    if !spec.secret_params.is_empty() {
        return Err(invalid("secretParams: a DAG has no body; give them to the jobs of its nodes"));
    }
    Ok(())
}

/// The downstream that bodies call. A DAG has no body.
fn check_target(spec: &JobSpec) -> Result<(), Rejection> {
    match (&spec.target, &spec.action) {
        (Some(_), Some(Action::Dag(_))) => {
            Err(invalid("target: a DAG has no body; leave it out and set it for the jobs of its nodes"))
        }
        (Some(target), _) => check_tenant("target", target),
        (None, _) => Ok(()),
    }
}

/// Texts for people: of any language, but without characters that only move the cursor of a terminal.
fn check_texts(spec: &JobSpec) -> Result<(), Rejection> {
    let line = |field: &str, text: Option<&String>| match text {
        Some(text) if text.chars().count() > limits::DISPLAY_NAME_CHARS => {
            Err(invalid(format!("{field}: at most {} characters are allowed", limits::DISPLAY_NAME_CHARS)))
        }
        Some(text) if text.chars().any(char::is_control) => {
            Err(invalid(format!("{field}: control characters are not allowed, also no line breaks")))
        }
        Some(_) | None => Ok(()),
    };
    line("displayName", spec.display_name.as_ref())?;
    line("owner", spec.owner.as_ref())?;
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c));
    if spec.description.as_ref().is_some_and(|text| text.len() > limits::DESCRIPTION_BYTES || !is_plain(text)) {
        let most = limits::DESCRIPTION_BYTES;
        return Err(invalid(format!("description: at most {most} bytes without control characters are allowed")));
    }
    if spec.annotations.len() > limits::ANNOTATIONS {
        return Err(invalid(format!("annotations: at most {} are allowed", limits::ANNOTATIONS)));
    }
    for (key, value) in &spec.annotations {
        if key.is_empty() || key.len() > limits::ANNOTATION_KEY_BYTES || key.chars().any(char::is_control) {
            return Err(invalid(format!(
                "annotations: '{}' is not a key (1 to {} bytes without control characters)",
                shortened(key),
                limits::ANNOTATION_KEY_BYTES
            )));
        }
        if value.len() > limits::ANNOTATION_BYTES || !is_plain(value) {
            return Err(invalid(format!(
                "annotations['{}']: at most {} bytes without control characters are allowed",
                shortened(key),
                limits::ANNOTATION_BYTES
            )));
        }
    }
    Ok(())
}

/// Windows and blackouts: their number, their zones, and that they have something to remove.
pub fn check_windows(spec: &JobSpec) -> Result<(), Rejection> {
    let (windows, blackouts) = (&spec.windows, &spec.blackouts);
    if let (Trigger::Manual {}, true) = (&spec.trigger, spec.has_windows()) {
        return Err(invalid("windows and blackouts: a MANUAL trigger has no instants; leave them out"));
    }
    if windows.len() > limits::WINDOWS {
        return Err(invalid(format!("windows: at most {} are allowed", limits::WINDOWS)));
    }
    if blackouts.len() > limits::BLACKOUTS {
        return Err(invalid(format!("blackouts: at most {} are allowed", limits::BLACKOUTS)));
    }
    for (n, window) in windows.iter().enumerate() {
        if let Some(Err(error)) = window.timezone.as_deref().map(find_zone) {
            return Err(Rejection::new(ErrorCode::UnknownTimezone, format!("windows[{n}].timezone: {error}")));
        }
    }
    for (n, blackout) in blackouts.iter().enumerate() {
        if blackout.from >= blackout.to {
            return Err(invalid(format!("blackouts[{n}].to must lie after from")));
        }
        if [blackout.from, blackout.to].iter().any(|at| !(0..=LAST_INSTANT_MS).contains(&at.ms())) {
            return Err(invalid(format!("blackouts[{n}] must lie between the years 1970 and 9998")));
        }
        let reason = blackout.reason.as_deref().unwrap_or_default();
        let most = limits::BLACKOUT_REASON_CHARS;
        if reason.chars().count() > most || reason.chars().any(char::is_control) {
            let why =
                format!("blackouts[{n}].reason: at most {most} characters, and no control characters, are allowed");
            return Err(invalid(why));
        }
    }
    Ok(())
}

/// What a job says of a calendar. Whether the calendar is there only its tenant's home shard knows.
fn check_calendar(spec: &JobSpec) -> Result<(), Rejection> {
    let Some(calendar) = &spec.calendar else { return Ok(()) };
    if let Trigger::Manual {} = &spec.trigger {
        return Err(invalid("calendar: a MANUAL trigger has no instants; leave it out"));
    }
    check_tenant("calendar.name", &calendar.name)?;
    if let Some(Err(error)) = calendar.timezone.as_deref().map(find_zone) {
        return Err(Rejection::new(ErrorCode::UnknownTimezone, format!("calendar.timezone: {error}")));
    }
    Ok(())
}

fn check_hooks(spec: &JobSpec) -> Result<(), Rejection> {
    for kind in HookKind::ALL {
        let (field, hooks) = (kind.field(), spec.hooks.of(kind));
        if hooks.len() > limits::HOOKS_OF_KIND {
            return Err(invalid(format!("hooks.{field}: at most {} jobs are allowed", limits::HOOKS_OF_KIND)));
        }
        hooks.iter().try_for_each(|hook| check_hook(spec, kind, hook))?;
    }
    if spec.hooks.on_dead_letter.is_empty() {
        return Ok(());
    }
    if let Some(Action::Dag(_)) = &spec.action {
        return Err(invalid("hooks.onDeadLetter: a DAG makes no dead letter; set it for the jobs of its nodes"));
    }
    if !spec.dead_letter {
        return Err(invalid(
            "hooks.onDeadLetter: deadLetter is false, so no run is a dead letter; use hooks.onFailure, or leave deadLetter out",
        ));
    }
    Ok(())
}

fn check_hook(spec: &JobSpec, kind: HookKind, hook: &Hook) -> Result<(), Rejection> {
    let field = kind.field();
    check_word(&format!("hooks.{field}.job"), &hook.job, limits::NAME_CHARS, "._-/")?;
    if hook.job == spec.name {
        return Err(invalid(format!("hooks.{field}.job: a job cannot be its own hook")));
    }
    if hook.compensation && kind == HookKind::Success {
        return Err(invalid(format!(
            "hooks.{field}.compensation: a run that succeeded is not undone; leave it out, or use hooks.onFailure"
        )));
    }
    if !hook.params.is_object() {
        return Err(invalid(format!("hooks.{field}.params: an object is wanted: write {{\"name\": value}}")));
    }
    if hook.params.len() > limits::HOOK_PARAMS_BYTES {
        let (bytes, most) = (hook.params.len(), limits::HOOK_PARAMS_BYTES);
        let why = format!("hooks.{field}.params take {bytes} bytes; at most {most} are allowed");
        return Err(Rejection::new(ErrorCode::BodyTooLarge, why));
    }
    Ok(())
}

fn check_instants(trigger: &Trigger) -> Result<(), Rejection> {
    let named = match trigger {
        Trigger::Cron { start_at, end_at, .. } | Trigger::FixedDelay { start_at, end_at, .. } => {
            [("startAt", *start_at), ("endAt", *end_at), ("at", None)]
        }
        Trigger::FixedRate { anchor_at, start_at, end_at, .. } => {
            [("startAt", *start_at), ("endAt", *end_at), ("anchorAt", *anchor_at)]
        }
        // A local time is checked when it becomes an instant.
        Trigger::Once { at, .. } => [("at", at.and_then(Moment::instant)), ("at", None), ("at", None)],
        Trigger::Manual {} => return Ok(()),
    };
    for (field, instant) in named {
        if instant.is_some_and(|t| !(0..=LAST_INSTANT_MS).contains(&t.ms())) {
            return Err(invalid(format!("trigger.{field} must lie between the years 1970 and 9998")));
        }
    }
    Ok(())
}

fn check_numbers(spec: &JobSpec) -> Result<(), Rejection> {
    let retry = &spec.retry_policy;
    if !(1..=limits::ATTEMPTS_MAX).contains(&retry.max_attempts) {
        return Err(invalid(format!("retryPolicy.maxAttempts must be 1 to {}", limits::ATTEMPTS_MAX)));
    }
    let seconds = 0.0..=limits::SECONDS_MAX as f64;
    if !seconds.contains(&retry.base_delay_sec) || !seconds.contains(&retry.max_delay_sec) {
        return Err(invalid(format!("retryPolicy delays must be 0 to {} seconds", limits::SECONDS_MAX)));
    }
    if !(0.0..=1.0).contains(&retry.jitter) {
        return Err(invalid("retryPolicy.jitter must be 0.0 to 1.0"));
    }
    if !(1..=limits::SECONDS_MAX).contains(&spec.timeout_sec) {
        return Err(invalid(format!("timeoutSec must be 1 to {}", limits::SECONDS_MAX)));
    }
    for (field, value) in
        [("maxRuntimeSec", spec.max_runtime_sec), ("retryPolicy.maxElapsedSec", retry.max_elapsed_sec)]
    {
        if value.is_some_and(|seconds| !(1..=limits::SECONDS_MAX).contains(&seconds)) {
            return Err(invalid(format!("{field} must be 1 to {}; leave it out for no limit", limits::SECONDS_MAX)));
        }
    }
    if spec.priority > limits::PRIORITY_MAX {
        return Err(invalid(format!("priority must be 0 to {}", limits::PRIORITY_MAX)));
    }
    let resources = &spec.resources;
    if !(resources.cpu.is_finite() && (0.0..=100_000.0).contains(&resources.cpu)) {
        return Err(invalid("resources.cpu must be 0 to 100000 cores"));
    }
    Ok(())
}

fn check_sizes(spec: &JobSpec) -> Result<(), Rejection> {
    if spec.labels.len() > limits::LABELS {
        return Err(invalid(format!("at most {} labels", limits::LABELS)));
    }
    for (key, value) in &spec.labels {
        if key.is_empty() || key.len() > limits::LABEL_BYTES || value.len() > limits::LABEL_BYTES {
            return Err(invalid(format!("label '{key}': key and value take 1 to {} bytes", limits::LABEL_BYTES)));
        }
    }
    if spec.params.len() > limits::PARAMS_BYTES {
        return Err(Rejection::new(
            ErrorCode::BodyTooLarge,
            format!("params take {} bytes; at most {} are allowed", spec.params.len(), limits::PARAMS_BYTES),
        ));
    }
    crate::action::check(spec)
}

fn seconds(field: &str, value: u64) -> Result<i64, Rejection> {
    if (1..=limits::SECONDS_MAX).contains(&value) {
        return Ok(value as i64 * 1000);
    }
    Err(invalid(format!("trigger.{field} must be 1 to {}", limits::SECONDS_MAX)))
}

/// The trigger with everything filled in that would otherwise depend on when it is read.
pub fn resolve_trigger(spec: &JobSpec, old: Option<&StoredJob>, now_ms: i64) -> Result<StoredTrigger, Rejection> {
    match &spec.trigger {
        Trigger::Cron { expr, dialect, timezone, gap, overlap, jitter_sec, max_catch_up, .. } => {
            check_spread(*jitter_sec, *max_catch_up)?;
            let (compiled, dialect) = CronExpr::parse(expr, *dialect, name_hash(&spec.tenant_id, &spec.name))
                .map_err(|e| Rejection::new(code_of(&e), format!("trigger.expr: {e}")))?;
            CronSchedule::new(compiled, timezone, *gap, *overlap)
                .map_err(|e| Rejection::new(ErrorCode::UnknownTimezone, format!("trigger.timezone: {e}")))?;
            Ok(StoredTrigger::Cron { expr: expr.into(), dialect, zone: timezone.into(), gap: *gap, overlap: *overlap })
        }
        Trigger::FixedRate { every_sec, anchor_at, jitter_sec, max_catch_up, .. } => {
            check_spread(*jitter_sec, *max_catch_up)?;
            let kept = match old.map(|o| &o.trigger) {
                Some(StoredTrigger::FixedRate { anchor_ms, .. }) => Some(*anchor_ms),
                Some(
                    StoredTrigger::Cron { .. }
                    | StoredTrigger::FixedDelay { .. }
                    | StoredTrigger::Once { .. }
                    | StoredTrigger::Manual {},
                )
                | None => None,
            };
            let every_ms = seconds("everySec", *every_sec)?;
            let anchor_ms = anchor_at.map(Timestamp::ms).or(kept).unwrap_or(now_ms + every_ms);
            Ok(StoredTrigger::FixedRate { every_ms, anchor_ms })
        }
        Trigger::FixedDelay { every_sec, .. } => {
            Ok(StoredTrigger::FixedDelay { every_ms: seconds("everySec", *every_sec)? })
        }
        Trigger::Once { at, delay_sec, delay_ms, timezone, misfire_threshold_sec, .. } => {
            let (at, delay_sec, delay_ms, timezone) = (*at, *delay_sec, *delay_ms, timezone.as_deref());
            let at_ms = once::instant_ms(&once::Written { at, delay_sec, delay_ms, timezone }, now_ms)?;
            let edited = old.is_some_and(|o| o.trigger == StoredTrigger::Once { at_ms });
            if !edited && at_ms < now_ms - i64::from(*misfire_threshold_sec) * 1000 {
                return Err(Rejection::new(
                    ErrorCode::ScheduleNeverFires,
                    "trigger.at lies in the past by more than misfireThresholdSec; give a later instant, or trigger the job by hand",
                ));
            }
            Ok(StoredTrigger::Once { at_ms })
        }
        Trigger::Manual {} => Ok(StoredTrigger::Manual {}),
    }
}

fn check_spread(jitter_sec: u32, max_catch_up: u32) -> Result<(), Rejection> {
    if jitter_sec > 86_400 {
        return Err(invalid("trigger.jitterSec must be 0 to 86400"));
    }
    if max_catch_up > limits::CATCH_UP_MAX {
        return Err(invalid(format!("trigger.maxCatchUp must be 0 to {}", limits::CATCH_UP_MAX)));
    }
    Ok(())
}

fn code_of(error: &CronError) -> ErrorCode {
    if error.never_fires { ErrorCode::ScheduleNeverFires } else { ErrorCode::InvalidSchedule }
}

/// Refuses a schedule that has no instant after `after_ms`, and says why. MANUAL is never due and is fine; a ONCE is
/// judged by its misfire threshold, in [`resolve_trigger`].
pub fn check_fires(stored: &StoredJob, after_ms: i64) -> Result<(), Rejection> {
    if let (Some(start), Some(end)) = (stored.start_ms, stored.end_ms)
        && start > end
    {
        return Err(invalid("trigger.startAt lies after trigger.endAt"));
    }
    let timed = match stored.trigger {
        StoredTrigger::Cron { .. } | StoredTrigger::FixedRate { .. } | StoredTrigger::FixedDelay { .. } => true,
        // Only windows can take away one that is still to come.
        StoredTrigger::Once { at_ms } => stored.windows.is_some() && at_ms > after_ms,
        StoredTrigger::Manual {} => false,
    };
    let first = |stored: &StoredJob| {
        // A later version of its calendar may bring the day.
        let schedule = Schedule::compile(&StoredJob { calendar: None, ..stored.clone() })
            .map_err(|e| Rejection::new(ErrorCode::InvalidSchedule, format!("trigger: {e}")))?;
        Ok(schedule.next(after_ms, Some(after_ms)))
    };
    if !timed || first(stored)?.is_some() {
        return Ok(());
    }
    let after = Timestamp(after_ms);
    if stored.windows.is_some()
        && let Some(due) = first(&StoredJob { windows: None, ..stored.clone() })?
    {
        let why = format!(
            "this never fires: windows and blackouts take away every instant of the trigger (the first would be {})",
            Timestamp(due)
        );
        return Err(Rejection::new(ErrorCode::ScheduleNeverFires, why));
    }
    let why = match (stored.end_ms, first(&StoredJob { end_ms: None, ..stored.clone() })?) {
        (Some(end), _) if end <= after_ms => format!("trigger.endAt {} is not after {after}", Timestamp(end)),
        (Some(end), Some(due)) => {
            format!(
                "the first instant after {after} would be {}, but trigger.endAt is {}",
                Timestamp(due),
                Timestamp(end)
            )
        }
        (Some(_) | None, _) => format!("trigger.expr has no instant after {after}; check day, month and year"),
    };
    Err(Rejection::new(ErrorCode::ScheduleNeverFires, format!("this never fires: {why}")))
}
