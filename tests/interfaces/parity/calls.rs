//! How each operation is called, so that every interface should give the same answer.

use serde_json::{Value, json};

/// How an operation is called in each interface.
pub struct Call {
    pub name: &'static str,
    pub http: (&'static str, String, Value),
    pub rpc: Value,
    pub cli: Option<Vec<String>>,
}

fn call(name: &'static str, method: &'static str, path: &str, body: Value, rpc: Value, cli: &[&str]) -> Call {
    let cli = (!cli.is_empty()).then(|| cli.iter().map(|word| (*word).to_owned()).collect());
    Call { name, http: (method, path.to_owned(), body), rpc, cli }
}

pub fn reads((good, _, run, failed): (u64, u64, u64, u64)) -> Vec<Call> {
    let preview =
        json!({"trigger": {"type": "CRON", "expr": "0 2 * * *"}, "after": "2026-02-24T08:00:00Z", "count": 2});
    let [job, at] = [format!("/api/v1/jobs/{good}"), format!("/api/v1/runs/{run}")];
    let [id, of] = [good.to_string(), run.to_string()];
    let (from, to) = ("2026-02-24T08:00:00Z", "2026-02-25T08:00:00Z");
    let get = |name, path: &str, rpc, cli: &[&str]| call(name, "GET", path, Value::Null, rpc, cli);
    vec![
        get("job.get", &job, json!({"jobId": good}), &["job", "get", &id]),
        get("job.get", "/api/v1/jobs/4096", json!({"jobId": 4096}), &["job", "get", "4096"]),
        get("job.find", "/api/v1/jobs/by-name?name=good", json!({"name": "good"}), &["job", "get", "good"]),
        get("job.list", "/api/v1/jobs?text=o", json!({"text": "o"}), &["job", "list", "--text", "o"]),
        get("job.list", "/api/v1/jobs?labels=%3Dx", json!({"labels": "=x"}), &["job", "list", "--labels", "=x"]),
        get("job.runs", &format!("{job}/runs"), json!({"jobId": good}), &["job", "runs", &id]),
        get(
            "job.ledger",
            &format!("{job}/ledger?from={from}&to={to}"),
            json!({"jobId": good, "from": from, "to": to}),
            &["job", "ledger", &id, "--from", from, "--to", to],
        ),
        get("run.get", &at, json!({"runId": run}), &["run", "get", &of]),
        // Refused: there is none. `tests/node/backfill` has one in each interface.
        get("job.backfillGet", &format!("{job}/backfill"), json!({"jobId": good}), &["backfill", "of", &id]),
        get("backfill.get", "/api/v1/backfills/4096", json!({"backfillId": 4096}), &["backfill", "get", "4096"]),
        // There is none, so one is refused. `tests/node/bulk` has one in each interface.
        get("bulk.list", "/api/v1/bulk", json!({}), &["bulk", "list"]),
        get("bulk.get", "/api/v1/bulk/24576", json!({"bulkId": 24576}), &["bulk", "get", "24576"]),
        // Refused: it is not a run of a DAG. `tests/node/dag.rs` has one in each interface.
        get("dag.nodes", &format!("{at}/nodes"), json!({"runId": run}), &["dag", "nodes", &of]),
        get("run.log", &format!("{at}/log"), json!({"runId": run}), &["run", "log", &of]),
        get(
            "run.log",
            &format!("{at}/log?contains=DONE&tail=1"),
            json!({"runId": run, "contains": "DONE", "tail": 1}),
            &["run", "log", &of, "--grep", "DONE", "--tail", "1"],
        ),
        get("run.failed", "/api/v1/runs?state=FAILED,TIMEOUT", json!({}), &["run", "failed"]),
        get("run.list", "/api/v1/runs", json!({}), &["run", "list"]),
        get(
            "run.list",
            &format!("/api/v1/runs?jobId={good}&source=MANUAL&pageSize=1"),
            json!({"jobId": good, "source": "MANUAL", "pageSize": 1}),
            &["run", "list", "--job", &id, "--source", "manual", "--page-size", "1"],
        ),
        get("run.list", "/api/v1/runs?state=DONE", json!({"state": "DONE"}), &["run", "list", "--state", "DONE"]),
        get("run.explain", &format!("{at}/explain"), json!({"runId": run}), &["run", "explain", &of]),
        get("job.explain", &format!("{job}/explain"), json!({"jobId": good}), &["job", "explain", &id]),
        get(
            "job.explain",
            &format!("{job}/explain?at={from}"),
            json!({"jobId": good, "at": from}),
            &["job", "explain", &id, "--at", from],
        ),
        // Refused: the answer to a good one tells when it was asked. `tests/node/lists.rs` has one.
        get(
            "job.statistics",
            &format!("{job}/statistics?window=1w"),
            json!({"jobId": good, "window": "1w"}),
            &["job", "statistics", &id, "--window", "1w"],
        ),
        get("job.versions", &format!("{job}/versions"), json!({"jobId": good}), &["job", "versions", &id]),
        get("dlq.list", "/api/v1/dead-letters", json!({}), &["dlq", "list"]),
        get(
            "dlq.list",
            &format!("/api/v1/dead-letters?jobId={good}"),
            json!({"jobId": good}),
            &["dlq", "list", "--job", &id],
        ),
        get("dlq.causes", "/api/v1/dead-letters/causes", json!({}), &["dlq", "causes"]),
        // Refused: the answer to a good one tells when it was asked. `tests/node/lists.rs` has one.
        get(
            "schedule.load",
            "/api/v1/schedules/load?minutes=0",
            json!({"minutes": 0}),
            &["job", "load", "--minutes", "0"],
        ),
        get("outbox.list", "/api/v1/outbox", json!({}), &["outbox", "list"]),
        get(
            "audit.list",
            "/api/v1/audit?operation=job.create&pageSize=1",
            json!({"operation": "job.create", "pageSize": 1}),
            &["audit", "list", "--operation", "job.create", "--page-size", "1"],
        ),
        get("audit.list", "/api/v1/audit?pageSize=0", json!({"pageSize": 0}), &["audit", "list", "--page-size", "0"]),
        call("schedule.preview", "POST", "/api/v1/schedules/preview", preview.clone(), preview, &[]),
        get("tenant.get", "/api/v1/tenants/default", json!({"tenantId": "default"}), &["tenant", "get", "default"]),
        get("tenant.list", "/api/v1/tenants", json!({}), &["tenant", "list"]),
        get("system.info", "/api/v1/cluster/node", json!({}), &["system", "info"]),
        get("executor.list", "/api/v1/executors", json!({}), &["system", "executors"]),
        get("pool.list", "/api/v1/pools", json!({}), &["system", "pools"]),
        get(
            "run.get",
            &format!("/api/v1/runs/{failed}"),
            json!({"runId": failed}),
            &["run", "get", &failed.to_string()],
        ),
    ]
}

/// Changes that end where they began, or that are refused: each interface may do them after the other.
pub fn changes((good, _, run, _): (u64, u64, u64, u64)) -> Vec<Call> {
    let post = |name, path: &str, rpc, cli: &[&str]| call(name, "POST", path, json!({}), rpc, cli);
    let [job, at] = [format!("/api/v1/jobs/{good}"), format!("/api/v1/runs/{run}")];
    let [id, of] = [good.to_string(), run.to_string()];
    let key = json!({"manualRunId": "once"});
    let (job_rpc, run_rpc) = (json!({"jobId": good}), json!({"runId": run}));
    let quota = json!({"maxConcurrentRuns": 7, "maxTriggersPerSec": 0.0, "maxJobs": 0, "maxQueuedRuns": 0});
    let mut of_tenant = quota.clone();
    of_tenant["tenantId"] = json!("other");
    let tenant = json!({"tenantId": "other"});
    let settings = json!({
        "maxConcurrentRuns": 0, "maxRunsPerSec": 5.0, "retryPercent": 10, "failurePercent": 50, "minAttempts": 10, "openSec": 10,
    });
    let target = json!({"tenantId": "other", "target": "db"});
    let mut of_target = settings.clone();
    of_target["tenantId"] = json!("other");
    of_target["target"] = json!("db");
    let of_calendar = json!({"tenantId": "other", "calendar": "days"});
    let days_of_calendar = json!({"tenantId": "other", "calendar": "days", "days": 7});
    let change_of_calendar = json!({"tenantId": "other", "calendar": "days", "spec": {}, "version": 7});
    let taken = json!({"name": "good", "trigger": {"type": "MANUAL"}});
    let dag = json!({"dagId": "good", "nodes": [good]});
    // The job has no instants, and there is no backfill 4096.
    let (from, to) = ("2026-02-24T08:00:00Z", "2026-02-25T08:00:00Z");
    let (stretch, of_job) = (json!({"from": from, "to": to}), json!({"jobId": good, "from": from, "to": to}));
    let backfill = |verb: &'static str| ["backfill", verb, id.as_str(), "--from", from, "--to", to];
    let (gone, gone_rpc) = ("/api/v1/backfills/4096", json!({"backfillId": 4096}));
    vec![
        call(
            "job.trigger",
            "POST",
            &format!("{job}/trigger"),
            key,
            json!({"jobId": good, "manualRunId": "once"}),
            &["job", "trigger", &id, "--id", "once", "--wait"],
        ),
        post("job.pause", &format!("{job}/pause"), job_rpc.clone(), &["job", "pause", &id]),
        post("job.trigger", &format!("{job}/trigger"), job_rpc.clone(), &["job", "trigger", &id]),
        post("job.resume", &format!("{job}/resume"), job_rpc, &["job", "resume", &id]),
        // Refused: it has that version.
        call(
            "job.rollback",
            "POST",
            &format!("{job}/rollback"),
            json!({"to": 1}),
            json!({"jobId": good, "to": 1}),
            &["job", "rollback", &id, "--to", "1"],
        ),
        call(
            "job.create",
            "POST",
            "/api/v1/jobs",
            taken.clone(),
            taken,
            &["job", "create", "--name", "good", "--manual"],
        ),
        post("run.cancel", &format!("{at}/cancel"), run_rpc.clone(), &["run", "cancel", &of]),
        call(
            "run.confirm",
            "POST",
            &format!("{at}/confirm"),
            json!({"decision": "RERUN"}),
            json!({"runId": run, "decision": "RERUN"}),
            &["run", "confirm", &of, "rerun"],
        ),
        call(
            "bulk.create",
            "POST",
            "/api/v1/bulk",
            json!({"action": "PAUSE", "filter": {"text": "no such job"}, "dryRun": true}),
            json!({"action": "PAUSE", "filter": {"text": "no such job"}, "dryRun": true}),
            &["bulk", "pause", "--text", "no such job", "--dry-run"],
        ),
        // Refused: a filter without a field would mean everything.
        call(
            "bulk.create",
            "POST",
            "/api/v1/bulk",
            json!({"action": "PAUSE"}),
            json!({"action": "PAUSE"}),
            &["bulk", "pause"],
        ),
        post("bulk.abort", "/api/v1/bulk/24576/abort", json!({"bulkId": 24576}), &["bulk", "abort", "24576"]),
        post("bulk.undo", "/api/v1/bulk/24576/undo", json!({"bulkId": 24576}), &["bulk", "undo", "24576"]),
        call("job.backfill", "POST", &format!("{job}/backfill"), stretch.clone(), of_job.clone(), &backfill("create")),
        call("job.replay", "POST", &format!("{job}/replay"), stretch, of_job, &backfill("replay")),
        post("backfill.pause", &format!("{gone}/pause"), gone_rpc.clone(), &["backfill", "pause", "4096"]),
        post("backfill.resume", &format!("{gone}/resume"), gone_rpc.clone(), &["backfill", "resume", "4096"]),
        call("backfill.cancel", "DELETE", gone, Value::Null, gone_rpc, &["backfill", "cancel", "4096"]),
        post("dag.retry", &format!("{at}/nodes/retry"), run_rpc.clone(), &["dag", "retry", &of]),
        call(
            "dag.mark",
            "POST",
            &format!("{at}/nodes/mark"),
            json!({"node": "A", "state": "SUCCESS"}),
            json!({"runId": run, "node": "A", "state": "SUCCESS"}),
            &["dag", "mark", &of, "A", "success"],
        ),
        post("dag.pause", &format!("{at}/nodes/pause"), run_rpc.clone(), &["dag", "pause", &of]),
        post("dag.resume", &format!("{at}/nodes/resume"), run_rpc.clone(), &["dag", "resume", &of]),
        call(
            "run.priority",
            "POST",
            &format!("{at}/priority"),
            json!({"priority": 900}),
            json!({"runId": run, "priority": 900}),
            &["run", "priority", &of, "900"],
        ),
        // Its name is taken.
        call("dag.create", "POST", "/api/v1/jobs/dag", dag.clone(), dag, &["dag", "create", "good", "--job", &id]),
        post("dlq.redrive", &format!("/api/v1/dead-letters/{run}/redrive"), run_rpc.clone(), &["dlq", "redrive", &of]),
        post("dlq.discard", &format!("/api/v1/dead-letters/{run}/discard"), run_rpc.clone(), &["dlq", "discard", &of]),
        post("outbox.resend", &format!("/api/v1/outbox/{run}/resend"), run_rpc.clone(), &["outbox", "resend", &of]),
        post("outbox.discard", &format!("/api/v1/outbox/{run}/discard"), run_rpc, &["outbox", "discard", &of]),
        post("run.retry", "/api/v1/runs/4096/retry", json!({"runId": 4096}), &["run", "retry", "4096"]),
        call(
            "job.delete",
            "DELETE",
            "/api/v1/jobs/4096",
            Value::Null,
            json!({"jobId": 4096}),
            &["job", "delete", "4096"],
        ),
        call(
            "tenant.set",
            "PUT",
            "/api/v1/tenants/other",
            quota,
            of_tenant,
            &["tenant", "set", "other", "--max-concurrent-runs", "7"],
        ),
        call(
            "target.set",
            "PUT",
            "/api/v1/tenants/other/targets/db",
            settings,
            of_target,
            &["target", "set", "other", "db", "--max-runs-per-sec", "5"],
        ),
        call(
            "target.get",
            "GET",
            "/api/v1/tenants/other/targets/db",
            Value::Null,
            target,
            &["target", "get", "other", "db"],
        ),
        call(
            "target.list",
            "GET",
            "/api/v1/tenants/other/targets",
            Value::Null,
            tenant.clone(),
            &["target", "list", "other"],
        ),
        call(
            "target.delete",
            "DELETE",
            "/api/v1/tenants/other/targets/nobody",
            Value::Null,
            json!({"tenantId": "other", "target": "nobody"}),
            &["target", "delete", "other", "nobody"],
        ),
        // Nobody has made it: what the interfaces say then is the same, and so is a list of none.
        call(
            "calendar.get",
            "GET",
            "/api/v1/tenants/other/calendars/days",
            Value::Null,
            of_calendar.clone(),
            &["calendar", "get", "other", "days"],
        ),
        call(
            "calendar.list",
            "GET",
            "/api/v1/tenants/other/calendars",
            Value::Null,
            tenant.clone(),
            &["calendar", "list", "other"],
        ),
        call(
            "calendar.preview",
            "POST",
            "/api/v1/tenants/other/calendars/days/preview",
            json!({"days": 7}),
            days_of_calendar,
            &["calendar", "preview", "other", "days", "--days", "7"],
        ),
        call(
            "calendar.set",
            "PUT",
            "/api/v1/tenants/other/calendars/days",
            json!({"spec": {}, "version": 7}),
            change_of_calendar,
            &["calendar", "set", "other", "days", "--spec", "{}", "--version", "7"],
        ),
        call(
            "calendar.delete",
            "DELETE",
            "/api/v1/tenants/other/calendars/days",
            Value::Null,
            of_calendar,
            &["calendar", "delete", "other", "days"],
        ),
        post("tenant.pause", "/api/v1/tenants/other/pause", tenant.clone(), &["tenant", "pause", "other"]),
        post("tenant.resume", "/api/v1/tenants/other/resume", tenant, &["tenant", "resume", "other"]),
        // One that is not there, and one that has jobs.
        call(
            "tenant.delete",
            "DELETE",
            "/api/v1/tenants/nobody",
            Value::Null,
            json!({"tenantId": "nobody"}),
            &["tenant", "delete", "nobody"],
        ),
        call(
            "tenant.delete",
            "DELETE",
            "/api/v1/tenants/default",
            Value::Null,
            json!({"tenantId": "default"}),
            &["tenant", "delete", "default"],
        ),
        post("system.pause", "/api/v1/system/pause", json!({}), &["system", "pause"]),
        post("system.resume", "/api/v1/system/resume", json!({}), &["system", "resume"]),
        post("clock.accept", "/api/v1/cluster/clock/accept", json!({}), &["system", "accept-clock"]),
        // Refused by a node that is alone.
        post(
            "cluster.cordon",
            "/api/v1/cluster/members/n1/cordon",
            json!({"node": "n1"}),
            &["cluster", "cordon", "n1"],
        ),
    ]
}
