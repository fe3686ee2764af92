//! Golden lines of `schema/src/peer` and `schema/src/stored`, and of the numbers and words of enums: `golden/forms.jsonl`. How to change
//! a form is said in `golden_forms`. Forms whose lines are in `golden/stored.jsonl` and `golden/rpc` are not repeated here.

mod words;

use crate::golden_forms::{
    Coding, Forms,
    samples::{self, AT, JOB, RUN, runs, tenant},
    variants,
};
use campanile_schema::{
    event::{Outcome, PauseScope, SkipReason},
    frame,
    graph::state::NodeState,
    ids::{Digest, Epoch, SessionId, ShardId},
    job::JobStatus,
    loan::{Level, Request, Wish},
    peer::{
        changes::{Change, ChangedItem, Copied, LogPlace},
        cluster_query::{ClusterQuery, NodeAnswer},
        gateway::{Hello, Item, Parcel, Receipt, Welcome},
        lending::{Counts, TenantReport, TenantShare},
        pauses::Pause,
        runs::{LoadPart, LoadQuery, OpenRunsPart, RunFilter, RunPlace},
        shard::{
            BackfillAction, BackfillFacts, CreateKey, FinalAction, GraphAction, OutboxAction, TenantFacts, TenantUse,
        },
    },
    record::{RunState, Source},
    stored::{
        TargetTerms,
        archive::{BatchOf, ChunkOf, DayHead, EndOf, Head, LogOf, Record, SnapshotOf, Totals},
        clock::Saved,
        directory::{Directory, Starts},
        journal::{Position, TrimMark},
        rows::{DefinitionRow, LedgerRow, Row},
        snapshot::{self, Manifest, PartRef, SnapshotPart},
    },
    time::Timestamp,
    view::{BrokenFile, ExecutorState, ExecutorView, FilesView, NodeView, PoolView, RunView},
    watch::{JobChange, JobStep, RunChange},
};
use serde::Serialize;
use std::{borrow::Cow, collections::BTreeMap};

#[test]
fn forms_keep_their_bytes() {
    let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/forms.jsonl"));
    lending(&mut forms);
    shards(&mut forms);
    changes(&mut forms);
    lists(&mut forms);
    gateways(&mut forms);
    snapshots(&mut forms);
    rows(&mut forms);
    backfills(&mut forms);
    crate::forms_of_bulk::bulks(&mut forms);
    crate::forms_of_calendars::calendars(&mut forms);
    directories(&mut forms);
    archives(&mut forms);
    words::words(&mut forms);
    forms.hold();
}

/// MessagePack without the names of fields, as gateways write it.
fn array<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

fn counts() -> Counts {
    Counts { jobs: 12, running: 3, waiting: 400, wanted: 403, breaker: 0 }
}

fn lending(forms: &mut Forms) {
    let wish = variants!(Wish: Hold, Adopted, HandedOver);
    let (shard, epoch) = (ShardId(7), Epoch(3));
    let wishes = || {
        [
            ("", Wish::Hold { permits: 40 }),
            ("", Wish::Adopted { shards: vec![(shard, epoch, 5), (ShardId(300), Epoch(90_000), 0)] }),
            ("", Wish::HandedOver { shard, epoch, runs: 5 }),
        ]
    };
    forms.enumeration("loan::Wish", Coding::named(), wish, wishes());
    let request = || Request { session: SessionId(12), version: 5, wish: Wish::Hold { permits: 40 } };
    forms.samples("loan::Request", Coding::named(), [("every field", request())]);
    let of_target = Counts { jobs: 0, breaker: 2, ..counts() };
    let all = [("every field", counts()), ("none", Counts::default()), ("of a target", of_target)];
    forms.samples("lending::Counts", Coding::named(), all);
    forms.samples("targets::TargetTerms", Coding::named(), [("every field", TargetTerms::default())]);
    let report = |request| TenantReport { tenant: "finance".to_owned(), counts: counts(), request };
    let reports = [("every field", report(Some(request()))), ("nothing new", report(None))];
    forms.samples("lending::TenantReport", Coding::named(), reports);
    let share = |limits| TenantShare {
        tenant: "finance".to_owned(),
        limits,
        level: Level { version: 5, permits: 40 },
        share: 20,
        rate: 1.25,
        elsewhere: counts(),
    };
    let all = [("every field", share(Some(tenant()))), ("no limits", share(None))];
    forms.samples("lending::TenantShare", Coding::named(), all);
}

