//! The tables of runs and jobs, whole: every state x every step, and every state x every command through `decide`.

use crate::support::{
    make::plain,
    sim::{Sim, ended},
    steps::step_of,
};
use campanile_core::{
    job::{
        Command, Reply, decide_next,
        table::{JobStep, Step, job_after, markdown, run_after},
    },
    reject::Rejection,
    shard::Pause,
};
use campanile_schema::{
    error::ErrorCode,
    event::SkipReason,
    ids::{ExecutorSession, RunId, Token},
    job::{ConcurrencyPolicy, JobStatus},
    record::{AttemptState, RunRecord, RunState},
    stored::{StoredJob, StoredTrigger},
    view::ConfirmDecision,
};
use std::sync::Arc;

const NOW: i64 = 1_782_000_000_000;

/// Every legal step; all others are illegal.
const LEGAL: [(Step, &[(RunState, RunState)]); 16] = {
    use RunState as S;
    [
        (Step::Release, &[(S::Pending, S::Queued)]),
        (Step::Hold, &[(S::Queued, S::Pending)]),
        (Step::Start, &[(S::Queued, S::Running)]),
        (Step::Suspect, &[(S::Running, S::SuspectedLost)]),
        (Step::Hear, &[(S::Running, S::Running), (S::SuspectedLost, S::Running)]),
        (Step::Stop, &[(S::Running, S::Running), (S::SuspectedLost, S::SuspectedLost)]),
        (Step::Retry, &[(S::Running, S::RetryWait), (S::SuspectedLost, S::RetryWait)]),
        (Step::RetryDue, &[(S::RetryWait, S::Queued)]),
        (Step::Requeue, &[(S::Running, S::Queued), (S::SuspectedLost, S::Queued)]),
        (Step::AskConfirm, &[(S::Running, S::NeedsConfirmation), (S::SuspectedLost, S::NeedsConfirmation)]),
        (Step::Confirm, &[(S::NeedsConfirmation, S::Queued)]),
        (
            Step::Succeed,
            &[(S::Running, S::Success), (S::SuspectedLost, S::Success), (S::NeedsConfirmation, S::Success)],
        ),
        (Step::Fail, &[(S::Running, S::Failed), (S::SuspectedLost, S::Failed), (S::NeedsConfirmation, S::Failed)]),
        (
            Step::TimeOut,
            &[
                (S::Queued, S::Timeout),
                (S::Running, S::Timeout),
                (S::RetryWait, S::Timeout),
                (S::SuspectedLost, S::Timeout),
            ],
        ),
        (
            Step::Cancel,
            &[
                (S::Pending, S::Canceled),
                (S::Queued, S::Canceled),
                (S::Running, S::Canceled),
                (S::RetryWait, S::Canceled),
                (S::SuspectedLost, S::Canceled),
                (S::NeedsConfirmation, S::Canceled),
            ],
        ),
        (
            Step::Reopen,
            &[
                (S::Success, S::Queued),
                (S::Failed, S::Queued),
                (S::Timeout, S::Queued),
                (S::Canceled, S::Queued),
                (S::Skipped, S::Queued),
            ],
        ),
    ]
};

#[test]
fn every_state_and_every_step_of_a_run() {
    assert_eq!(LEGAL.map(|l| l.0), Step::ALL);
    for (step, legal) in LEGAL {
        for from in RunState::ALL {
            let after = legal.iter().find(|l| l.0 == *from).map(|l| l.1);
            assert_eq!(run_after(*from, step), after, "{step:?} from {from}");
        }
    }
}

#[test]
fn every_state_and_every_step_of_a_job() {
    use JobStatus as J;
    let rows = [
        (JobStep::Pause, [Some(J::Paused), Some(J::Paused), None]),
        (JobStep::Resume, [Some(J::Enabled), Some(J::Enabled), None]),
        (JobStep::Replace, [Some(J::Enabled), Some(J::Paused), None]),
        (JobStep::Delete, [Some(J::Deleted), Some(J::Deleted), None]),
        (JobStep::Trigger, [Some(J::Enabled), None, None]),
    ];
    assert_eq!(rows.map(|r| r.0), JobStep::ALL);
    for (step, after) in rows {
        assert_eq!([J::Enabled, J::Paused, J::Deleted].map(|from| job_after(from, step)), after, "{step:?}");
    }
}

