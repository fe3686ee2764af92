//! Golden lines of what the core keeps of jobs and shards, and of what jobs are asked by other nodes: `golden/forms.jsonl`. How to
//! change a form is said in `golden_forms`.

use crate::golden_forms::{
    Coding, Forms,
    samples::{AT, JOB, RUN, audit, backfill, bulk, calendars, runs, tenant},
    variants,
};
use campanile_core::{
    graph::step::{EndState, GraphCommand, NodeEnd},
    job::{
        BackfillAsked, BackfillCommand, BackfillPage, BackfillStart, BulkCommand, BulkStep, Claimant, Command,
        HotState, NodeAsked, OpenRun, Reply, Taken,
    },
    ownership::loans::Loans,
    shard::{KeptCreate, PauseTimes, ShardState},
};
use campanile_schema::{
    event::PauseScope,
    graph::{
        change::GraphPause,
        state::{NodeFailure, NodeState},
    },
    ids::{Digest, Epoch, ExecutorSession, SessionId, ShardId, Token},
    job::{JobSpec, JobStatus, Trigger},
    loan::{Level, LoanEvent},
    payload::Payload,
    peer::shard::GraphAction,
    record::{AttemptState, RunRecord, Source},
    rpc::executor::Ended,
    stored::{StoredJob, StoredTrigger, backfill::BackfillMode},
    text::Text,
    view::{ConfirmDecision, RunView, backfill::BackfillView},
};
use std::sync::Arc;

const TOKEN: Token = Token(41);
const SESSION: ExecutorSession = ExecutorSession(9_007_199_254_740_991);

#[test]
fn forms_keep_their_bytes() {
    let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/forms.jsonl"));
    jobs(&mut forms);
    shards(&mut forms);
    commands(&mut forms);
    graphs(&mut forms);
    backfills(&mut forms);
    bulks(&mut forms);
    replies(&mut forms);
    forms.hold();
}

/// A run that an executor has.
fn record() -> RunRecord {
    runs().remove(0).1
}

fn definition() -> StoredJob {
    StoredJob::from_spec(&JobSpec::new("finance", "close", Trigger::Manual {}), StoredTrigger::Manual {}, None)
}

fn jobs(forms: &mut Forms) {
    let waiting = || OpenRun {
        record: record().into(),
        session: None,
        credential: None,
        retry_at_ms: None,
        stopping: None,
        stopping_since_ms: None,
        tried: 0,
        uncounted: 0,
        time_from_ms: None,
        graph: false,
    };
    let full = || OpenRun {
        record: record().into(),
        session: Some(SESSION),
        credential: Some("blue-executors".into()),
        retry_at_ms: Some(AT + 10_000),
        stopping: Some(2),
        stopping_since_ms: Some(AT + 30),
        tried: 1,
        uncounted: 2,
        time_from_ms: None,
        graph: false,
    };
    let in_time = || OpenRun { time_from_ms: Some(AT + 40), ..full() };
    let of_dag = || OpenRun { graph: true, ..waiting() };
    forms.samples(
        "state::OpenRun",
        Coding::named(),
        [
            ("waiting", waiting()),
            ("every field", full()),
            ("of a DAG", of_dag()),
            ("with the time that its limits count from", in_time()),
        ],
    );
    let created = HotState {
        status: JobStatus::Enabled,
        version: 1,
        created_ms: AT,
        updated_ms: AT,
        cursor_ms: AT,
        next_due_ms: None,
        delay_base_ms: AT,
        run_count: 0,
        last_run_ms: None,
        last_state: None,
        catch_up_ms: None,
        quarantine: None,
        runs: Vec::new(),
        backfill: None,
        bulk: None,
    };
    let busy = HotState {
        status: JobStatus::Paused,
        next_due_ms: Some(AT + 86_400_000),
        run_count: 1_000,
        last_run_ms: Some(AT - 1),
        last_state: Some(9),
        catch_up_ms: Some(AT + 5),
        quarantine: Some("three panics".to_owned()),
        runs: vec![full()],
        ..created.clone()
    };
    let (_, backfill) = backfill::stored().remove(0);
    let past = HotState { backfill: Some(Arc::new(backfill)), ..created.clone() };
    let of_bulk = HotState { bulk: Some(bulk::marks().remove(0).1), ..created.clone() };
    let all =
        [("created", created), ("every field", busy), ("with a backfill", past), ("of a bulk operation", of_bulk)];
    forms.samples("state::HotState", Coding::named(), all);
}