fn shards(forms: &mut Forms) {
    let once = CreateKey { key: Digest([7; 16]), print: Digest([200; 16]) };
    forms.samples("shard::CreateKey", Coding::named(), [("every field", once)]);
    let reopen =
        |reason: Option<&str>, force| FinalAction::Reopen { redrive: true, reason: reason.map(str::to_owned), force };
    let once = FinalAction::ReopenOnce { generation: 2, redrive: false, reason: None };
    let actions = [
        ("", reopen(None, false)),
        ("with a reason", reopen(Some("after the fix"), false)),
        ("of a compensated run", reopen(None, true)),
        ("", FinalAction::Discard),
        ("", once),
    ];
    let variants = variants!(FinalAction: Reopen, Discard, ReopenOnce);
    forms.enumeration("shard::FinalAction", Coding::named(), variants, actions);
    let text = |text: &str| Some(text.to_owned());
    let (nodes, by) = (vec!["A".to_owned(), "B".to_owned()], || Some("ada".into()));
    let actions = [
        ("every field", GraphAction::Retry { nodes, and_after: true, by: by(), reason: text("after the fix") }),
        ("short", GraphAction::Retry { nodes: Vec::new(), and_after: false, by: None, reason: None }),
        ("", GraphAction::Mark { node: "B".to_owned(), state: NodeState::Skipped, by: by(), reason: text("by hand") }),
        ("short", GraphAction::Mark { node: "B".to_owned(), state: NodeState::Success, by: None, reason: None }),
        ("", GraphAction::RetryPlace { place: 3, by: by(), reason: text("again") }),
        ("short", GraphAction::RetryPlace { place: 0, by: None, reason: None }),
        ("", GraphAction::RetryFailed { by: by(), reason: text("again") }),
        ("short", GraphAction::RetryFailed { by: None, reason: None }),
        ("", GraphAction::Pause { by: by(), reason: text("the disk is full") }),
        ("short", GraphAction::Pause { by: None, reason: None }),
        ("", GraphAction::Resume { by: by(), reason: text("the disk has room") }),
        ("short", GraphAction::Resume { by: None, reason: None }),
    ];
    let variants_of = variants!(GraphAction: Retry, Mark, RetryPlace, RetryFailed, Pause, Resume);
    forms.enumeration("shard::GraphAction", Coding::named(), variants_of, actions);
    let actions = [("", OutboxAction::Resend), ("", OutboxAction::Discard)];
    forms.enumeration("shard::OutboxAction", Coding::named(), variants!(OutboxAction: Resend, Discard), actions);
    let facts = [
        (
            "every field",
            TenantFacts { limits: Some(tenant()), paused: true, counts: Some(counts()), paused_itself: true },
        ),
        ("of a single node", TenantFacts { limits: None, paused: false, counts: None, paused_itself: false }),
    ];
    forms.samples("shard::TenantFacts", Coding::named(), facts);
    let uses = [("every field", TenantUse { jobs: 12, open_runs: 400 }), ("none", TenantUse::default())];
    forms.samples("shard::TenantUse", Coding::named(), uses);
    let scopes = [("", PauseScope::System), ("", PauseScope::Tenant("finance".to_owned()))];
    forms.enumeration("event::PauseScope", Coding::named(), variants!(PauseScope: System, Tenant), scopes);
    let pause = Pause { scope: PauseScope::Tenant("finance".to_owned()), paused: true, version: 2 };
    forms.samples("pauses::Pause", Coding::named(), [("every field", pause)]);
    open_runs(forms);
}

