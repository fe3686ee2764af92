//! The reasons of a run.

use super::parts::{Pauses, holder, pause, span};
use campanile_schema::{
    event::Outcome,
    job::{Action, JobView},
    limits::{HOLDERS_NAMED, LATE_MS, LEASE_MS},
    reason::ReasonCode,
    record::{HookFailure, RunState, Source},
    time::Timestamp,
    view::{
        LedgerEntryView, RunView, SuspiciousView,
        dag::DagRunView,
        explain::{HolderKind, HolderView, ReasonTopic, ReasonView},
        outbox::FailedHookView,
    },
    wait::WaitCode,
};

/// What is known of a run. Lists are empty where the reason of the run does not ask for them.
pub(super) struct RunFacts {
    pub run: RunView,
    /// None: it was deleted.
    pub job: Option<JobView>,
    /// Open runs of the job.
    pub open: Vec<RunView>,
    /// Runs of the tenant that hold a permit and a slot of an executor for which the run waits, some of them.
    pub running: Vec<RunView>,
    /// Of a paused job: who paused it.
    pub job_paused_by: Option<HolderView>,
    pub pauses: Pauses,
    /// Of a run of a DAG: its nodes.
    pub dag: Option<DagRunView>,
    /// Of the ledger, about the instant of the run.
    pub entry: Option<LedgerEntryView>,
    pub now_ms: i64,
}

impl RunFacts {
    /// A pause of the tenant does not hold it.
    fn is_channel(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.spec.action, Some(Action::Webhook { .. })))
    }
    pub fn is_dag(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.spec.action, Some(Action::Dag(_))))
    }
}

pub(super) fn reasons(facts: &RunFacts) -> Vec<ReasonView> {
    let mut reasons = origin(facts);
    reasons.extend(waits(facts));
    reasons.extend(late(facts));
    reasons.extend(end(facts));
    reasons.extend(too_short(&facts.run));
    reasons.extend(facts.run.failed_hooks.iter().map(|hook| failed_hook(&facts.run, hook)));
    reasons
}

fn origin(facts: &RunFacts) -> Vec<ReasonView> {
    let run = &facts.run;
    let about = |code, sentence: String| ReasonView::new(ReasonTopic::Origin, code, sentence);
    let due = run.logical_time.unwrap_or(run.created_at);
    let mut reasons = vec![match run.source {
        Source::Schedule => about(ReasonCode::ScheduleDue, format!("the schedule of the job was due at {due}")),
        Source::Manual => triggered(run),
        Source::Dag => {
            let node = run.dag_node.map(|node| format!("the node with the number {node}")).unwrap_or_default();
            let dag =
                run.dag_run_id.map(|dag| HolderView { id: Some(dag.to_string()), ..HolderView::new(HolderKind::Run) });
            about(ReasonCode::DagNode, format!("it is the run of {node} of a run of a DAG")).held_by(dag)
        }
        Source::Event | Source::Compensation => {
            about(ReasonCode::Hook, "a hook of another job of the tenant started it".to_owned())
        }
        Source::Backfill | Source::Replay => {
            about(ReasonCode::PastInstant, format!("it was asked for, for the instant {due} of the past"))
        }
    }];
    if run.generation > 1 {
        let sentence = format!("it had ended and was started again: this is its generation {}", run.generation);
        reasons.push(about(ReasonCode::RunAgain, sentence));
    }
    reasons
}

fn triggered(run: &RunView) -> ReasonView {
    let by = run.triggered_by.as_ref().and_then(|by| by.who.clone());
    let who = by.as_deref().map_or_else(|| "somebody".to_owned(), |who| format!("'{who}'"));
    let caller = by.map(|who| HolderView {
        name: Some(who),
        since: Some(run.created_at),
        reason: run.reason.clone(),
        ..HolderView::new(HolderKind::Caller)
    });
    let sentence = format!("{who} triggered the job at {}", run.created_at);
    ReasonView::new(ReasonTopic::Origin, ReasonCode::Triggered, sentence).held_by(caller)
}

