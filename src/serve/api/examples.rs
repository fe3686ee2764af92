//! An example of every call and every answer, for the OpenAPI document. Tests parse the bodies with their types and
//! check the answers against their schemas.

mod calendars;

use campanile_schema::error::{ApiError, ErrorCode};
use serde_json::{Value, json};

const CREATED: &str = "2026-02-24T08:00:00.000Z";
const AT: &str = "2026-02-25T01:00:00.000Z";
const ENDED: &str = "2026-02-25T01:00:41.250Z";

fn cron() -> Value {
    json!({"type": "CRON", "expr": "0 2 * * *", "timezone": "Europe/Berlin"})
}

/// A trigger as it is read: with everything that was left out.
fn resolved() -> Value {
    json!({
        "type": "CRON", "expr": "0 2 * * *", "dialect": "UNIX", "timezone": "Europe/Berlin", "gap": "SHIFT",
        "overlap": "FIRST", "startAt": null, "endAt": null, "jitterSec": 0, "misfirePolicy": "FIRE_ONCE_NOW",
        "misfireThresholdSec": 60, "maxCatchUp": 1000,
    })
}

fn spec() -> Value {
    json!({
        "name": "daily_billing", "tenantId": "default", "trigger": cron(),
        "action": {"kind": "HANDLER", "name": "daily_billing"}, "params": {"customer": 7}, "labels": {"team": "pay"},
    })
}

/// A job that sends a request.
fn request() -> Value {
    json!({
        "name": "notify", "trigger": cron(), "params": {"customer": 7},
        "action": {
            "kind": "HTTP", "method": "POST", "url": "https://example.org/hook?day={{logicalTime}}",
            "headers": {"X-Team": "pay"}, "body": {"customer": "{{params.customer}}"},
            "expectStatus": [200, 299], "timeoutSec": 30,
        },
    })
}

const MANIFEST: &str =
    "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: daily_billing}\nspec: {schedule: 0 2 * * *}\n";

fn planned() -> Value {
    json!({
        "action": "CREATE", "tenantId": "default", "name": "daily_billing", "file": "billing.yaml", "line": 1,
        "changes": [], "hazards": [],
    })
}

fn created() -> Value {
    json!({"jobId": 8193, "status": "ENABLED", "nextFireAt": AT})
}

fn job(status: &str) -> Value {
    json!({
        "jobId": 8193, "name": "daily_billing", "tenantId": "default", "status": status, "version": 1,
        "createdAt": CREATED, "updatedAt": CREATED, "nextFireAt": if status == "ENABLED" { Some(AT) } else { None },
        "lastRunAt": null, "lastRunState": null, "runCount": 0, "trigger": resolved(),
        "concurrencyPolicy": "FORBID", "timeoutSec": 3600, "idempotent": true, "onLostContact": "CONTINUE",
        "retryPolicy": {
            "maxAttempts": 3, "backoff": "EXPONENTIAL", "baseDelaySec": 10.0, "maxDelaySec": 3600.0, "jitter": 0.2,
        },
        "deadLetter": true, "executorSelector": "default", "action": {"kind": "HANDLER", "name": "daily_billing"},
        "params": {"customer": 7}, "secretParams": {}, "labels": {"team": "pay"}, "priority": 100,
        "resources": {"cpu": 0.1, "memoryMb": 64, "storageMb": 0},
    })
}

fn run(state: &str) -> Value {
    let ended = matches!(state, "SUCCESS" | "FAILED" | "CANCELED").then_some(ENDED);
    let error = (state == "FAILED").then_some("no space left");
    let attempt = json!({
        "attempt": 1, "generation": 1, "token": 1, "state": state, "executorId": "billing-1",
        "startedAt": AT, "endedAt": ended, "errorCode": error.map(|_| "DISK_FULL"), "errorMessage": error,
        "cpuMs": 1200, "maxRssKb": 34567,
    });
    let attempts = if state == "QUEUED" { Vec::new() } else { vec![attempt] };
    json!({
        "runId": 4194305, "jobId": 8193, "tenantId": "default", "state": state, "source": "SCHEDULE",
        "logicalTime": AT, "key": null, "generation": 1, "attemptCount": attempts.len(), "nextRetryAt": null,
        "executorId": null, "createdAt": AT, "startedAt": AT, "endedAt": ended, "lastError": error,
        "waitReason": null, "deadLetter": state == "FAILED", "reason": null, "result": null, "attempts": attempts,
    })
}