fn open_runs(forms: &mut Forms) {
    let filter = RunFilter {
        tenant: Some("finance".to_owned()),
        states: vec![RunState::Queued.code(), RunState::Running.code()],
        job: Some(JOB),
        labels: Some("team=billing".to_owned()),
        source: Some(Source::Manual.code()),
        from_ms: Some(AT - 86_400_000),
        to_ms: Some(AT),
    };
    forms.samples("runs::RunFilter", Coding::named(), [("every field", filter), ("none", RunFilter::default())]);
    let place = RunPlace { created_ms: AT, run: RUN };
    forms.samples("runs::RunPlace", Coding::named(), [("every field", place)]);
    let run = RunView::from(&runs()[0].1);
    let parts = [
        ("more follows", OpenRunsPart { items: vec![run], next: Some(place) }),
        ("the end", OpenRunsPart { items: Vec::new(), next: None }),
    ];
    forms.samples("runs::OpenRunsPart", Coding::named(), parts);
    let load = |tenant: Option<&str>| LoadQuery { tenant: tenant.map(str::to_owned), from_ms: AT, minutes: 60 };
    forms.samples("runs::LoadQuery", Coding::named(), [("every field", load(Some("finance"))), ("of all", load(None))]);
    let part = |next, is_cut| LoadPart { counts: vec![3, 0, 70_000], jobs: 12, next, is_cut };
    let parts = [("more follows", part(Some(JOB), false)), ("the end", part(None, false)), ("cut", part(None, true))];
    forms.samples("runs::LoadPart", Coding::named(), parts);
}

fn run_change() -> RunChange {
    RunChange {
        at: Timestamp(AT),
        run_id: RUN,
        job_id: JOB,
        job_name: "daily_billing".to_owned(),
        tenant_id: "finance".to_owned(),
        state: RunState::RetryWait,
        source: Source::Schedule,
        logical_time: Some(Timestamp(AT)),
        generation: 1,
        attempt_count: 2,
        executor_id: Some("executor-1".to_owned()),
        next_retry_at: Some(Timestamp(AT + 10_000)),
        last_error: Some("exit code 1".to_owned()),
    }
}

fn changes(forms: &mut Forms) {
    let short =
        RunChange { logical_time: None, executor_id: None, next_retry_at: None, last_error: None, ..run_change() };
    let job = JobChange {
        at: Timestamp(AT),
        job_id: JOB,
        job_name: "daily_billing".to_owned(),
        tenant_id: "finance".to_owned(),
        change: JobStep::Replaced,
        status: JobStatus::Enabled,
        version: 2,
    };
    let what = [
        ("every field", ChangedItem::Run(run_change())),
        ("short", ChangedItem::Run(short)),
        ("", ChangedItem::Job(job)),
    ];
    forms.enumeration("changes::ChangedItem", Coding::named(), variants!(ChangedItem: Run, Job), what);
    let labels: BTreeMap<_, _> = [("team".to_owned(), "billing".to_owned())].into();
    let change = || Change { what: ChangedItem::Run(run_change()), labels: labels.clone() };
    let coding = || Coding::named().but_under(&["labels"]);
    forms.samples("changes::Change", coding(), [("every field", change())]);
    let place = LogPlace { log: 1 << 60, after: 4_000 };
    forms.samples("changes::LogPlace", Coding::named(), [("every field", place)]);
    let copied = |items| Copied { next: place, items, dropped: true, more: false };
    let all = [("one change", copied(vec![change()])), ("none", copied(Vec::new()))];
    forms.samples("changes::Copied", Coding::named().but_under(&["labels"]), all);
}

fn node() -> NodeView {
    NodeView {
        degradation: campanile_schema::view::DegradationLevel::Normal,
        version: "0.1.0".to_owned(),
        cluster_id: 5,
        shards: 256,
        epoch: 12,
        tzdb: "2026b".to_owned(),
        ready: false,
        not_ready_reasons: vec!["the clock is halted".to_owned()],
        jobs: 12,
        open_runs: 3,
        executors: 1,
        now: Timestamp(AT),
        files: Some(FilesView {
            dir: "/etc/campanile/jobs".to_owned(),
            files: 2,
            jobs: 3,
            applied_at: Some(Timestamp(AT)),
            broken: vec![BrokenFile { file: "a.yaml".to_owned(), problems: vec!["no name".to_owned()] }],
            error: Some("another job has the name".to_owned()),
        }),
        nodes: Vec::new(),
        missing: Vec::new(),
    }
}