/// Whether a run of this state has no body because something keeps it from starting.
pub(super) fn waits_to_start(state: RunState) -> bool {
    match state {
        RunState::Pending | RunState::Queued | RunState::RetryWait => true,
        RunState::Running
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation
        | RunState::Success
        | RunState::Failed
        | RunState::Timeout
        | RunState::Canceled
        | RunState::Skipped => false,
    }
}

/// Why it is not running, or does not end.
pub(super) fn waits(facts: &RunFacts) -> Vec<ReasonView> {
    let run = &facts.run;
    let mut reasons: Vec<ReasonView> = facts.dag.iter().filter_map(open_nodes).collect();
    let known = run.wait_reason.as_deref().and_then(WaitCode::of);
    reasons.extend(known.map(|(code, sentence)| wait(facts, code, sentence)));
    reasons.extend(run.priority.filter(|_| waits_to_start(run.state)).map(|priority| own_priority(facts, priority)));
    // A run that waits for an executor says so, also when its tenant was paused since.
    let is_told = known.is_some_and(|(code, _)| code == WaitCode::TenantPaused);
    let paused = facts.pauses.system || (facts.pauses.tenant && !facts.is_channel());
    if paused && waits_to_start(run.state) && !is_told {
        reasons.push(pause(&facts.pauses, &run.tenant_id));
    }
    reasons
}

fn wait(facts: &RunFacts, code: WaitCode, sentence: &str) -> ReasonView {
    let run = &facts.run;
    let reason = ReasonView::wait(code, sentence);
    let job_name = facts.job.as_ref().map_or_else(|| run.job_id.to_string(), |job| job.spec.name.clone());
    let pool = facts.job.as_ref().map_or("", |job| job.spec.executor_selector.as_str());
    let tenant = &run.tenant_id;
    let holders = || facts.running.iter().filter(|other| other.run_id != run.run_id).map(holder);
    match code {
        WaitCode::HeldByConcurrencyPolicy => {
            let before = |other: &&RunView| other.run_id < run.run_id || other.state == RunState::Running;
            let ahead = facts.open.iter().filter(|other| other.run_id != run.run_id).filter(before);
            reason
                .held_by(ahead.take(HOLDERS_NAMED).map(holder))
                .freed_by("the end of the run that holds it (campanile run cancel RUN), or concurrencyPolicy ALLOW")
        }
        WaitCode::JobPaused => {
            reason.held_by(facts.job_paused_by.clone()).freed_by(format!("campanile job resume {job_name}"))
        }
        WaitCode::JobQuarantined => {
            reason.freed_by(format!("campanile job resume {job_name}, after the cause of the failures has been fixed"))
        }
        WaitCode::TenantPaused => pause(&facts.pauses, tenant),
        WaitCode::Starting => reason.freed_by("some seconds: the node asks which permits are in use"),
        WaitCode::TenantConcurrency => reason.held_by(holders()).freed_by(format!(
            "the end of a run of tenant '{tenant}', or a higher maxConcurrentRuns (campanile tenant set)"
        )),
        WaitCode::TenantRate => reason
            .held_by([HolderView { name: Some(tenant.clone()), ..HolderView::new(HolderKind::Tenant) }])
            .freed_by("its turn, or a higher maxTriggersPerSec (campanile tenant set)"),
        WaitCode::TargetBreakerOpen => {
            at_target(facts, reason).freed_by("time: one attempt is tried then, and more when it has worked")
        }
        WaitCode::TargetRecovering => at_target(facts, reason).freed_by("attempts at the target that work"),
        WaitCode::TargetRetryBudget => at_target(facts, reason)
            .freed_by("first attempts at the target, a minute, or a higher retryPercent (campanile target set)"),
        WaitCode::TargetConcurrency => at_target(facts, reason)
            .freed_by("the end of a run at the target, or a higher maxConcurrentRuns (campanile target set)"),
        WaitCode::TargetRate => {
            at_target(facts, reason).freed_by("its turn, or a higher maxRunsPerSec (campanile target set)")
        }
        WaitCode::NoExecutor => reason
            .held_by([HolderView { name: Some(pool.to_owned()), ..HolderView::new(HolderKind::Pool) }])
            .freed_by(format!("an executor of pool '{pool}' that connects (campanile executor --pool {pool})")),
        WaitCode::NoFit => reason
            .held_by([HolderView { name: Some(pool.to_owned()), ..HolderView::new(HolderKind::Pool) }])
            .freed_by(format!("an executor of pool '{pool}' {}", needs(facts))),
        WaitCode::NoCredit => {
            reason.held_by(holders()).freed_by(format!("the end of a run in pool '{pool}', or another executor of it"))
        }
        WaitCode::Binding => reason.freed_by("nothing more: it starts as soon as its start is durable"),
        WaitCode::DagPaused => {
            let pause = facts.dag.as_ref().and_then(|dag| dag.paused.as_ref());
            let caller = pause.map(|pause| HolderView {
                name: pause.by.clone(),
                since: Some(pause.since),
                reason: pause.reason.clone(),
                ..HolderView::new(HolderKind::Caller)
            });
            reason.held_by(caller).freed_by(format!("campanile dag resume {}", run.run_id))
        }
        WaitCode::NoNodeRoom => reason.freed_by("ends of other DAG runs of the shard"),
        WaitCode::BackfillYields => reason.freed_by(run.backfill_id.map_or_else(
            || "the ends of live runs, which go first".to_owned(),
            |backfill| format!("the ends of live runs, which go first (campanile backfill get {backfill})"),
        )),
        WaitCode::NodeDegraded => {
            reason.freed_by("a smaller backlog of the node's read model (campanile system info shows its level)")
        }
        WaitCode::WaitingForRetry => retry(facts, reason),
        WaitCode::NeedsConfirmation => {
            reason.freed_by(format!("a person: campanile run confirm {} DECISION", run.run_id))
        }
        WaitCode::SuspectedLost => reason.held_by(executor(run)).freed_by(format!(
            "a sign of its executor; without one the attempt is lost {} after the last",
            span(LEASE_MS)
        )),
        WaitCode::Stopping => reason
            .held_by(executor(run))
            .freed_by(format!("the end of its body; if it has ended, campanile run confirm {} ended", run.run_id)),
    }
}