/// `docs/states.md` holds exactly the table. `UPDATE_GOLDEN=1` writes it.
#[test]
fn the_docs_show_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/states.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, markdown()).unwrap();
    }
    let shown = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(shown, markdown(), "write it with UPDATE_GOLDEN=1");
}

/// A job whose run is in a state, the run, and its record when it has ended.
struct Case {
    sim: Sim,
    run: RunId,
    record: RunRecord,
}

fn definition(state: RunState) -> StoredJob {
    let mut def = plain(StoredTrigger::Manual {});
    def.max_attempts = if matches!(state, RunState::Failed | RunState::Timeout) { 1 } else { 3 };
    def.not_idempotent = state == RunState::NeedsConfirmation;
    def.concurrency = if state == RunState::Pending { ConcurrencyPolicy::QueueOne } else { ConcurrencyPolicy::Forbid };
    def
}

fn trigger(key: &str) -> Command {
    Command::Trigger { key: Some(key.to_owned()), params: None, reason: None, by: None, sealed: None }
}

fn start(run: RunId) -> Command {
    Command::Start { run, executor: "x".into(), session: ExecutorSession(1), credential: None, credit_stamp_ms: 0 }
}

/// `None`: no command makes such a run (SKIPPED is for DAG nodes).
fn case(state: RunState) -> Option<Case> {
    use {AttemptState as A, RunState as S};
    let mut sim = Sim::create(definition(state), NOW, true);
    sim.command(&trigger("a")).unwrap();
    let mut run = sim.job.hot.runs[0].id();
    let attempt_ends = |sim: &mut Sim, state: Option<A>| {
        sim.command(&start(run)).unwrap();
        let token = sim.job.run(run).unwrap().token().unwrap();
        if let Some(state) = state {
            sim.finish(run, token, state);
        }
        token
    };
    match state {
        S::Queued => {}
        S::Pending => {
            attempt_ends(&mut sim, None);
            sim.command(&trigger("b")).unwrap();
            run = sim.job.hot.runs[1].id();
        }
        S::Running => drop(attempt_ends(&mut sim, None)),
        S::SuspectedLost => {
            let token = attempt_ends(&mut sim, None);
            sim.command(&Command::Suspect { run, token }).unwrap();
        }
        S::RetryWait | S::NeedsConfirmation | S::Failed => drop(attempt_ends(&mut sim, Some(A::Failed))),
        S::Success => drop(attempt_ends(&mut sim, Some(A::Success))),
        S::Timeout => drop(attempt_ends(&mut sim, Some(A::Timeout))),
        S::Canceled => drop(sim.command(&Command::Cancel { run, reason: None }).unwrap()),
        S::Skipped => return None,
    }
    let record =
        sim.job.run(run).map(|r| r.record.clone()).or_else(|| sim.finals.last().cloned().map(Arc::new)).unwrap();
    assert_eq!(record.state, state);
    Some(Case { sim, run, record: Arc::unwrap_or_clone(record) })
}

/// How a command is answered.
fn answer(result: &Result<(Vec<campanile_schema::event::Event>, Reply), Rejection>) -> char {
    match result {
        Ok((events, _)) if !events.is_empty() => 'E',
        Ok((_, Reply::Stale)) => 'S',
        Ok((_, Reply::Unchanged)) => 'U',
        Ok((_, Reply::Done | Reply::Run(_) | Reply::Final(_) | Reply::Backfill(_))) => '-',
        Err(rejection) => match rejection.code {
            ErrorCode::IllegalState => 'i',
            ErrorCode::NotFound => 'n',
            ErrorCode::JobPaused => 'p',
            ErrorCode::RunActive => 'a',
            ErrorCode::StaleVersion => 'v',
            ErrorCode::JobQueueFull | ErrorCode::TenantQuota => 'q',
            ErrorCode::Overloaded => 'o',
            other => panic!("rejected as {other:?}"),
        },
    }
}