fn lists(forms: &mut Forms) {
    let queries = [ClusterQuery::Node, ClusterQuery::Executors, ClusterQuery::Pools].map(|query| ("", query));
    let variants = variants!(ClusterQuery: Node, Executors, Pools);
    forms.enumeration("cluster_query::ClusterQuery", Coding::named(), variants, queries);
    let executor = ExecutorView {
        executor_id: "executor-1".to_owned(),
        session: 9_007_199_254_740_991,
        pools: vec!["default".to_owned()],
        slots: 8,
        running: 1,
        credit: 7,
        state: ExecutorState::Ready,
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        last_heartbeat_at: Timestamp(AT),
        nodes: Vec::new(),
    };
    let pool = PoolView { name: "default".to_owned(), executors: 2, credit: 3, running: 1, waiting: 4 };
    let answer = NodeAnswer {
        node: Some(node()),
        executors: vec![executor],
        pools: vec![pool],
        sessions: vec![(9_007_199_254_740_991, vec!["default".to_owned()], true)],
    };
    let answers = [("every field", answer), ("nothing", NodeAnswer::default())];
    forms.samples("cluster_query::NodeAnswer", Coding::named().but_under(&["labels"]), answers);
}

fn gateways(forms: &mut Forms) {
    let hello = Hello {
        version: 1,
        cluster: "blue".to_owned(),
        node: 1 << 60,
        name: "n1".to_owned(),
        wants: 1 << 61,
        actor: 7,
    };
    forms.samples("gateway::Hello", Coding::array(array), [("every field", hello)]);
    let welcome =
        |refused: Option<&str>| Welcome { refused: refused.map(str::to_owned), name: "n2".to_owned(), actor: 8 };
    let welcomes = [("taken", welcome(None)), ("refused", welcome(Some("it is of another cluster")))];
    forms.samples("gateway::Welcome", Coding::array(array), welcomes);
    let items = || {
        [
            ("", Item::Request(70_000, 9_000, vec![0x81, 0xa1].into())),
            ("", Item::Answer(70_000, vec![0xc0].into())),
            ("", Item::Broken(70_000, "the node stops".to_owned())),
        ]
    };
    forms.enumeration("gateway::Item", Coding::array(array), variants!(Item: Request, Answer, Broken), items());
    let parcel = Parcel { from: 1 << 60, items: items().into_iter().map(|(_, item)| item).collect() };
    forms.samples("gateway::Parcel", Coding::array(array), [("every item", parcel)]);
    let receipts: [(&str, Receipt); 2] = [("all were taken", Vec::new()), ("two were not", vec![3, 70_000])];
    forms.samples("gateway::Receipt", Coding::array(array), receipts);
}

const POSITION: Position = Position { session: SessionId(12), lane: 1, seq: 70_000 };

fn manifest() -> Manifest {
    let part = |number, part| PartRef { number, part, chunks: 2, bytes: 1_500_000, crc: 0xdead_beef };
    Manifest {
        number: 9,
        epoch: Epoch(3),
        shard_seq: 1_000,
        replay_after: POSITION,
        last_hlc: AT as u64 * 1_000,
        parts: vec![part(8, SnapshotPart::Definitions), part(9, SnapshotPart::Hot)],
    }
}

fn snapshots(forms: &mut Forms) {
    let parts = [
        ("", SnapshotPart::Hot),
        ("", SnapshotPart::Definitions),
        ("", SnapshotPart::Outbox),
        ("", SnapshotPart::Graphs),
    ];
    forms.enumeration(
        "snapshot::SnapshotPart",
        Coding::named(),
        variants!(SnapshotPart: Hot, Definitions, Outbox, Graphs),
        parts,
    );
    forms.samples("snapshot::PartRef", Coding::json(), [("every field", manifest().parts.remove(0))]);
    forms.samples("snapshot::Manifest", Coding::json(), [("every field", manifest())]);
    let read = |bytes: &[u8]| {
        let item = frame::decode::<snapshot::Item<'_>>("item", bytes).map_err(|error| error.to_string())?;
        Ok(snapshot::Item(item.0, Cow::Owned(item.1.into_owned())))
    };
    let item = snapshot::Item(JOB.0, Cow::Owned(vec![0x81, 0xa1, b's', 0]));
    forms.samples("snapshot::Item", Coding::of(frame::encode, read).fixed(), [("every field", item)]);
}