fn own_priority(facts: &RunFacts, priority: u16) -> ReasonView {
    let of_job =
        facts.job.as_ref().map_or_else(String::new, |job| format!(" instead of its job's {}", job.spec.priority));
    let sentence = format!("it waits with a priority of its own, {priority}{of_job}");
    ReasonView::new(ReasonTopic::Wait, ReasonCode::OwnPriority, sentence)
        .freed_by(format!("nothing to wait for; campanile run priority {} N changes it", facts.run.run_id))
}

/// Held by the target of the job.
fn at_target(facts: &RunFacts, reason: ReasonView) -> ReasonView {
    let name = facts.job.as_ref().and_then(|job| job.spec.target.clone());
    reason.held_by(name.map(|name| HolderView { name: Some(name), ..HolderView::new(HolderKind::Target) }))
}

/// What an executor must be able to do.
fn needs(facts: &RunFacts) -> String {
    let Some(job) = &facts.job else { return "that fits".to_owned() };
    let what = match job.spec.resolved_action() {
        Action::Handler { name } => format!("has the handler '{name}'"),
        Action::Command { .. } => "runs commands".to_owned(),
        Action::Http { .. } => "runs HTTP actions".to_owned(),
        Action::Webhook { .. } => "sends webhooks".to_owned(),
        Action::Dag(_) => "fits".to_owned(),
    };
    let resources = &job.spec.resources;
    format!(
        "that {what} and has {} CPUs, {} MiB of memory and {} MiB of storage",
        resources.cpu, resources.memory_mb, resources.storage_mb
    )
}

fn executor(run: &RunView) -> Option<HolderView> {
    let name = run.executor_id.clone()?;
    Some(HolderView { name: Some(name), since: run.started_at, ..HolderView::new(HolderKind::Executor) })
}