fn shards(forms: &mut Forms) {
    let kept = |job| KeptCreate { print: Digest([200; 16]), job, at_ms: AT };
    let all = [("every field", kept(Some(JOB))), ("in the key's shard", kept(None))];
    forms.samples("shard::KeptCreate", Coding::named(), all);
    let times = |to_ms| PauseTimes { from_ms: AT, to_ms };
    let all = [("it is over", times(Some(AT + 60_000))), ("it lasts", times(None))];
    forms.samples("shard::PauseTimes", Coding::named(), all);
    let mut loans = Loans::new(100);
    let session = SessionId(12);
    loans.apply(LoanEvent::Set { session, level: Level { version: 5, permits: 40 } });
    loans.apply(LoanEvent::Counted { shard: ShardId(7), epoch: Epoch(3), session });
    forms.samples(
        "loans::Loans",
        Coding::named(),
        [("every field", loans.clone()), ("nothing is lent", Loans::default())],
    );
    let scope = PauseScope::Tenant("finance".to_owned());
    let full = ShardState {
        counter: 70_000,
        seq: 1_000,
        hlc: AT as u64 * 1_000,
        tzdb: "2026b".to_owned(),
        tenants: [("finance".to_owned(), tenant())].into(),
        pauses: [(PauseScope::System, (false, 1)), (scope.clone(), (true, 2))].into(),
        pause_times: [(scope, vec![times(None)])].into(),
        creates: [(Digest([7; 16]), kept(Some(JOB)))].into(),
        loans: [("finance".to_owned(), loans)].into(),
        bulks: std::collections::BTreeMap::new(),
        calendars: std::collections::BTreeMap::new(),
        format: 0,
    };
    let (_, operation) = bulk::stored().remove(0);
    let with_bulk = ShardState { bulks: [(bulk::ID, operation)].into(), ..ShardState::default() };
    let of_calendar = calendars::record();
    let held = [(of_calendar.name.to_string(), of_calendar.versions)].into();
    let with_calendar =
        ShardState { calendars: [(of_calendar.tenant.to_string(), held)].into(), ..ShardState::default() };
    let of_format_2 = ShardState { format: 2, ..ShardState::default() };
    // Its maps have callers' names and scopes as keys.
    let coding = Coding::named().but_under(&["t", "p", "pt", "k", "l", "b", "cl"]);
    forms.samples(
        "shard::ShardState",
        coding,
        [
            ("every field", full),
            ("new", ShardState::default()),
            ("of format 2", of_format_2),
            ("with a bulk operation", with_bulk),
            ("with a calendar", with_calendar),
        ],
    );
}