/// Without the values of its secrets.
/// In a stored job: the labels, the annotations and the environment of a command, whose names are the caller's.
const OF_CALLERS: &[&str] = &["l", "an", "e"];

fn definition() -> DefinitionRow {
    let record = samples::audit::paused();
    DefinitionRow {
        job: JOB,
        version: 3,
        at_ms: AT,
        spec: DefinitionRow::without_secrets(&samples::full().into()),
        by: Some(record.origin),
        operation: Some("job.replace".into()),
        reason: record.reason,
    }
}

fn rows(forms: &mut Forms) {
    let record = || runs().remove(1).1.into();
    let interval = LedgerRow {
        job: JOB,
        from_ms: AT - 86_400_000,
        to_ms: AT,
        version: 3,
        tzdb: "2026b".into(),
        entries: vec![samples::entry(Outcome::Skipped, Some(SkipReason::Misfire), None)],
    };
    let rows = [
        ("", Row::Run(record())),
        ("", Row::Reopened(record())),
        ("", Row::DeadLetterDiscarded(record())),
        ("", Row::Ledger(interval.clone())),
        ("", Row::JobDeleted(JOB)),
        ("", Row::Audited(samples::audit::paused().into())),
        ("", Row::Defined(definition().into())),
    ];
    let variants = variants!(Row: Run, Reopened, DeadLetterDiscarded, Ledger, JobDeleted, Audited, Defined);
    forms.enumeration("rows::Row", Coding::named().but_under(OF_CALLERS), variants, rows);
    forms.samples("rows::LedgerRow", Coding::named(), [("every field", interval)]);
    forms.samples("audit::CallOrigin", Coding::named(), samples::audit::traced_origins());
    let unknown = DefinitionRow { by: None, operation: None, reason: None, ..definition() };
    let rows = [("every field", definition()), ("by nobody who is known", unknown)];
    forms.samples("rows::DefinitionRow", Coding::named().but_under(OF_CALLERS), rows);
    forms.samples("audit::AuditRecord", Coding::named(), samples::audit::records());
}

fn backfills(forms: &mut Forms) {
    use campanile_schema::stored::backfill::{BackfillChange, BackfillCounts, BackfillPlan, PassedInstants};
    use samples::backfill::{changes, passed, plan, stored};
    let none = PassedInstants::default();
    forms.samples("backfill::PassedInstants", Coding::named(), [("every field", passed()), ("none", none)]);
    let plans = [("every field", plan()), ("nothing", BackfillPlan::default())];
    forms.samples("backfill::BackfillPlan", Coding::named(), plans);
    let counts = [("every field", stored().remove(1).1.counts), ("none", BackfillCounts::default())];
    forms.samples("backfill::BackfillCounts", Coding::named(), counts);
    forms.samples("backfill::StoredBackfill", Coding::named(), stored());
    let variants = variants!(BackfillChange: Created, Moved, Held, Paused, Resumed, Canceling, Ended);
    forms.enumeration("backfill::BackfillChange", Coding::named(), variants, changes());
    let definition = Box::new(samples::typical());
    let facts = BackfillFacts { definition, created_ms: AT - 9, cursor_ms: AT, seq: 70_000, first: true };
    let later = BackfillFacts { first: false, ..facts.clone() };
    forms.samples(
        "shard::BackfillFacts",
        Coding::named().but_under(OF_CALLERS),
        [("every field", facts), ("not the first", later)],
    );
    let reason = || Some("later".into());
    let actions = [
        ("", BackfillAction::Pause { reason: reason() }),
        ("short", BackfillAction::Pause { reason: None }),
        ("", BackfillAction::Resume),
        ("", BackfillAction::Cancel { reason: reason() }),
        ("short", BackfillAction::Cancel { reason: None }),
    ];
    let variants = variants!(BackfillAction: Pause, Resume, Cancel);
    forms.enumeration("shard::BackfillAction", Coding::named(), variants, actions);
}