/// A backfill that has begun; without an id that of a dry run.
fn backfill(id: Option<u64>) -> Value {
    let mut view = json!({
        "jobId": 8193, "tenantId": "default", "mode": "MISSING", "from": CREATED, "to": ENDED, "parallelism": 4,
        "unknownInstants": "SKIP", "hooks": false, "instants": 7, "missing": 5, "failed": 1, "existing": 0, "unknown": 0,
        "toRun": 5, "estimatedSec": 90,
    });
    if let Some(id) = id {
        view["backfillId"] = json!(id);
        view["state"] = json!("RUNNING");
        view["progress"] = json!({
            "doneUntil": AT, "started": 3, "active": 1, "succeeded": 2, "failed": 0, "canceled": 0, "existing": 0, "unknown": 0,
        });
        view["createdAt"] = json!(CREATED);
    }
    view
}

/// A bulk operation that goes on; without an id that of a dry run.
fn bulk(id: Option<u64>) -> Value {
    let mut view = json!({
        "action": "PAUSE", "tenantId": "default", "filter": {"labels": "team=pay"}, "matched": 120, "matchedMore": false,
        "done": 0, "unchanged": 0, "failed": 0, "compensated": 0, "left": 120,
    });
    if let Some(id) = id {
        view["bulkId"] = json!(id);
        view["state"] = json!("RUNNING");
        view["done"] = json!(62);
        view["unchanged"] = json!(2);
        view["left"] = json!(56);
        view["requestedBy"] = json!("olga");
        view["createdAt"] = json!(CREATED);
    } else {
        view["first"] = json!([{"id": 8193, "name": "daily_billing", "state": "ENABLED"}]);
    }
    view
}

/// A run of a DAG of two nodes.
fn dag() -> Value {
    let node = |id: &str, job: &str, state: &str, run: Option<u64>, layer: u32| {
        json!({
            "id": id, "job": job, "rule": "ALL_SUCCESS", "state": state, "runId": run,
            "generation": u32::from(run.is_some()), "layer": layer, "row": 0, "x": 110 + 220 * layer, "y": 40,
        })
    };
    json!({
        "runId": 4194305, "jobId": 16385, "tenantId": "default", "state": "RUNNING", "generation": 1, "version": 1,
        "nodes": [node("A", "load", "SUCCESS", Some(4194306), 0), node("B", "report", "WAITING", None, 1)],
        "edges": [{"from": "A", "to": "B", "when": "parent.result.rows > 0"}], "width": 440, "height": 80,
    })
}

/// The definition of a job as it is read.
fn whole_spec() -> Value {
    let mut spec = job("ENABLED");
    let of_job =
        ["jobId", "status", "version", "createdAt", "updatedAt", "nextFireAt", "lastRunAt", "lastRunState", "runCount"];
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !of_job.contains(&name.as_str()));
    }
    spec
}

fn reason(topic: &str, code: &str, sentence: &str, held_by: &[Value], freed_by: Option<&str>) -> Value {
    let mut reason = json!({"topic": topic, "code": code, "sentence": sentence});
    if !held_by.is_empty() {
        reason["heldBy"] = json!(held_by);
    }
    if let Some(freed_by) = freed_by {
        reason["freedBy"] = json!(freed_by);
    }
    reason
}

fn page(items: Value) -> Value {
    json!({"items": [items], "nextPageToken": null})
}

fn tenant() -> Value {
    json!({
        "tenantId": "finance", "quota": limits(), "version": 1, "paused": false, "jobs": 12, "running": 1, "waiting": 0,
    })
}

fn limits() -> Value {
    json!({"maxConcurrentRuns": 50, "maxTriggersPerSec": 100.0, "maxJobs": 1000, "maxQueuedRuns": 0})
}