fn retry(facts: &RunFacts, reason: ReasonView) -> ReasonView {
    let run = &facts.run;
    let at = run.next_retry_at.map_or_else(String::new, |at| format!(" at {at}"));
    let error = run.last_error.as_deref().unwrap_or("it failed");
    let most = facts.job.as_ref().map_or_else(String::new, |job| format!(" of {}", job.spec.retry_policy.max_attempts));
    ReasonView {
        sentence: format!("attempt {}{most} failed ({error}); the next one starts{at}", run.attempt_count),
        ..reason
    }
    .freed_by(format!("the end of the delay{at}"))
}

fn open_nodes(dag: &DagRunView) -> Option<ReasonView> {
    let open: Vec<_> = dag.nodes.iter().filter(|node| !node.state.is_final()).collect();
    if open.is_empty() {
        return None;
    }
    let running = open.iter().filter(|node| node.state.has_run());
    let holders = running.take(HOLDERS_NAMED).map(|node| HolderView {
        id: node.run_id.map(|run| run.to_string()),
        name: Some(node.id.clone()),
        state: Some(node.state.to_string()),
        ..HolderView::new(HolderKind::DagNode)
    });
    let sentence = format!("{} of its {} nodes have not ended", open.len(), dag.nodes.len());
    let reason = ReasonView::new(ReasonTopic::Wait, ReasonCode::DagNodesOpen, sentence).held_by(holders);
    Some(reason.freed_by("the ends of the runs of these nodes: explain them (campanile run explain RUN)"))
}

/// Why it began or ended later than it was due.
fn late(facts: &RunFacts) -> Vec<ReasonView> {
    let run = &facts.run;
    let mut reasons = Vec::new();
    let about = |code, sentence| ReasonView::new(ReasonTopic::Late, code, sentence);
    if let Some(due) = run.logical_time
        && facts.entry.as_ref().is_some_and(|entry| entry.outcome == Outcome::FiredLate)
    {
        let sentence = format!(
            "the node decided about the instant {} after it was due: it was stopped or busy, or it did not trust its clock",
            span(run.created_at.ms() - due.ms())
        );
        reasons.push(about(ReasonCode::DecidedLate, sentence));
    }
    if let Some(started) = run.started_at.filter(|_| run.generation == 1) {
        let waited = started.ms() - run.created_at.ms();
        if waited > LATE_MS {
            let sentence = format!("its first attempt began {} after the run was created", span(waited));
            reasons.push(about(ReasonCode::WaitedToStart, sentence));
        }
    }
    if let [before @ .., _] = run.attempts.as_slice()
        && let Some(last) = before.last()
    {
        let error = last.error_message.as_deref().or(last.error_code.as_deref()).unwrap_or("without an error text");
        let sentence =
            format!("{} attempts before the last one did not succeed, the last of them: {error}", before.len());
        reasons.push(about(ReasonCode::Retried, sentence));
    }
    if let Some(missed) = run.deadline_missed {
        let after = run.ended_at.filter(|_| run.state.is_final()).map(|ended| ended.ms() - missed.ms());
        let how = match after.filter(|after| *after > 0) {
            Some(after) => format!("it ended {} after that", span(after)),
            None if run.state.is_final() => "an earlier generation of it did".to_owned(),
            None => "hooks of onDeadline were started, and it goes on".to_owned(),
        };
        reasons.push(about(ReasonCode::DeadlineMissed, format!("it did not end by its deadline, {missed}: {how}")));
    }
    reasons
}

/// It may have done nothing.
fn too_short(run: &RunView) -> Option<ReasonView> {
    let SuspiciousView { min_duration_sec, duration_ms } = run.suspicious.as_ref()?;
    let took = span(duration_ms.cast_signed());
    let sentence = format!(
        "it succeeded in {took}, and its job says that it takes at least {min_duration_sec} s (minDurationSec)"
    );
    Some(ReasonView::new(ReasonTopic::End, ReasonCode::TooShort, sentence).freed_by("a look at its log and its result"))
}