fn directories(forms: &mut Forms) {
    let of = |views_format| Directory { row: format_row(), views_format };
    forms.samples("directory::Directory", Coding::json(), [("first", of(1)), ("two rows a run", of(2))]);
    forms.samples("directory::Starts", Coding::json(), [("every field", Starts { starts: SessionId(12) })]);
    forms.samples("journal::Position", Coding::named(), [("every field", POSITION), ("none", Position::default())]);
    let marks = [("beginning", TrimMark::BEGINNING), ("trimmed", TrimMark { first_segment: 4, upto: POSITION })];
    forms.samples("journal::TrimMark", Coding::json(), marks);
    let boot_id = "6b0f3e0a-7c7a-4f0c-9d63-6f6f1c3f7a10".to_owned();
    let saved = Saved { boot_id, wall_us: AT * 1_000, boot_us: 86_400_000_000 };
    forms.samples("clock::Saved", Coding::json(), [("every field", saved)]);
}

fn format_row() -> campanile_schema::format::FormatRow {
    campanile_schema::format::FormatRow {
        event_format: 1,
        wire_format: 1,
        cluster_id: campanile_schema::ids::ClusterId(1_234_567_890_123),
        shards: 256,
        created_ms: AT,
    }
}

fn archives(forms: &mut Forms) {
    let totals = Totals { snapshots: 256, batches: 1_000, rows: 70_000, logs: 5 };
    let head = Head {
        archive_format: 1,
        release: "0.1.0".to_owned(),
        store: format_row(),
        at_ms: AT,
        cut: POSITION,
        rows_upto: Position { seq: 60_000, ..POSITION },
    };
    let day = DayHead {
        day_format: 1,
        release: "0.1.0".to_owned(),
        store: format_row(),
        from_ms: AT - 86_400_000,
        to_ms: AT,
        at_ms: AT + 1,
    };
    let snapshot = SnapshotOf { shard: ShardId(17), manifest: manifest() };
    let chunk = ChunkOf { shard: ShardId(17), part: SnapshotPart::Hot, bytes: vec![0x92, 0, 0xc4, 0] };
    let log = LogOf { run: RUN, attempt: 2, bytes: b"exit code 1\n".to_vec() };
    let batch = BatchOf { position: POSITION, bytes: vec![0x80] };
    let end = EndOf { totals, sha256: vec![0xab; 32] };
    forms.samples("archive::Head", Coding::named(), [("every field", head.clone())]);
    forms.samples("archive::DayHead", Coding::named(), [("every field", day.clone())]);
    forms.samples("archive::Totals", Coding::named(), [("every field", totals), ("nothing", Totals::default())]);
    forms.samples("archive::SnapshotOf", Coding::named(), [("every field", snapshot.clone())]);
    forms.samples("archive::ChunkOf", Coding::named(), [("every field", chunk.clone())]);
    forms.samples("archive::LogOf", Coding::named(), [("every field", log.clone())]);
    forms.samples("archive::BatchOf", Coding::named(), [("every field", batch.clone())]);
    forms.samples("archive::EndOf", Coding::named(), [("every field", end.clone())]);
    let records = [
        ("", Record::Head(head)),
        ("", Record::Snapshot(snapshot)),
        ("", Record::Chunk(chunk)),
        ("", Record::Rows(vec![Row::JobDeleted(JOB)])),
        ("", Record::Log(log.clone())),
        ("", Record::Batch(batch)),
        ("", Record::Day(day)),
        ("", Record::Logs(vec![log])),
        ("", Record::Again(vec![(RUN, 2)])),
        ("", Record::Broken("the disk is full".to_owned())),
        ("", Record::End(end)),
    ];
    // As a list of the record's number, which its block names, and its contents.
    let write = |record: &Record| [[0x92, 0xcc, record.kind()].as_slice(), record.bytes().as_slice()].concat();
    let coding = Coding::of(write, |bytes| Record::read(bytes[2], &bytes[3..]));
    let variants = variants!(Record: Head, Snapshot, Chunk, Rows, Log, Batch, Day, Logs, Again, Broken, End);
    forms.enumeration("archive::Record", coding, variants, records);
}
