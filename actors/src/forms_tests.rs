//! Golden lines of the calls to shards and of their answers: `golden/forms.jsonl`. How to change a form is said in `golden_forms`.
#![allow(clippy::unwrap_used)]

#[path = "../../schema/tests/golden_forms/mod.rs"]
mod golden_forms;

use crate::calls::{
    BackfillAction, BackfillFacts, CreateKey, FinalAction, GraphAction, OutboxAction, ShardAnswer, ShardCall,
    TenantFacts, TenantUse,
};
use campanile_core::job::{Claimant, Command, Reply};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::PauseScope,
    graph::state::NodeState,
    ids::{Digest, ExecutorSession, SessionId, ShardId, Token},
    job::{JobSpec, JobStatus, JobView, Trigger},
    loan::{Level, Request, Wish},
    payload::Payload,
    peer::{
        lending::{Counts, TenantReport, TenantShare},
        outbox::{Deliver, Delivered, Parcel},
        pauses::Pause,
        runs::{LoadPart, LoadQuery, OpenRunsPart, RunFilter, RunPlace},
    },
    record::{AttemptState, RunState},
    rpc::executor::{Ended, FinishOutcome},
    stored::{
        Sealed, StoredJob, StoredTrigger,
        graph::{GraphRecord, StoredGraphRun, StoredNodeRun},
        outbox::{MessageId, MessageKind},
    },
    time::Timestamp,
    view::{
        Created, JobFilter, RunView,
        backfill::BackfillView,
        outbox::{OutboxMessageView, OutboxState},
    },
};
use golden_forms::{
    Coding, Forms,
    samples::{AT, JOB, RUN, audit, backfill, bulk, calendars, runs, tenant},
    variants,
};
use std::sync::Arc;

const TOKEN: Token = Token(41);
/// A definition is told in full: these parts of it refuse what they do not know, here too.
const IN_FULL: &[&str] = &["trigger", "action", "labels", "retryPolicy", "resources"];

#[test]
fn forms_keep_their_bytes() {
    let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/forms.jsonl"));
    calls(&mut forms);
    answers(&mut forms);
    forms.hold();
}

fn name() -> String {
    "finance".to_owned()
}

fn definition() -> StoredJob {
    StoredJob::from_spec(&JobSpec::new("finance", "close", Trigger::Manual {}), StoredTrigger::Manual {}, None)
}

fn counts() -> Counts {
    Counts { jobs: 12, running: 3, waiting: 400, wanted: 403, breaker: 0 }
}

fn claimant() -> Arc<Claimant> {
    let (session, credential) = (ExecutorSession(9_007_199_254_740_991), "blue-executors".into());
    Arc::new(Claimant { session, credential, pools: Some(vec!["default".into()]) })
}

fn ended() -> Ended {
    Ended {
        run: RUN,
        job: JOB,
        token: TOKEN,
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: Some(Payload("[1]".to_owned())),
        cpu_ms: Some(12),
        max_rss_kb: None,
        permanent: false,
    }
}

/// Calls that change something.
fn changing_calls() -> Vec<(&'static str, ShardCall)> {
    let once = CreateKey { key: Digest([7; 16]), print: Digest([200; 16]) };
    let scope = PauseScope::Tenant(name());
    let resume = || Command::Resume;
    let trigger = Command::Trigger { key: Some("manual_1".to_owned()), params: None, reason: None, by: None };
    let request = Request { session: SessionId(12), version: 5, wish: Wish::Hold { permits: 40 } };
    let report = TenantReport { tenant: name(), counts: counts(), request: Some(request) };
    let pause = Pause { scope: PauseScope::System, paused: true, version: 2 };
    let action = FinalAction::Reopen { redrive: true, reason: None, force: false };
    let filter = JobFilter {
        tenant_id: Some(name()),
        status: Some(JobStatus::Enabled),
        labels: Some("team=billing".to_owned()),
        text: Some("daily".to_owned()),
        page_token: Some("p2".to_owned()),
        page: Some(2),
        page_size: Some(50),
    };
    vec![
        ("", ShardCall::Create { spec: definition().into(), once: None }),
        ("with a key", ShardCall::Create { spec: definition().into(), once: Some(once) }),
        ("", ShardCall::Created(once)),
        ("", ShardCall::KeepCreate(once)),
        ("", ShardCall::CreateMany(vec![(0, definition()), (300, definition())])),
        ("", ShardCall::Command { job: JOB, command: resume() }),
        ("", ShardCall::Trigger { job: JOB, command: trigger }),
        ("", ShardCall::OnFinal { run: RUN, action }),
        ("", ShardCall::Finish(vec![ended()])),
        ("", ShardCall::FinishBy { by: claimant(), items: vec![ended()] }),
        ("", ShardCall::SetTenant(tenant())),
        ("", ShardCall::ChangePause { scope: scope.clone(), paused: true }),
        ("", ShardCall::SetPause { scope, paused: true, version: 2 }),
        ("", ShardCall::HoldPauses(vec![pause])),
        ("", ShardCall::DeleteTenant(name())),
        ("", ShardCall::Borrow { session: SessionId(12), reports: vec![report] }),
        ("", ShardCall::Remind(tenant())),
        ("", ShardCall::ListJobs { filter: filter.into(), after: JOB.0, limit: 50 }),
    ]
}