fn target() -> Value {
    json!({
        "tenantId": "finance", "target": "ledger-db", "settings": target_settings(), "version": 1, "breaker": "CLOSED",
        "running": 3, "waiting": 0,
    })
}

fn target_settings() -> Value {
    json!({
        "maxConcurrentRuns": 8, "maxRunsPerSec": 20.0, "retryPercent": 10, "failurePercent": 50, "minAttempts": 10,
        "openSec": 10,
    })
}

fn audited() -> Value {
    json!({
        "at": AT, "who": "olga", "address": "192.0.2.7", "operation": "job.pause", "tenantId": "default", "jobId": 8193,
        "reason": "maintenance", "outcome": "DONE", "count": 1, "requestId": "1-10",
    })
}

/// The body of a call.
pub(super) fn body(operation: &str) -> Option<Value> {
    Some(match operation {
        "job.create" => request(),
        "job.createLines" => spec(),
        "job.replace" => json!({"version": 1, "spec": spec()}),
        "job.plan" | "job.apply" => json!({
            "files": [{"name": "billing.yaml", "text": MANIFEST}], "tenantId": "default", "owner": "billing",
        }),
        "job.trigger" => json!({"manualRunId": "manual_1", "params": {"customer": 8}, "reason": "asked by support"}),
        "run.confirm" => json!({"decision": "RERUN", "reason": "it had not begun"}),
        "run.priority" => json!({"priority": 900, "reason": "the customer waits for it"}),
        "dag.create" => json!({
            "dagId": "billing_dag_v1", "nodes": [8193, 12289], "edges": [{"from": 8193, "to": 12289}],
        }),
        "job.backfill" => json!({"from": CREATED, "to": ENDED, "parallelism": 4, "dryRun": true}),
        "job.replay" => json!({"from": CREATED, "to": ENDED, "reason": "the report was wrong"}),
        "bulk.create" => json!({"action": "PAUSE", "filter": {"labels": "team=pay"}, "reason": "the bank is closed"}),
        "dag.retry" => json!({"nodes": ["B"], "andAfter": false, "reason": "the disk has room again"}),
        "job.rollback" => json!({"to": 3, "version": 4, "reason": "the new schedule was wrong"}),
        "dag.mark" => json!({"node": "B", "state": "SUCCESS", "reason": "done by hand"}),
        "schedule.preview" => json!({"trigger": cron(), "after": CREATED, "count": 3}),
        "tenant.set" => limits(),
        "target.set" => target_settings(),
        "calendar.set" => json!({"spec": calendars::spec(), "version": 1, "reason": "holidays of 2026"}),
        "calendar.preview" => json!({"spec": calendars::spec(), "from": "2026-10-01", "days": 14}),
        "job.pause" | "job.resume" | "bulk.abort" | "bulk.undo" | "backfill.pause" | "backfill.resume"
        | "run.cancel" | "run.retry" | "dag.pause" | "dag.resume" | "dlq.redrive" | "dlq.discard" | "outbox.resend"
        | "outbox.discard" | "tenant.pause" | "tenant.resume" | "system.pause" | "system.resume" | "clock.accept"
        | "cluster.cordon" | "cluster.uncordon" => {
            json!({"reason": "maintenance"})
        }
        _ => return None,
    })
}

/// An answer to what was done and is carried on.
pub(super) fn accepted(operation: &str) -> Option<Value> {
    let of_all = ["tenant.pause", "tenant.resume", "system.pause", "system.resume"];
    if matches!(operation, "job.backfill" | "job.replay") {
        return Some(backfill(Some(20481)));
    }
    if operation == "bulk.create" {
        return Some(bulk(Some(24576)));
    }
    of_all.contains(&operation).then(|| json!({"outstanding": [7, 201]}))
}

