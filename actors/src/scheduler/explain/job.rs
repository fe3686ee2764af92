//! The reasons of a job, and of one of its instants.

use super::parts::{Pauses, holder, pause, span};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{ConcurrencyPolicy, JobStatus, JobView, MisfirePolicy, Trigger},
    limits::HOLDERS_NAMED,
    reason::ReasonCode,
    time::Timestamp,
    view::{
        LedgerEntryView, RunView,
        explain::{HolderKind, HolderView, ReasonTopic, ReasonView},
    },
    wait::WaitCode,
};

/// What is known of a job now.
pub(super) struct JobFacts<'a> {
    pub job: &'a JobView,
    pub open: &'a [RunView],
    /// Of a paused job: who paused it.
    pub paused_by: Option<&'a HolderView>,
    pub pauses: &'a Pauses,
    /// Why the node that has the job fires nothing.
    pub not_ready: &'a [String],
    pub now_ms: i64,
}

/// What is known of an instant.
pub(super) struct InstantFacts<'a> {
    pub job: &'a JobView,
    pub at_ms: i64,
    /// The ledger has something behind it.
    pub is_decided: bool,
    pub entries: Vec<LedgerEntryView>,
    /// Version of the definition by which the time was decided. None: the ledger does not have it.
    pub version: Option<u64>,
    /// First instant at or after it by the schedule of now.
    pub next: Option<Timestamp>,
    /// By the schedule of now it is taken away: by a window, a blackout or a change of the clocks.
    pub removed: Option<LedgerEntryView>,
}

fn schedule(code: ReasonCode, sentence: impl Into<String>) -> ReasonView {
    ReasonView::new(ReasonTopic::Schedule, code, sentence)
}

/// When it fires next, and all that keeps it from it.
pub(super) fn reasons(facts: &JobFacts<'_>) -> Vec<ReasonView> {
    let mut reasons = obstacles(facts);
    let keeps = !reasons.is_empty();
    reasons.extend(next_fire(facts, keeps));
    reasons.extend(open_runs(facts));
    reasons
}

/// What keeps every instant from making a run.
fn obstacles(facts: &JobFacts<'_>) -> Vec<ReasonView> {
    let JobFacts { job, pauses, .. } = facts;
    let name = &job.spec.name;
    let topic = |reason: ReasonView| ReasonView { topic: ReasonTopic::Schedule, ..reason };
    let mut reasons = Vec::new();
    if let Some(why) = &job.quarantine_reason {
        let sentence = format!("the job is in quarantine ({why}): it fires nothing until it is resumed");
        let reason = ReasonView::wait(WaitCode::JobQuarantined, sentence);
        reasons.push(topic(reason.freed_by(format!("campanile job resume {name}, after the cause has been fixed"))));
    }
    if job.status == JobStatus::Paused {
        let reason = ReasonView::wait(WaitCode::JobPaused, "the job is paused: its instants are skipped");
        let reason = reason.held_by(facts.paused_by.cloned());
        reasons.push(topic(reason.freed_by(format!("campanile job resume {name}"))));
    }
    if pauses.tenant || pauses.system {
        reasons.push(topic(pause(pauses, &job.spec.tenant_id)));
    }
    reasons.extend(facts.not_ready.iter().map(|why| {
        let sentence = format!("the node that has the job fires nothing now: {why}");
        schedule(ReasonCode::NodeNotReady, sentence).freed_by("see campanile doctor and the node's log")
    }));
    reasons
}