fn ended() -> Ended {
    Ended {
        run: RUN,
        job: JOB,
        token: TOKEN,
        state: AttemptState::Failed,
        error_code: Some("EXIT_1".to_owned()),
        error_message: Some("exit code 1".to_owned()),
        result: Some(Payload("[1]".to_owned())),
        cpu_ms: Some(12),
        max_rss_kb: Some(34_567),
        permanent: true,
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn commands(forms: &mut Forms) {
    let by = |pools| Claimant { session: SESSION, credential: "blue-executors".into(), pools };
    let claimants = [("of two pools", by(Some(vec!["default".into(), "gpu".into()]))), ("of all pools", by(None))];
    forms.samples("claim::Claimant", Coding::named(), claimants);
    let start = |credential| Command::Start {
        run: RUN,
        executor: "executor-1".into(),
        session: SESSION,
        credential,
        credit_stamp_ms: 4_000,
    };
    let claimed = |claim| Command::Claimed { by: by(None).into(), claim: Box::new(claim) };
    let heard = || Command::Heard { run: RUN, token: TOKEN, session: SESSION };
    let params = || Some(Payload(r#"{"b":2}"#.to_owned()));
    let trigger = |by| Command::Trigger { key: text("manual_1"), params: params(), reason: text("re-run"), by };
    let record = || Box::new(record());
    let taken = Taken {
        key: "\u{1}h11944/2/3".to_owned(),
        source: Source::Event,
        params: Payload(r#"{"b":2}"#.to_owned()),
        reason: "hook of run 11944".to_owned(),
        depth: 1,
        confirm: false,
        marked: true,
        trace: None,
        budget: None,
    };
    let led = Taken { budget: Some(20), ..taken.clone() };
    let traced = Taken { trace: Some(audit::trace()), ..taken.clone() };
    let all = [("every field", taken.clone()), ("in a trace", traced), ("with a budget", led)];
    forms.samples("command::Taken", Coding::named(), all);
    let all = [
        ("", Command::Wake),
        ("", Command::Replace { version: 2, spec: definition().into() }),
        ("", Command::Pause { reason: None }),
        ("with a reason", Command::Pause { reason: text("too loud") }),
        ("", Command::Resume),
        ("", Command::Delete),
        ("", Command::Quarantine { reason: "three panics".to_owned() }),
        ("", Command::Trigger { key: None, params: None, reason: None, by: None }),
        ("every field", trigger(None)),
        ("of a caller", trigger(Some(audit::origin().into()))),
        ("", Command::Take(Box::new(taken))),
        ("", Command::StartNode(Box::new(asked(None)))),
        ("again", Command::StartNode(Box::new(asked(Some(record()))))),
        ("", Command::CancelNode(Box::new(asked(None)))),
        ("", Command::Graph { run: RUN, step: Box::new(GraphCommand::Wake) }),
        ("", Command::ChangeGraph { run: RUN, record: None, action: Box::new(retry()) }),
        ("ended", Command::ChangeGraph { run: RUN, record: Some(record()), action: Box::new(retry()) }),
        ("", start(None)),
        ("of a credential", start(Some("blue-executors".into()))),
        ("heard", claimed(heard())),
        ("finish", claimed(Command::Finish(Box::new(ended())))),
        ("", Command::Finish(Box::new(ended()))),
        ("", Command::Suspect { run: RUN, token: TOKEN }),
        ("", heard()),
        ("", Command::Lost { run: RUN, token: TOKEN }),
        ("", Command::Cancel { run: RUN, reason: None }),
        ("with a reason", Command::Cancel { run: RUN, reason: text("too late") }),
        ("", Command::Confirm { run: RUN, decision: ConfirmDecision::Rerun, reason: text("it is safe") }),
        ("", Command::Reopen { record: record(), redrive: true, reason: None, force: false }),
        ("forced", Command::Reopen { record: record(), redrive: false, reason: None, force: true }),
        ("", Command::Discard { record: record() }),
        ("", Command::Restored { skip: true }),
        ("", Command::Prioritize { run: RUN, priority: 900 }),
        ("", Command::Backfill(Box::new(BackfillCommand::Resume { id: backfill::ID }))),
        ("", Command::Bulk(Box::new(bulk_command(BulkStep::Pause)))),
    ];
    let variants = variants!(Command: Wake, Replace, Pause, Resume, Delete, Quarantine, Trigger, Take, StartNode, CancelNode, Graph,
        ChangeGraph, Start, Claimed, Finish,
        Suspect, Heard, Lost, Cancel, Confirm, Reopen, Discard, Restored, Backfill, Prioritize, Bulk);
    forms.enumeration("command::Command", Coding::named(), variants, all);
}

fn retry() -> GraphAction {
    GraphAction::RetryFailed { by: Some("ada".into()), reason: text("after the fix") }
}

fn asked(record: Option<Box<RunRecord>>) -> NodeAsked {
    NodeAsked {
        key: "\u{1}n11944/3".to_owned(),
        dag: RUN,
        node: 3,
        generation: 2,
        params: Payload(r#"{"b":2}"#.to_owned()),
        timeout_sec: Some(600),
        logical_ms: Some(AT),
        depth: 1,
        confirm: false,
        marked: true,
        back: false,
        record,
        trace: None,
        budget: None,
    }
}

fn graphs(forms: &mut Forms) {
    let traced = NodeAsked { trace: Some(audit::trace()), ..asked(None) };
    let back = NodeAsked { back: true, ..asked(None) };
    let led = NodeAsked { budget: Some(3), ..asked(None) };
    let samples = [
        ("every field", asked(None)),
        ("in a trace", traced),
        ("of a backfill", back),
        ("of a DAG run of a hook", led),
    ];
    forms.samples("command::NodeAsked", Coding::named(), samples);
    let end = |state| NodeEnd { node: 3, generation: 2, run: RUN, state, result: Some(Payload("[1]".to_owned())) };
    forms.samples("step::NodeEnd", Coding::named(), [("every field", end(EndState::Success))]);
    let states = [("", EndState::Success), ("", EndState::Failed), ("", EndState::Timeout), ("", EndState::Canceled)];
    let variants = variants!(EndState: Success, Failed, Timeout, Canceled);
    forms.enumeration("step::EndState", Coding::named(), variants, states);
    let (node, by, reason): (_, Option<Text>, _) = (3, Some("ada".into()), text("after the fix"));
    let all = [
        ("", GraphCommand::Wake),
        ("", GraphCommand::Taken { node, generation: 2, run: RUN }),
        ("", GraphCommand::Lost { node, generation: 2, why: NodeFailure::Refused }),
        ("", GraphCommand::End(end(EndState::Failed))),
        ("", GraphCommand::Cancel),
        ("", GraphCommand::Timeout),
        ("", GraphCommand::Retry { nodes: vec![1, 2], and_after: true, by: by.clone(), reason: reason.clone() }),
        ("", GraphCommand::Mark { node, state: NodeState::Skipped, by: by.clone(), reason: reason.clone() }),
        ("", GraphCommand::Pause(GraphPause { at_ms: AT, by: by.clone(), reason: reason.clone() })),
        ("", GraphCommand::Resume { by, reason }),
    ];
    let variants = variants!(GraphCommand: Wake, Taken, Lost, End, Cancel, Timeout, Retry, Mark, Pause, Resume);
    forms.enumeration("step::GraphCommand", Coding::named(), variants, all);
}

fn backfills(forms: &mut Forms) {
    let asked = |reason: Option<Text>| BackfillAsked {
        mode: BackfillMode::Failed,
        from_ms: AT - 86_400_000,
        to_ms: AT,
        parallelism: 8,
        unknown_run: true,
        hooks: true,
        plan: backfill::plan(),
        reason: reason.clone(),
        by: reason,
    };
    let all = [("every field", asked(Some("ada".into()))), ("short", asked(None))];
    forms.samples("backfill_command::BackfillAsked", Coding::named(), all);
    let start = |record: Option<RunRecord>| BackfillStart {
        at_ms: AT,
        before: backfill::passed(),
        params: record.as_ref().map(|_| Payload(r#"{"b":2}"#.to_owned())),
        record: record.map(Box::new),
    };
    let all = [("every field", start(Some(record()))), ("of a new run", start(None))];
    forms.samples("backfill_command::BackfillStart", Coding::named(), all);
    let tail = backfill::passed();
    let page = || BackfillPage { id: backfill::ID, after_ms: AT - 9, upto_ms: AT, starts: vec![start(None)], tail };
    forms.samples("backfill_command::BackfillPage", Coding::named(), [("every field", page())]);
    let (id, reason): (_, Option<Text>) = (backfill::ID, Some("later".into()));
    let all = [
        ("", BackfillCommand::Create(Box::new(asked(None)))),
        ("", BackfillCommand::Page(page())),
        ("", BackfillCommand::Step { id }),
        ("", BackfillCommand::Pause { id, reason: reason.clone() }),
        ("", BackfillCommand::Resume { id }),
        ("", BackfillCommand::Cancel { id, reason }),
    ];
    let variants = variants!(BackfillCommand: Create, Page, Step, Pause, Resume, Cancel);
    forms.enumeration("backfill_command::BackfillCommand", Coding::named(), variants, all);
}

fn bulk_command(step: BulkStep) -> BulkCommand {
    BulkCommand { bulk: bulk::ID, step, undo_of: None, reason: None }
}

fn bulks(forms: &mut Forms) {
    let short = bulk_command(BulkStep::Resume);
    let full = BulkCommand { undo_of: Some(bulk::ID), reason: text("too loud"), ..short.clone() };
    forms.samples("bulk_command::BulkCommand", Coding::named(), [("every field", full), ("short", short)]);
    let all = [
        ("", BulkStep::Pause),
        ("", BulkStep::Hold),
        ("", BulkStep::Resume),
        ("", BulkStep::Delete),
        ("", BulkStep::DeleteHeld),
    ];
    let variants = variants!(BulkStep: Pause, Hold, Resume, Delete, DeleteHeld);
    forms.enumeration("bulk_command::BulkStep", Coding::named(), variants, all);
}

fn replies(forms: &mut Forms) {
    let all = [
        ("", Reply::Done),
        ("", Reply::Unchanged),
        ("", Reply::Run(Box::new(RunView::from(&record())))),
        ("", Reply::Final(Box::new(record()))),
        ("", Reply::Stale),
        ("", Reply::Backfill(Box::new(BackfillView { backfill_id: Some(backfill::ID), ..BackfillView::default() }))),
    ];
    let variants = variants!(Reply: Done, Unchanged, Run, Final, Stale, Backfill);
    forms.enumeration("effect::Reply", Coding::named(), variants, all);
}