fn end(facts: &RunFacts) -> Option<ReasonView> {
    let run = &facts.run;
    let ended = run.ended_at.filter(|_| run.state.is_final())?;
    let took = run
        .started_at
        .map_or_else(String::new, |Timestamp(started)| format!(", {} after it began", span(ended.ms() - started)));
    let why = match (&run.last_error, &run.reason) {
        (Some(error), _) => format!(": {error}"),
        (None, Some(reason)) if run.state == RunState::Canceled => format!(": {reason}"),
        (None, Some(_) | None) => String::new(),
    };
    let attempts = if run.attempt_count == 0 { String::new() } else { format!(" in attempt {}", run.attempt_count) };
    let sentence = format!("it ended {}{attempts} at {ended}{took}{why}", run.state);
    let reason = ReasonView::new(ReasonTopic::End, ReasonCode::Ended, sentence);
    let again = match run.state {
        RunState::Failed | RunState::Timeout | RunState::Canceled => {
            Some(format!("campanile run retry {}", run.run_id))
        }
        RunState::Success
        | RunState::Skipped
        | RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => None,
    };
    Some(ReasonView { freed_by: again, ..reason })
}

/// A hook whose job was not started, and what a person can do.
fn failed_hook(run: &RunView, failed: &FailedHookView) -> ReasonView {
    let FailedHookView { generation, hook, target_job, state, reason, .. } = failed;
    let why = reason.as_deref().unwrap_or("no answer");
    let what = format!("{hook} of generation {generation} did not start the job '{target_job}'");
    let by_hand = || Some(format!("campanile job trigger {target_job}"));
    let again = || Some(format!("campanile outbox resend {}", run.run_id));
    let (code, sentence, freed_by) = match state {
        HookFailure::Refused => (ReasonCode::HookRefused, format!("{what}, which was refused: {why}"), by_hand()),
        HookFailure::Dropped => (ReasonCode::HookDropped, format!("{what}, because it was not sent: {why}"), again()),
        HookFailure::Undelivered => {
            let sentence = format!(
                "nobody answered for a day whether {hook} of generation {generation} started the job '{target_job}'"
            );
            (ReasonCode::HookUndelivered, sentence, again())
        }
    };
    ReasonView { freed_by, ..ReasonView::new(ReasonTopic::End, code, sentence) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn facts(state: &str, wait_reason: Option<String>) -> RunFacts {
        let run = json!({
            "runId": 7, "jobId": 1, "tenantId": "finance", "state": state, "source": "MANUAL", "generation": 1,
            "attemptCount": 1, "createdAt": 1_000, "deadLetter": false, "waitReason": wait_reason, "executorId": "e1",
            "attempts": [],
        });
        let run = serde_json::from_value(run).unwrap();
        RunFacts {
            run,
            job: None,
            open: Vec::new(),
            running: Vec::new(),
            job_paused_by: None,
            pauses: Pauses::default(),
            dag: None,
            entry: None,
            now_ms: 5_000,
        }
    }

    /// Those that pass too quickly for a test on a node are among them: STARTING, BINDING, NO_NODE_ROOM.
    #[test]
    fn every_reason_to_wait_says_what_would_free_the_run_and_goes_with_its_fact() {
        for code in WaitCode::ALL {
            let of_run = waits(&facts("QUEUED", Some(code.because("so it is"))));
            assert_eq!(of_run.iter().map(|reason| reason.code.as_str()).collect::<Vec<_>>(), [code.as_str()]);
            assert!(of_run[0].freed_by.as_ref().is_some_and(|how| !how.is_empty()), "{}", code.as_str());
        }
        assert_eq!(waits(&facts("QUEUED", None)), []);
        assert_eq!(waits(&facts("QUEUED", Some("OF_A_NEWER_NODE: so it is".to_owned()))), []);
    }

    #[test]
    fn a_pause_is_told_beside_what_the_run_waits_for() {
        let mut waiting = facts("QUEUED", Some(WaitCode::NoExecutor.because("nobody is there")));
        waiting.pauses.tenant = true;
        let codes = |facts: &RunFacts| waits(facts).into_iter().map(|reason| reason.code).collect::<Vec<_>>();
        assert_eq!(codes(&waiting), ["NO_EXECUTOR", "TENANT_PAUSED"]);
        waiting.run.wait_reason = Some(WaitCode::TenantPaused.because("so it is"));
        assert_eq!(codes(&waiting), ["TENANT_PAUSED"]);
        let mut running = facts("RUNNING", None);
        running.pauses.tenant = true;
        assert_eq!(codes(&running), [""; 0], "bodies go on");
    }

    #[test]
    fn a_pause_names_whom_it_covers() {
        let sentence = |tenant, system| pause(&Pauses { tenant, system, by: None }, "finance").sentence;
        assert_eq!(sentence(true, false), "the tenant 'finance' is paused");
        assert_eq!(sentence(false, true), "the whole system is paused");
        assert_eq!(sentence(true, true), "the tenant 'finance' and the whole system are paused");
    }

    #[test]
    fn a_run_that_ended_says_how_and_one_that_is_open_does_not() {
        let codes = |facts: &RunFacts| reasons(facts).into_iter().map(|reason| reason.code).collect::<Vec<_>>();
        let mut failed = facts("FAILED", None);
        assert_eq!(codes(&failed), ["TRIGGERED"], "nobody knows when");
        (failed.run.started_at, failed.run.ended_at) = (Some(Timestamp(3_500)), Some(Timestamp(4_000)));
        failed.run.last_error = Some("no space left".to_owned());
        assert_eq!(codes(&failed), ["TRIGGERED", "WAITED_TO_START", "ENDED"]);
        let end = reasons(&failed).pop().unwrap();
        assert!(end.sentence.ends_with("0.5 s after it began: no space left"), "{}", end.sentence);
        assert_eq!(end.freed_by.as_deref(), Some("campanile run retry 7"));
        failed.run.generation = 2;
        assert_eq!(codes(&failed), ["TRIGGERED", "RUN_AGAIN", "ENDED"]);
    }

    #[test]
    fn a_run_tells_of_the_deadline_that_it_missed_and_that_it_was_too_short() {
        let mut facts = facts("RUNNING", None);
        facts.run.deadline_missed = Some(Timestamp(61_000));
        let missed = |facts: &RunFacts| {
            let code = ReasonCode::DeadlineMissed.as_str();
            reasons(facts).into_iter().find(|reason| reason.code == code).unwrap().sentence
        };
        assert!(missed(&facts).ends_with("and it goes on"), "{}", missed(&facts));
        (facts.run.state, facts.run.ended_at) = (RunState::Success, Some(Timestamp(71_000)));
        assert!(missed(&facts).ends_with("it ended 10 s after that"), "{}", missed(&facts));
        facts.run.suspicious = Some(SuspiciousView { min_duration_sec: 60, duration_ms: 400 });
        let short = reasons(&facts).pop().unwrap();
        assert_eq!(short.code, ReasonCode::TooShort.as_str());
        assert!(short.sentence.starts_with("it succeeded in 0.4 s"), "{}", short.sentence);
    }

    #[test]
    fn each_hook_that_did_not_start_its_job_is_told_with_what_a_person_can_do() {
        let mut facts = facts("FAILED", None);
        let hook = |state: &str| {
            let hook =
                json!({"generation": 1, "hook": "onFailure", "targetJob": "refund", "state": state, "at": 2_000});
            serde_json::from_value(hook).unwrap()
        };
        facts.run.failed_hooks = ["REFUSED", "DROPPED", "UNDELIVERED"].map(hook).into();
        let told = reasons(&facts);
        let code = |code: ReasonCode| told.iter().find(|reason| reason.code == code.as_str()).unwrap();
        let refused = code(ReasonCode::HookRefused);
        assert_eq!(refused.freed_by.as_deref(), Some("campanile job trigger refund"));
        assert!(refused.sentence.contains("onFailure of generation 1"), "{}", refused.sentence);
        for of in [ReasonCode::HookDropped, ReasonCode::HookUndelivered] {
            assert_eq!(code(of).freed_by.as_deref(), Some("campanile outbox resend 7"));
        }
    }
}