/// `keeps`: something else keeps it from firing, so that a missing instant says nothing about its schedule.
fn next_fire(facts: &JobFacts<'_>, keeps: bool) -> Option<ReasonView> {
    let JobFacts { job, open, now_ms, .. } = facts;
    let is_delay = match &job.spec.trigger {
        Trigger::Manual {} => {
            let reason = schedule(ReasonCode::NoSchedule, "the job has no schedule: it runs when somebody triggers it");
            return Some(reason.freed_by(format!("campanile job trigger {}", job.spec.name)));
        }
        Trigger::FixedDelay { .. } => true,
        Trigger::Cron { .. } | Trigger::FixedRate { .. } | Trigger::Once { .. } => false,
    };
    let Some(next) = job.next_fire_at else {
        if keeps {
            return None;
        }
        return Some(if is_delay && !open.is_empty() {
            let reason = schedule(ReasonCode::AfterOpenRun, "the next instant follows from the end of the open run");
            reason.held_by(open.iter().take(HOLDERS_NAMED).map(holder))
        } else {
            schedule(ReasonCode::NoMoreInstants, "the schedule of the job has no instant left")
                .freed_by("an edit of its trigger")
        });
    };
    if backlog_waits(facts, next) {
        let sentence =
            format!("instants since {next} were missed; under FIRE_ALL_MISSED they run in order, and a run is open");
        let reason = schedule(ReasonCode::BacklogWaits, sentence).held_by(open.iter().take(HOLDERS_NAMED).map(holder));
        return Some(reason.freed_by("the end of the open run, or concurrencyPolicy ALLOW"));
    }
    let left = next.ms() - now_ms;
    let sentence = if left > 0 {
        format!("the job is due next at {next}, in {}", span(left))
    } else {
        format!("the job was due at {next}, {} ago, and the node has not decided about it yet", span(-left))
    };
    Some(schedule(ReasonCode::NextFire, sentence))
}

fn backlog_waits(facts: &JobFacts<'_>, next: Timestamp) -> bool {
    let (policy, threshold_sec) = match &facts.job.spec.trigger {
        Trigger::Cron { misfire_policy, misfire_threshold_sec, .. }
        | Trigger::FixedRate { misfire_policy, misfire_threshold_sec, .. } => (*misfire_policy, *misfire_threshold_sec),
        Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => return false,
    };
    policy == MisfirePolicy::FireAllMissed
        && facts.job.spec.concurrency_policy != ConcurrencyPolicy::Allow
        && !facts.open.is_empty()
        && facts.now_ms - next.ms() > i64::from(threshold_sec) * 1_000
}

/// What an open run does to the next instant.
fn open_runs(facts: &JobFacts<'_>) -> Option<ReasonView> {
    let JobFacts { job, open, .. } = facts;
    if open.is_empty() || job.next_fire_at.is_none() {
        return None;
    }
    let then = match job.spec.concurrency_policy {
        ConcurrencyPolicy::Allow => return None,
        ConcurrencyPolicy::Forbid => "an instant that comes before it has ended is skipped (FORBID)",
        ConcurrencyPolicy::QueueOne => {
            "an instant that comes before it has ended waits for it, and further ones are skipped (QUEUE_ONE)"
        }
        ConcurrencyPolicy::Replace => "an instant that comes before it has ended stops it (REPLACE)",
    };
    let (count, runs) = (open.len(), if open.len() == 1 { "run of the job is" } else { "runs of the job are" });
    let sentence = format!("{count} {runs} open: {then}");
    let reason = schedule(ReasonCode::RunOpen, sentence).held_by(open.iter().take(HOLDERS_NAMED).map(holder));
    Some(reason.freed_by("the end of the run, or another concurrencyPolicy"))
}

fn about(code: ReasonCode, sentence: impl Into<String>) -> ReasonView {
    ReasonView::new(ReasonTopic::Instant, code, sentence)
}