/// A good answer.
pub(super) fn answer(operation: &str) -> Option<Value> {
    Some(match operation {
        "job.create" => created(),
        "job.createLines" => json!({"line": 1, "ok": created()}),
        "job.plan" => json!({
            "planId": "5f1c2a9017aa03bd", "create": 1, "change": 0, "unchanged": 0, "delete": 0, "items": [planned()],
        }),
        "job.apply" => {
            let mut item = planned();
            item["jobId"] = json!(8193);
            item["outcome"] = json!("DONE");
            json!({
                "created": 1, "changed": 0, "unchanged": 0, "deleted": 0, "failed": 0, "notBegun": 0, "items": [item],
            })
        }
        "page.jobSchema" => json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
        "job.list" => page(job("ENABLED")),
        "job.find" | "job.get" | "job.replace" | "job.resume" | "job.rollback" => job("ENABLED"),
        "job.explain" => json!({
            "tenantId": "default", "jobId": 8193, "jobName": "daily_billing", "jobStatus": "ENABLED", "now": CREATED,
            "reasons": [reason("SCHEDULE", "NEXT_FIRE", &format!("the job is due next at {AT}, in 17 h"), &[], None)],
        }),
        "run.explain" => json!({
            "tenantId": "default", "jobId": 8193, "jobName": "daily_billing", "runId": 4194305, "runState": "QUEUED",
            "now": AT, "reasons": [
                reason("ORIGIN", "SCHEDULE_DUE", &format!("the schedule of the job was due at {AT}"), &[], None),
                reason(
                    "WAIT", "TENANT_CONCURRENCY", "50 of 50 permits are lent; 3 runs wait",
                    &[json!({"kind": "RUN", "id": "4194304", "state": "RUNNING", "since": CREATED})],
                    Some("the end of a run of tenant 'default', or a higher maxConcurrentRuns (campanile tenant set)"),
                ),
            ],
        }),
        "job.statistics" => json!({
            "jobId": 8193, "from": CREATED, "to": ENDED, "runs": 24, "truncated": false,
            "outcomes": [{"state": "SUCCESS", "count": 23}, {"state": "FAILED", "count": 1}],
            "successRate": 0.958, "failureRate": 0.042, "retried": 2,
            "durationMs": {"count": 24, "mean": 40210.5, "p50": 40100, "p95": 41250, "max": 52000},
            "latenessMs": {"count": 24, "mean": 21.0, "p50": 18, "p95": 40, "max": 77},
        }),
        "job.versions" => page(json!({
            "version": 2, "at": AT, "who": "olga", "address": "192.0.2.7", "operation": "job.replace",
            "reason": "after the move", "comparedWith": 1,
            "changes": [{"field": "trigger.expr", "before": "0 1 * * *", "after": "0 2 * * *"}], "spec": whole_spec(),
        })),
        "job.pause" => job("PAUSED"),
        "job.trigger" | "run.retry" | "dlq.redrive" => run("QUEUED"),
        "dag.create" => json!({"dagId": "billing_dag_v1", "jobId": 16385, "status": "ENABLED"}),
        "dag.nodes" => dag(),
        "run.priority" => {
            let mut run = run("QUEUED");
            run["priority"] = json!(900);
            run
        }
        "dag.retry" | "dag.mark" | "dag.pause" | "dag.resume" => {
            let mut run = run("QUEUED");
            run["state"] = json!("RUNNING");
            run
        }
        "job.backfill" | "job.replay" => backfill(None),
        "job.backfillGet" | "backfill.get" | "backfill.resume" => backfill(Some(20481)),
        "backfill.pause" | "backfill.cancel" => {
            let mut view = backfill(Some(20481));
            view["state"] = json!(if operation == "backfill.pause" { "PAUSED" } else { "CANCELING" });
            view
        }
        "bulk.create" => bulk(None),
        "bulk.list" => page(bulk(Some(24576))),
        "bulk.get" => bulk(Some(24576)),
        "bulk.abort" => {
            let mut view = bulk(Some(24576));
            view["state"] = json!("ABORTING");
            view
        }
        "bulk.undo" => {
            let mut view = bulk(Some(28672));
            view["action"] = json!("RESUME");
            view["undoOf"] = json!(24576);
            view
        }
        "job.runs" => page(run("SUCCESS")),
        "job.ledger" => json!({
            "jobId": 8193, "from": CREATED, "to": ENDED, "truncated": false,
            "items": [{"logicalTime": AT, "count": 1, "outcome": "FIRED", "runId": 4194305}],
        }),
        "schedule.preview" => json!({
            "trigger": resolved(), "next": [AT, "2026-02-26T01:00:00.000Z", "2026-02-27T01:00:00.000Z"],
            "description": "at 02:00", "hazards": ["2026-03-29 02:00 does not exist in Europe/Berlin: it fires at 03:00"],
        }),
        "run.failed" | "run.list" => page(run("FAILED")),
        "run.get" | "run.confirm" => run("SUCCESS"),
        "run.cancel" => run("CANCELED"),
        "run.log" => json!({
            "runId": 4194305, "attempt": 1, "offset": 0, "text": "billing 7\n", "nextOffset": 10, "end": true,
        }),
        "dlq.list" => page(json!({
            "runId": 4194305, "jobId": 8193, "jobName": "daily_billing", "tenantId": "default",
            "reason": "FAILED: no space left", "cause": "5f1c2a9017aa03bd", "at": ENDED, "attemptCount": 3,
        })),
        "dlq.causes" => json!({
            "counted": 40, "truncated": false, "items": [{
                "cause": "5f1c2a9017aa03bd", "reason": "FAILED: no space left", "count": 38, "jobs": 3, "runId": 4194305,
                "firstAt": AT, "lastAt": ENDED,
            }],
        }),
        "schedule.load" => json!({"items": [{"at": AT, "count": 400}], "jobs": 372, "truncated": false}),
        "outbox.list" => page(json!({
            "runId": 4194305, "generation": 1, "jobId": 8193, "tenantId": "default", "kind": "HOOK",
            "targetJob": "refund", "state": "REFUSED", "reason": "JOB_DELETED", "decidedAt": ENDED,
            "givenUpAt": ENDED, "mayHaveRun": false,
        })),
        "tenant.list" => json!({"items": [tenant()]}),
        "tenant.get" | "tenant.set" => tenant(),
        "target.list" => json!({"items": [target()]}),
        "target.get" | "target.set" => target(),
        "calendar.list" => json!({"items": [calendars::calendar()]}),
        "calendar.get" | "calendar.set" => calendars::calendar(),
        "calendar.preview" => calendars::preview(),
        "executor.list" => json!({"items": [{
            "executorId": "billing-1", "session": 1234567890, "pools": ["default"], "slots": 8, "running": 1, "credit": 7,
            "state": "READY", "labels": {"zone": "a"}, "lastHeartbeatAt": AT,
            "nodes": [{"node": "n1", "state": "READY", "running": 1, "credit": 7, "lastHeartbeatAt": AT}],
        }]}),
        "pool.list" => {
            json!({"items": [{"name": "default", "executors": 1, "credit": 7, "running": 1, "waiting": 0}]})
        }
        "system.info" => json!({
            "version": env!("CARGO_PKG_VERSION"), "clusterId": 77, "shards": 256, "epoch": 3, "tzdb": "2026b",
            "ready": true, "notReadyReasons": [], "jobs": 12, "openRuns": 1, "executors": 1, "now": AT,
        }),
        "cluster.members" => json!({"items": [{
            "name": "n1", "state": "ALIVE", "isSelf": true, "shards": 86, "session": 3, "build": env!("CARGO_PKG_VERSION"),
            "http": "127.0.0.1:7700", "rpc": "127.0.0.1:7701", "gateway": "127.0.0.1:7702", "gossip": "127.0.0.1:7703",
            "clockOffsetMs": 0,
        }]}),
        "cluster.shards" => json!({"items": [{
            "shard": 0, "node": "n1", "session": 3, "epoch": 2, "servedHere": true, "spans": 1, "snapshotSeq": 120,
        }]}),
        "cluster.plan" => json!({
            "balanced": false, "cap": 90, "moves": [{"shard": 7, "from": "n1", "to": "n2", "reason": "BALANCE"}],
        }),
        "cluster.events" => json!({"items": [{
            "at": AT, "kind": "SHARD_SERVED", "node": null, "shard": 7, "detail": "epoch 2, 14 frames replayed",
        }]}),
        "audit.list" => page(audited()),
        "audit.export" => audited(),
        "session.open" | "session.get" => json!({
            "name": "olga", "role": "OPERATOR", "knownBy": "SESSION", "expiresAt": "2026-02-25T13:00:00.000Z",
            "version": env!("CARGO_PKG_VERSION"),
        }),
        "page.asset" => json!("export {};"),
        "store.backup" | "store.history" => json!("CMPNARC1..."),
        "page.readyz" => json!({"ready": true}),
        "page.openapi" => json!({"openapi": "3.1.0", "info": {"title": "Campanile"}, "paths": {}}),
        "page.healthz" => json!("ok\n"),
        "page.metrics" => json!("campanile_http_requests_total{operation=\"job.get\",status=\"200\"} 1\n"),
        "page.root" | "page.api" | "page.errors" => json!("<!doctype html>..."),
        _ => return None,
    })
}