/// Messages to a shard of another node.
fn deliver() -> Deliver {
    let parcel = Parcel {
        id: MessageId(70_000),
        kind: MessageKind::Hook.code(),
        tenant: "finance".into(),
        job: Some("refund".into()),
        key: "\u{1}h11944/2/3".to_owned(),
        decided_ms: AT,
        marked: true,
        depth: 1,
        body: vec![0x81, 0xa1, 0x72, 7],
    };
    Deliver { from: ShardId(3), to: ShardId(17), at_ms: AT, parcels: vec![parcel] }
}

fn message() -> OutboxMessageView {
    OutboxMessageView {
        run_id: RUN,
        generation: 2,
        job_id: Some(JOB),
        tenant_id: name(),
        kind: MessageKind::Hook,
        target_job: Some("refund".to_owned()),
        state: OutboxState::Waiting,
        reason: None,
        decided_at: Timestamp(AT),
        given_up_at: None,
        may_have_run: false,
    }
}

fn calls(forms: &mut Forms) {
    let mut all = changing_calls();
    let pause = ShardCall::Command { job: JOB, command: Command::Pause { reason: Some("too loud".to_owned()) } };
    all.extend([
        ("", ShardCall::Holds { by: claimant(), run: RUN, token: TOKEN, attempt: 2 }),
        ("", ShardCall::TenantUse(name())),
        ("", ShardCall::GetJob(JOB)),
        ("", ShardCall::GetJobByName { tenant: name(), name: "close".to_owned() }),
        ("", ShardCall::GetRun(RUN)),
        ("", ShardCall::OpenRuns(JOB)),
        ("", ShardCall::TenantOfJob(JOB)),
        ("", ShardCall::GetSealed(JOB)),
        ("", ShardCall::GetTenant(name())),
        ("", ShardCall::Tenants),
        ("", ShardCall::WhyWaiting { run: RUN, tenant: name(), pool: "default".to_owned() }),
        ("", ShardCall::Deliver(Box::new(deliver()))),
        ("", ShardCall::ListOutbox { tenant: Some(name()), after: Some((RUN, 2)), limit: 50 }),
        ("", ShardCall::ChangeOutbox { run: RUN, action: OutboxAction::Resend }),
        ("", ShardCall::Audited { record: Box::new(audit::paused()), call: Box::new(pause) }),
        ("", ShardCall::Audit(vec![audit::paused()])),
        ("", ShardCall::ChangeGraph { run: RUN, action: GraphAction::RetryFailed { by: None, reason: None } }),
        ("", ShardCall::GetGraph(RUN)),
        ("", ShardCall::ListRuns { filter: RunFilter::default().into(), after: None, limit: 50 }),
        ("", ShardCall::DueLoad { query: load().into(), after: Some(JOB) }),
        ("behind a run", ShardCall::ListRuns { filter: RunFilter::default().into(), after: Some(place()), limit: 50 }),
        ("", ShardCall::BackfillFacts(JOB)),
        ("", ShardCall::GetBackfill(backfill::ID)),
        ("", ShardCall::GetBackfillOfJob(JOB)),
        ("", ShardCall::Bulk(Box::new(bulk::calls().remove(1).1))),
        ("", ShardCall::Calendar(calendars::calls().remove(2).1)),
        ("", ShardCall::ChangeBackfill { id: backfill::ID, action: BackfillAction::Resume }),
    ]);
    let variants = variants!(ShardCall: Create, Created, KeepCreate, CreateMany, Command, Trigger, OnFinal, Finish, FinishBy, Holds,
        SetTenant, ChangePause, SetPause, HoldPauses, DeleteTenant, TenantUse, GetJob, GetJobByName, GetRun, OpenRuns, TenantOfJob,
        GetSealed, GetTenant, Tenants, Borrow, Remind, WhyWaiting, ListJobs, Deliver, ListOutbox, ChangeOutbox,
        Audited, Audit, ChangeGraph, GetGraph, ListRuns, DueLoad, BackfillFacts, GetBackfill, GetBackfillOfJob,
        ChangeBackfill, Bulk, Calendar);
    // An older node answers a filter that it does not know as a call that it does not know.
    forms.enumeration("calls::ShardCall", Coding::named().but_under(&["filter"]), variants, all);
}

fn run() -> RunView {
    RunView { dag_run_id: None, dag_node: None, ..run_of_a_node() }
}

fn load() -> LoadQuery {
    LoadQuery { tenant: Some(name()), from_ms: AT, minutes: 60 }
}

fn place() -> RunPlace {
    RunPlace { created_ms: AT, run: RUN }
}

fn run_of_a_node() -> RunView {
    RunView::from(&runs()[1].1)
}