fn commands(case: &Case) -> Vec<(String, Command)> {
    let (run, job) = (case.run, case.sim.job.id);
    let token = case.sim.job.run(run).and_then(|r| r.token()).or(case.record.attempts.last().map(|a| a.token));
    let token = token.unwrap_or(Token(77_000));
    let stale = Token(token.0 + 1);
    let record = || Box::new(case.record.clone());
    let mut all = vec![
        ("Start".to_owned(), start(run)),
        ("Suspect".to_owned(), Command::Suspect { run, token }),
        ("Suspect, stale".to_owned(), Command::Suspect { run, token: stale }),
        ("Heard".to_owned(), Command::Heard { run, token, session: ExecutorSession(1) }),
        ("Heard, new session".to_owned(), Command::Heard { run, token, session: ExecutorSession(2) }),
        ("Heard, stale".to_owned(), Command::Heard { run, token: stale, session: ExecutorSession(1) }),
        ("Lost".to_owned(), Command::Lost { run, token }),
        ("Lost, stale".to_owned(), Command::Lost { run, token: stale }),
        ("Cancel".to_owned(), Command::Cancel { run, reason: None }),
        ("Reopen".to_owned(), Command::Reopen { record: record(), redrive: false, reason: None, force: false }),
        ("Redrive".to_owned(), Command::Reopen { record: record(), redrive: true, reason: None, force: false }),
        ("Discard".to_owned(), Command::Discard { record: record() }),
        ("Trigger, same key".to_owned(), trigger(case.record.key.as_deref().unwrap())),
        ("Trigger, other key".to_owned(), trigger("c")),
    ];
    for state in AttemptState::ALL {
        all.push((format!("Finish {state}"), Command::Finish(Box::new(ended(job, run, token, *state)))));
        all.push((format!("Finish {state}, stale"), Command::Finish(Box::new(ended(job, run, stale, *state)))));
    }
    for (name, decision) in [
        ("Confirm RERUN", ConfirmDecision::Rerun),
        ("Confirm SUCCEEDED", ConfirmDecision::Succeeded),
        ("Confirm FAILED", ConfirmDecision::Failed),
        ("Confirm ENDED", ConfirmDecision::Ended),
    ] {
        all.push((name.to_owned(), Command::Confirm { run, decision, reason: None }));
    }
    all.push(("Wake in a day".to_owned(), Command::Wake));
    all
}

/// E = events; U = unchanged, S = stale, - = the same answer again: without events; small letters are refusals: i = illegal
/// state, a = a run is active. Columns: PENDING (behind a running one), QUEUED, RUNNING, RETRY_WAIT, SUSPECTED_LOST,
/// NEEDS_CONFIRMATION, SUCCESS, FAILED, TIMEOUT, CANCELED. A key of a final run is the shard's to find.
const ANSWERS: [(&str, &str); 33] = [
    ("Start", "iEiiiiiiii"),
    ("Suspect", "UUEUUUUUUU"),
    ("Suspect, stale", "UUUUUUUUUU"),
    ("Heard", "SSUSESSSSS"),
    ("Heard, new session", "SSESESSSSS"),
    ("Heard, stale", "SSSSSSSSSS"),
    ("Lost", "SSESESSSSS"),
    ("Lost, stale", "SSSSSSSSSS"),
    ("Cancel", "EEEEEEiiii"),
    ("Reopen", "iiiiiiEEEE"),
    ("Redrive", "iiiiiiiEEi"),
    ("Discard", "iiiiiiiEEi"),
    ("Trigger, same key", "------EEEE"),
    ("Trigger, other key", "aaaaaaEEEE"),
    ("Finish RUNNING", "SSESESSSSS"),
    ("Finish RUNNING, stale", "SSSSSSSSSS"),
    ("Finish SUCCESS", "SSESESSSSS"),
    ("Finish SUCCESS, stale", "SSSSSSSSSS"),
    ("Finish FAILED", "SSESESSSSS"),
    ("Finish FAILED, stale", "SSSSSSSSSS"),
    ("Finish TIMEOUT", "SSESESSSSS"),
    ("Finish TIMEOUT, stale", "SSSSSSSSSS"),
    ("Finish CANCELED", "SSESESSSSS"),
    ("Finish CANCELED, stale", "SSSSSSSSSS"),
    ("Finish LOST", "SSESESSSSS"),
    ("Finish LOST, stale", "SSSSSSSSSS"),
    ("Finish NOT_STARTED", "SSESESSSSS"),
    ("Finish NOT_STARTED, stale", "SSSSSSSSSS"),
    ("Confirm RERUN", "iiiiiEiiii"),
    ("Confirm SUCCEEDED", "iiiiiEiiii"),
    ("Confirm FAILED", "iiiiiEiiii"),
    ("Confirm ENDED", "iiiiiiiiii"),
    ("Wake in a day", "E-EEE-----"),
];