/// What became of an instant.
pub(super) fn instant(facts: &InstantFacts<'_>) -> Vec<ReasonView> {
    if !facts.entries.is_empty() {
        return facts.entries.iter().map(entry).collect();
    }
    let at = Timestamp(facts.at_ms);
    let next = match facts.next {
        Some(next) if next == at => "by its schedule of now it is due then".to_owned(),
        Some(next) => format!("by its schedule of now it is due next at {next}"),
        None => "its schedule of now has no instant after it".to_owned(),
    };
    vec![match facts.version {
        Some(version) => {
            about(ReasonCode::NotAnInstant, format!("version {version} of the job was not due at {at}; {next}"))
        }
        None if facts.at_ms < facts.job.created_at.ms() => about(
            ReasonCode::BeforeTheJob,
            format!("the job was created at {}, after this time; {next}", facts.job.created_at),
        ),
        None if !facts.is_decided => {
            if facts.next == Some(at) {
                let holds = match facts.job.status {
                    JobStatus::Paused => ": the job is paused, and what comes meanwhile is skipped",
                    JobStatus::Enabled | JobStatus::Deleted => "",
                };
                about(ReasonCode::InstantToCome, format!("the instant {at} is not decided yet{holds}"))
            } else if facts.removed.as_ref().is_some_and(|held| held.reason == Some(SkipReason::NoCalendar)) {
                let sentence =
                    format!("the instant {at} is held: no version of the job's calendar says anything of its day");
                about(ReasonCode::InstantToCome, sentence)
                    .freed_by("a new version of the calendar (campanile calendar set)")
            } else if let Some(removed) = &facts.removed {
                let why = removed.reason.map_or("a change of the clocks excludes it", skipped);
                let sentence =
                    format!("the instant {at} makes no run: {why}; the ledger says so with the next run; {next}");
                about(ReasonCode::InstantRemoved, sentence)
            } else {
                about(ReasonCode::NotAnInstant, format!("the job is not due at {at}; {next}"))
            }
        }
        None => {
            about(ReasonCode::NotInTheLedger, format!("the ledger of the job does not have {at} (any more); {next}"))
        }
    }]
}

fn entry(entry: &LedgerEntryView) -> ReasonView {
    let when = match entry.until {
        Some(until) => format!("{} instants from {} to {until}", entry.count, entry.logical_time),
        None => format!("the instant {}", entry.logical_time),
    };
    let run = entry.run_id.map(|run| HolderView { id: Some(run.to_string()), ..HolderView::new(HolderKind::Run) });
    let because = entry.reason.map_or_else(String::new, |reason| format!(": {}", skipped(reason)));
    let reason = match entry.outcome {
        Outcome::Fired => about(ReasonCode::InstantFired, format!("{when} made a run")),
        Outcome::FiredLate => about(ReasonCode::InstantFired, format!("{when} made a run, more than a second late")),
        Outcome::Coalesced => {
            about(ReasonCode::InstantCoalesced, format!("{when} were missed, and one run stands for all of them"))
        }
        Outcome::Skipped => about(ReasonCode::InstantSkipped, format!("{when}: skipped{because}")),
        Outcome::Missed => about(ReasonCode::InstantMissed, format!("{when}: missed{because}")),
        Outcome::DstSkipped => {
            about(ReasonCode::InstantDstSkipped, format!("{when}: a change of the clocks excludes it (gap, overlap)"))
        }
    };
    reason.held_by(run)
}

/// Why instants were skipped or missed, as a sentence.
fn skipped(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Paused => "the job was paused",
        SkipReason::TenantPaused => "the tenant was paused",
        SkipReason::SystemPaused => "the whole system was paused",
        SkipReason::RunActive => "a run was active, and concurrencyPolicy is FORBID",
        SkipReason::OneQueued => "a run waited already, and concurrencyPolicy is QUEUE_ONE",
        SkipReason::QueueFull => "the job or its tenant had as many waiting runs as it may",
        SkipReason::Misfire => "it could only be decided later than misfireThresholdSec, and misfirePolicy is SKIP",
        SkipReason::CatchUpCap => "more instants were missed than maxCatchUp allows",
        SkipReason::Quarantined => "the job was in quarantine",
        SkipReason::Window => "it lies outside of the job's windows",
        SkipReason::Blackout => "it lies in a blackout of the job",
        SkipReason::Calendar => "the job's calendar excludes its day",
        SkipReason::NoCalendar => "no version of the job's calendar said anything of its day",
        SkipReason::Deleted => "the job was deleted",
        SkipReason::Edited => "the schedule was edited while it waited to be caught up",
        SkipReason::Restored => "it lies between a backup and its restore",
    }
}