fn job() -> JobView {
    let at = Timestamp(AT);
    JobView {
        job_id: JOB,
        status: JobStatus::Paused,
        version: 2,
        created_at: at,
        updated_at: at,
        next_fire_at: Some(at),
        last_run_at: Some(at),
        last_run_state: Some(RunState::Failed),
        run_count: 12,
        quarantine_reason: Some("three panics".to_owned()),
        spec: definition().to_spec(),
    }
}

fn graph() -> GraphRecord {
    let node = StoredNodeRun { state: NodeState::Active, generation: 1, run: Some(RUN), marked: false, held: false };
    let state = StoredGraphRun {
        nodes: vec![node],
        generation: 1,
        stops: 0,
        finished: None,
        logical_ms: Some(AT),
        marks: Vec::new(),
        results: Vec::new(),
        failures: Vec::new(),
        paused: None,
    };
    GraphRecord { version: 2, print: 1 << 60, graph: None, state }
}

fn facts_of_backfill() -> BackfillFacts {
    BackfillFacts { definition: Box::new(definition()), created_ms: AT - 9, cursor_ms: AT, seq: 70_000, first: true }
}

fn answers(forms: &mut Forms) {
    let created = || Created { job_id: JOB, status: JobStatus::Enabled, next_fire_at: Some(Timestamp(AT)) };
    let refused = ApiError::new(ErrorCode::DuplicateName, "the tenant has a job of this name");
    let facts = TenantFacts { limits: Some(tenant()), paused: true, counts: Some(counts()), paused_itself: true };
    let level = Level { version: 5, permits: 40 };
    let terms =
        TenantShare { tenant: name(), limits: Some(tenant()), level, share: 20, rate: 1.25, elsewhere: counts() };
    let sealed = Sealed {
        names: vec!["password".to_owned()],
        key_id: "k1".to_owned(),
        nonce: (0..24).collect(),
        ciphertext: vec![0xde, 0xad, 0xbe, 0xef],
    };
    let outcomes = vec![FinishOutcome::Durable, FinishOutcome::Stale, FinishOutcome::Again];
    let all = [
        ("", ShardAnswer::Done(())),
        ("", ShardAnswer::Created(created())),
        ("", ShardAnswer::CreatedBefore(Some(created()))),
        ("nothing", ShardAnswer::CreatedBefore(None)),
        ("", ShardAnswer::CreatedMany(vec![(0, Ok(created())), (300, Err(refused))])),
        ("", ShardAnswer::Reply(Reply::Unchanged)),
        ("", ShardAnswer::Job(Box::new(job()))),
        ("", ShardAnswer::Jobs(vec![job()])),
        ("", ShardAnswer::Run(Some(Box::new(run())))),
        ("of a node", ShardAnswer::Run(Some(Box::new(run_of_a_node())))),
        ("nowhere", ShardAnswer::Run(None)),
        ("", ShardAnswer::Runs(vec![run()])),
        ("", ShardAnswer::Name(name())),
        ("", ShardAnswer::Tenant(facts)),
        ("", ShardAnswer::TenantUse(TenantUse { jobs: 12, open_runs: 400 })),
        ("", ShardAnswer::Names(vec![name()])),
        ("", ShardAnswer::Terms(vec![terms])),
        ("", ShardAnswer::Why(Some("no executor of the pool has a free slot".to_owned()))),
        ("it does not wait", ShardAnswer::Why(None)),
        ("", ShardAnswer::Sealed(Some(sealed))),
        ("none", ShardAnswer::Sealed(None)),
        ("", ShardAnswer::Finished(outcomes)),
        ("", ShardAnswer::Version(2)),
        ("", ShardAnswer::Holds(true)),
        ("", ShardAnswer::Delivered(Delivered::Later(1_000))),
        ("", ShardAnswer::Messages(vec![message()])),
        ("none", ShardAnswer::Graph(None)),
        ("", ShardAnswer::Graph(Some(Box::new(graph())))),
        ("", ShardAnswer::Load(LoadPart { counts: vec![3, 0], jobs: 2, next: Some(JOB), is_cut: false })),
        ("", ShardAnswer::OpenRuns(OpenRunsPart { items: vec![run()], next: Some(place()) })),
        ("", ShardAnswer::BackfillFacts(Box::new(facts_of_backfill()))),
        (
            "",
            ShardAnswer::Backfill(Box::new(BackfillView { job_id: JOB, tenant_id: name(), ..BackfillView::default() })),
        ),
        ("", ShardAnswer::Bulk(Box::new(bulk::answers().remove(3).1))),
        ("", ShardAnswer::Calendars(vec![calendars::record()])),
    ];
    let variants = variants!(ShardAnswer: Done, Created, CreatedBefore, CreatedMany, Reply, Job, Jobs, Run, Runs, Name, Tenant,
        TenantUse, Names, Terms, Why, Sealed, Finished, Version, Holds, Delivered, Messages, Graph, OpenRuns, Load,
        BackfillFacts, Backfill, Bulk, Calendars);
    forms.enumeration("calls::ShardAnswer", Coding::named().but_under(IN_FULL), variants, all);
}