/// Another form of a good answer.
pub(super) fn text(media: &str) -> &'static str {
    match media {
        "text/event-stream" => {
            "retry: 1000\n\nid: 1-10\nevent: log\ndata: {\"runId\":4194305,\"attempt\":1,\"offset\":0,\"text\":\"billing 7\\n\",\
             \"nextOffset\":10,\"end\":true}\n\nevent: end\ndata: {\"runId\":4194305,\"runState\":\"SUCCESS\",\"attempt\":1,\
             \"attemptState\":\"SUCCESS\"}\n\n"
        }
        _ => "billing 7\n",
    }
}

/// Server-sent events of a watch.
pub(super) fn changes(operation: &str) -> String {
    let (name, change) = match operation {
        "job.watch" | "job.watchOne" => (
            "job",
            json!({
                "at": AT, "jobId": 8193, "jobName": "daily_billing", "tenantId": "default", "change": "PAUSED",
                "status": "PAUSED", "version": 2,
            }),
        ),
        _ => (
            "run",
            json!({
                "at": AT, "runId": 4194305, "jobId": 8193, "jobName": "daily_billing", "tenantId": "default",
                "state": "RUNNING", "source": "SCHEDULE", "logicalTime": AT, "generation": 1, "attemptCount": 1,
                "executorId": "billing-1", "nextRetryAt": null, "lastError": null,
            }),
        ),
    };
    format!("retry: 1000\n\nid: 64b1f0-11\nevent: {name}\ndata: {change}\n\n")
}