#[test]
fn every_state_of_a_run_and_every_command() {
    let mut seen: Vec<(String, String)> = Vec::new();
    for state in RunState::ALL {
        let Some(case) = case(*state) else { continue };
        for (row, (name, command)) in commands(&case).into_iter().enumerate() {
            let result = decided(&case, &name, &command);
            if seen.len() <= row {
                seen.push((name, String::new()));
            }
            seen[row].1.push(answer(&result));
        }
    }
    // In the columns' order of `ANSWERS`, which is the states'.
    let wanted: Vec<(String, String)> = ANSWERS.map(|(name, row)| (name.to_owned(), row.to_owned())).into();
    for (seen, wanted) in seen.iter().zip(&wanted) {
        assert_eq!(seen, wanted);
    }
    assert_eq!(seen.len(), wanted.len());
}

/// Decides, and holds the events against the table.
fn decided(
    case: &Case,
    name: &str,
    command: &Command,
) -> Result<(Vec<campanile_schema::event::Event>, Reply), Rejection> {
    let mut context = case.sim.context(command.ids_wanted());
    if matches!(command, Command::Wake) {
        context.now_ms += 86_400_000;
    }
    let (decision, after) = decide_next(&case.sim.job, command, &context)?;
    let mut state = case.record.state;
    for event in &decision.events {
        let Some((run, step)) = step_of(event).filter(|s| s.0 == case.run) else { continue };
        let next = run_after(state, step);
        assert!(next.is_some(), "{name} in {}: {step:?} of {run} is not in the table", case.record.state);
        state = next.unwrap();
    }
    let open = after.run(case.run).map(|r| r.state());
    assert!(open == Some(state) || (open.is_none() && state.is_final()), "{name}: {open:?} is not {state}");
    if decision.events.is_empty() {
        assert_eq!(after.hot, case.sim.job.hot, "{name} changed the job without an event");
    }
    Ok((decision.events, decision.reply))
}

/// Columns: ENABLED, PAUSED, ENABLED in quarantine, DELETED, ENABLED with the tenant paused, ENABLED with a full queue,
/// ENABLED with a read model that is far behind. p = paused, n = not found, v = stale version, q = queue full, o = overloaded.
const JOB_ANSWERS: [(&str, &str); 9] = [
    ("Wake", "-------"),
    ("Pause", "EUEnEEE"),
    ("Resume", "UEEnUUU"),
    ("Replace", "EEEnEEE"),
    ("Replace, stale", "vvvnvvv"),
    ("Delete", "EEEnEEE"),
    ("Quarantine", "EEEEEEE"),
    ("Trigger", "Eppnpqo"),
    ("Reopen", "Eppnpqo"),
];

#[test]
fn every_state_of_a_job_and_every_command() {
    let case = case(RunState::Failed).unwrap();
    let mut seen = JOB_ANSWERS.map(|(name, _)| (name, String::new()));
    for column in 0..7 {
        let mut sim = Sim::create(definition(RunState::Failed), NOW, true);
        match column {
            1 => drop(sim.command(&Command::Pause { reason: None }).unwrap()),
            2 => drop(sim.command(&Command::Quarantine { reason: "q".to_owned() }).unwrap()),
            3 => drop(sim.command(&Command::Delete).unwrap()),
            _ => {}
        }
        let spec = || Box::new(definition(RunState::Success));
        let commands = [
            Command::Wake,
            Command::Pause { reason: None },
            Command::Resume,
            Command::Replace { version: 1, spec: spec() },
            Command::Replace { version: 7, spec: spec() },
            Command::Delete,
            Command::Quarantine { reason: "again".to_owned() },
            trigger("c"),
            Command::Reopen { record: Box::new(case.record.clone()), redrive: true, reason: None, force: false },
        ];
        for (row, command) in commands.iter().enumerate() {
            let mut context = sim.context(command.ids_wanted());
            let paused = Pause { from_ms: i64::MIN, to_ms: None, reason: SkipReason::TenantPaused };
            context.pauses = (column == 4).then_some(paused).into_iter().collect();
            context.queue_full = column == 5;
            context.overloaded = column == 6;
            let result = decide_next(&sim.job, command, &context).map(|(d, _)| (d.events, d.reply));
            seen[row].1.push(answer(&result));
        }
    }
    for (seen, wanted) in seen.iter().zip(JOB_ANSWERS) {
        assert_eq!((seen.0, seen.1.as_str()), wanted);
    }
}
