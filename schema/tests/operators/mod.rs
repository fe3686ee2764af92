//! Messages of those who apply manifests, watch, and look at a cluster; and errors with details.

use super::{Golden, run};
use campanile_schema::{
    apply::{
        AppliedView, ApplyBody, ApplyFailure, ApplyOutcome, FieldChange, JobForecast, ManifestFile, ManifestProblem,
        MinuteForecast, PlanAction, PlanForecast, PlanItem, PlanView, TenantForecast,
    },
    audit::{AuditBody, AuditView, TriggeredBy},
    cluster::{
        self, ClusterEventKind, ClusterEventView, MemberState, MemberView, MoveReason, MoveView, ShardFilter, ShardView,
    },
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
    job::JobStatus,
    operations,
    payload::Payload,
    record::RunState,
    rpc::{
        calls::{Listed, NoBody, NodeCall},
        method,
    },
    time::Timestamp,
    view::{Page, ReasonBody, RunView},
    watch::{Changed, JobChange, JobStep, RunChange, StopWatch, WatchEnded, WatchJobs, WatchRuns, Watching},
};
use serde_json::json;

const AT: Timestamp = Timestamp(1_771_900_000_000);

pub fn of_definitions(golden: &mut Golden) {
    let body = ApplyBody {
        files: vec![ManifestFile { name: "jobs.yaml".to_owned(), text: "kind: Job\n".to_owned() }],
        manifests: vec![Payload(r#"{"kind":"Job"}"#.to_owned())],
        tenant_id: Some("finance".to_owned()),
        owner: Some("billing".to_owned()),
        prune: true,
        take_over: false,
        plan_id: None,
        strict: false,
        prune_labels: None,
        forecast: false,
    };
    golden.request("job_plan_request", 7, operations::JobPlan::NAME, &body);
    golden.request(
        "job_plan_strict_request",
        7,
        operations::JobPlan::NAME,
        &ApplyBody { strict: true, ..body.clone() },
    );
    golden.request(
        "job_plan_forecast_request",
        7,
        operations::JobPlan::NAME,
        &ApplyBody { prune_labels: Some("team=payments".to_owned()), forecast: true, ..body.clone() },
    );
    let item = PlanItem {
        action: PlanAction::Change,
        tenant_id: "finance".to_owned(),
        name: "daily_billing".to_owned(),
        job_id: Some(JobId(8_193)),
        version: Some(3),
        file: Some("jobs.yaml".to_owned()),
        line: Some(1),
        changes: vec![FieldChange {
            field: "spec.schedule".to_owned(),
            before: Some(Payload("\"0 2 * * *\"".to_owned())),
            after: Some(Payload("\"30 2 * * *\"".to_owned())),
        }],
        hazards: vec!["02:30 is skipped once a year".to_owned()],
        outcome: None,
        error: None,
        forecast: None,
    };
    let plan = PlanView {
        plan_id: "5f3a".to_owned(),
        create: 0,
        change: 1,
        unchanged: 4,
        delete: 0,
        items: vec![item.clone()],
        passed_over: Vec::new(),
        forecast: None,
    };
    golden.answer("job_plan_answer", 7, &plan);
    let other = ManifestProblem {
        file: "jobs.yaml".to_owned(),
        line: 3,
        column: 1,
        path: String::new(),
        message: "the ServiceAccount 'billing' is passed over: it is no job".to_owned(),
    };
    golden.answer("job_plan_passed_over_answer", 7, &PlanView { passed_over: vec![other], ..plan.clone() });
    golden.answer("job_plan_forecast_answer", 7, &forecast(&item, plan));
    golden.request(
        "job_apply_request",
        8,
        operations::JobApply::NAME,
        &ApplyBody { plan_id: Some("5f3a".to_owned()), ..body },
    );
    let done = PlanItem { outcome: Some(ApplyOutcome::Done), ..item.clone() };
    let failed = PlanItem {
        outcome: Some(ApplyOutcome::Failed),
        error: Some(ApplyFailure { code: "409_STALE_VERSION".to_owned(), message: "it was changed".to_owned() }),
        ..item
    };
    let applied = AppliedView {
        created: 0,
        changed: 1,
        unchanged: 4,
        deleted: 0,
        failed: 1,
        not_begun: 0,
        items: vec![done, failed],
    };
    golden.answer("job_apply_answer", 8, &applied);
}

/// The plan with all that is asked for with `forecast`.
fn forecast(item: &PlanItem, plan: PlanView) -> PlanView {
    let job = JobForecast {
        before: vec![AT],
        after: vec![Timestamp(AT.0 + 1_800_000)],
        clock_changes: vec!["2027-03-28 02:30 does not exist in Europe/Berlin".to_owned()],
    };
    let minute = MinuteForecast { at: AT, adds: 4_100, removes: 0, due: Some(12) };
    let later = MinuteForecast { due: None, ..minute };
    let tenant = TenantForecast { tenant_id: "finance".to_owned(), jobs: 5, after: 6, max_jobs: 5, exceeds: true };
    let whole = PlanForecast { minutes: vec![minute, later], tenants: vec![tenant], truncated: false };
    let items = vec![PlanItem { forecast: Some(job), ..item.clone() }];
    PlanView { items, forecast: Some(whole), ..plan }
}

pub fn of_watches(golden: &mut Golden) {
    let runs = WatchRuns {
        run_id: None,
        job_id: Some(JobId(8_193)),
        tenant_id: Some("finance".to_owned()),
        labels: Some("team=billing".to_owned()),
        state: Some(RunState::Failed),
        after: Some("1-5".to_owned()),
    };
    golden.request("run_watch_request", 9, method::RUN_WATCH, &runs);
    golden.answer("watch_answer", 9, &Watching { watch_id: 1, cursor: "1-5".to_owned() });
    let changed = Changed {
        watch_id: 1,
        items: vec![RunChange::new(AT, "daily_billing", &run())],
        cursor: "1-6".to_owned(),
        dropped: 0,
    };
    golden.notification("run_changed", method::RUN_CHANGED, &changed);
    // Too slow: so many were lost.
    golden.notification("run_changed_dropped", method::RUN_CHANGED, &Changed { dropped: 12, ..changed });
    let jobs = WatchJobs { job_id: None, tenant_id: Some("finance".to_owned()), labels: None, after: None };
    golden.request("job_watch_request", 10, method::JOB_WATCH, &jobs);
    let item = JobChange {
        at: AT,
        job_id: JobId(8_193),
        job_name: "daily_billing".to_owned(),
        tenant_id: "finance".to_owned(),
        change: JobStep::Paused,
        status: JobStatus::Paused,
        version: 3,
    };
    let changed = Changed { watch_id: 2, items: vec![item], cursor: "1-7".to_owned(), dropped: 0 };
    golden.notification("job_changed", method::JOB_CHANGED, &changed);
    golden.request("watch_stop_request", 11, method::WATCH_STOP, &StopWatch { watch_id: 2 });
    golden.notification("watch_ended", method::WATCH_ENDED, &WatchEnded { watch_id: 1, code: None, message: None });
    let stopping = WatchEnded {
        watch_id: 1,
        code: Some(ErrorCode::NotReady.as_str().to_owned()),
        message: Some("the node is stopping".to_owned()),
    };
    golden.notification("watch_ended_early", method::WATCH_ENDED, &stopping);
}

pub fn of_clusters(golden: &mut Golden) {
    golden.request("cluster_members_request", 12, operations::ClusterMembers::NAME, &NoBody {});
    let member = MemberView {
        name: "node-1".to_owned(),
        state: MemberState::Alive,
        is_self: true,
        shards: 128,
        session: 12,
        build: "0.1.0".to_owned(),
        http: "10.0.0.1:7700".to_owned(),
        rpc: "10.0.0.1:7701".to_owned(),
        gateway: "10.0.0.1:7702".to_owned(),
        gossip: "10.0.0.1:7703".to_owned(),
        clock_offset_ms: Some(0),
    };
    let other = MemberView {
        name: "node-2".to_owned(),
        state: MemberState::Suspected,
        is_self: false,
        clock_offset_ms: None,
        ..member.clone()
    };
    golden.answer("cluster_members_answer", 12, &Listed { items: vec![member, other] });
    let filter = ShardFilter { node: Some("node-1".to_owned()) };
    golden.request("cluster_shards_request", 13, operations::ClusterShards::NAME, &filter);
    let shard = ShardView {
        shard: 1,
        node: Some("node-1".to_owned()),
        session: Some(12),
        epoch: 3,
        served_here: true,
        spans: 2,
        snapshot_seq: Some(4_711),
    };
    let orphan =
        ShardView { shard: 2, node: None, session: None, served_here: false, snapshot_seq: None, ..shard.clone() };
    golden.answer("cluster_shards_answer", 13, &Listed { items: vec![shard, orphan] });
    golden.request("cluster_plan_request", 14, operations::ClusterPlan::NAME, &NoBody {});
    let moved = |from: Option<&str>, reason| MoveView {
        shard: 2,
        from: from.map(str::to_owned),
        to: "node-1".to_owned(),
        reason,
    };
    let moves = vec![moved(None, MoveReason::NoOwner), moved(Some("node-2"), MoveReason::OwnerLeaves)];
    golden.answer("cluster_plan_answer", 14, &cluster::PlanView { balanced: false, cap: 128, moves });
    golden.request("cluster_events_request", 15, operations::ClusterEvents::NAME, &NoBody {});
    let event = ClusterEventView {
        at: AT,
        kind: ClusterEventKind::ShardServed,
        node: Some("node-1".to_owned()),
        shard: Some(1),
        detail: Some("epoch 3".to_owned()),
    };
    golden.answer("cluster_events_answer", 15, &Listed { items: vec![event] });
    let reason = || ReasonBody { reason: Some("new disk".to_owned()) };
    let node = "node-2".to_owned();
    golden.request(
        "cluster_cordon_request",
        16,
        operations::ClusterCordon::NAME,
        &NodeCall::new(node.clone(), reason()),
    );
    golden.request("cluster_uncordon_request", 17, operations::ClusterUncordon::NAME, &NodeCall::new(node, reason()));
}

pub fn of_audit(golden: &mut Golden) {
    let body = AuditBody {
        tenant_id: Some("finance".to_owned()),
        operation: Some("job.pause".to_owned()),
        from: Some(AT),
        page_size: Some(50),
        ..AuditBody::default()
    };
    golden.request("audit_list_request", 9, operations::AuditList::NAME, &body);
    let view = AuditView {
        at: AT,
        who: Some("olga".to_owned()),
        address: Some("192.0.2.7".to_owned()),
        operation: "job.pause".to_owned(),
        tenant_id: Some("finance".to_owned()),
        job_id: Some(JobId(8_193)),
        run_id: None,
        target: None,
        reason: Some("maintenance".to_owned()),
        outcome: "DONE".to_owned(),
        count: 1,
        request_id: Some("1f2e3d4c-17".to_owned()),
        trace_id: None,
    };
    golden.answer("audit_list_answer", 9, &Page { items: vec![view], next_page_token: None });
    let by = TriggeredBy {
        who: Some("olga".to_owned()),
        address: Some("192.0.2.7".to_owned()),
        request_id: Some("1f2e3d4c-18".to_owned()),
    };
    golden.answer("run_triggered_answer", 10, &RunView { triggered_by: Some(by), ..run() });
}

pub fn of_errors(golden: &mut Golden) {
    let full = ApiError::new(ErrorCode::Overloaded, "the node has too much to do").retry_after(1.5);
    golden.error("error_retry_after", 18, &full);
    let problem = ManifestProblem {
        file: "jobs.yaml".to_owned(),
        line: 4,
        column: 3,
        path: "spec.schedul".to_owned(),
        message: "unknown field; did you mean `schedule`?".to_owned(),
    };
    let wrong = ApiError::new(ErrorCode::InvalidArgument, "1 thing is wrong with the manifests")
        .with_detail(json!({"errors": [problem]}));
    golden.error("error_with_detail", 19, &wrong);
    let stale = ApiError::new(ErrorCode::NotFound, "there is no such run").with_detail(json!({"runId": RunId(4_097)}));
    golden.error("error_not_found", 20, &stale);
}