/// A parameter of a path, query or header.
pub(super) fn parameter(name: &str) -> Option<Value> {
    Some(match name {
        "jobId" => json!(8193),
        "runId" => json!(4194305),
        "backfillId" => json!(20481),
        "bulkId" => json!(24576),
        "tenantId" => json!("default"),
        "node" => json!("n1"),
        "target" => json!("ledger-db"),
        "file" => json!("index.js"),
        "name" | "text" => json!("daily_billing"),
        "labels" => json!("team=pay"),
        "status" => json!("ENABLED"),
        "state" => json!("FAILED"),
        "format" => json!("json"),
        "draw" => json!("MERMAID"),
        "follow" => json!(false),
        "from" => json!(CREATED),
        "to" => json!(ENDED),
        "reason" => json!("not needed any more"),
        "attempt" | "page" => json!(1),
        "contains" => json!("timed out"),
        "level" => json!("ERROR"),
        "tail" => json!(100),
        "offset" | "waitSec" => json!(0),
        "after" => json!("64b1f0-11"),
        "who" => json!("olga"),
        "operation" => json!("job.pause"),
        "outcome" => json!("DONE"),
        "source" => json!("SCHEDULE"),
        "at" => json!(AT),
        "window" => json!("24h"),
        "cause" => json!("5f1c2a9017aa03bd"),
        "minutes" => json!(60),
        "against" => json!(4),
        "pageSize" => json!(50),
        "pageToken" => json!(""),
        "Idempotency-Key" => json!("request-1"),
        "X-Request-Id" | "Last-Event-ID" => json!("1-10"),
        _ => return None,
    })
}

/// What such a refusal says.
pub(super) fn problem(code: ErrorCode) -> Value {
    let error = ApiError::new(code, code.title());
    json!(super::Problem::new(error, Some("6f1c2a90-17".to_owned())))
}
