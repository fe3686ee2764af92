"""The protocol's methods and what makes each safe to repeat.

Generated from the table of operations (`schema/src/operations/table`) by `tests/interfaces/python_methods.rs`: change
the table, then write this file with `UPDATE_GOLDEN=1 cargo test --workspace --features campanile/faults --test interfaces`.
"""

from typing import Final, NamedTuple


class Method(NamedTuple):
    """A method of callers."""

    name: str
    """As RPC has it."""
    changes: bool = True
    """False: it only reads, so it is sent again when its answer was lost."""
    key: str | None = None
    """The field with the caller's key. A change that carries one is safe to repeat."""


JOB_CREATE: Final = Method("job.create", key="idempotencyKey")
"""Create a job."""

JOB_CREATE_MANY: Final = Method("job.createMany")
"""Create many jobs in one message, durable together, an answer for each."""

DAG_CREATE: Final = Method("dag.create", key="idempotencyKey")
"""Create a DAG of jobs that exist, by their ids."""

JOB_LIST: Final = Method("job.list", changes=False)
"""Jobs, in order of their id."""

JOB_FIND: Final = Method("job.find", changes=False)
"""The job of a name."""

JOB_PLAN: Final = Method("job.plan", changes=False)
"""What an apply of these manifests would do; changes nothing."""

JOB_APPLY: Final = Method("job.apply")
"""Bring jobs to what their manifests say, an answer for each."""

JOB_GET: Final = Method("job.get", changes=False)
"""A job."""

JOB_REPLACE: Final = Method("job.replace")
"""Replace a job's definition, given the version it replaces."""

JOB_DELETE: Final = Method("job.delete")
"""Delete a job; its history stays."""

JOB_PAUSE: Final = Method("job.pause")
"""Start nothing more; bodies that run go on."""

JOB_RESUME: Final = Method("job.resume")
"""Fire again, from the next due instant on."""

JOB_TRIGGER: Final = Method("job.trigger", key="manualRunId")
"""Run now; the same manualRunId makes one run."""

JOB_BACKFILL: Final = Method("job.backfill")
"""Run instants of the past that made no run, or whose run failed, or all of them, behind the live runs."""

JOB_REPLAY: Final = Method("job.replay")
"""Run instants that made a run once more, with the params of that run."""

JOB_BACKFILL_GET: Final = Method("job.backfillGet", changes=False)
"""The newest backfill or replay of a job, with its progress."""

BACKFILL_GET: Final = Method("backfill.get", changes=False)
"""A backfill or a replay, with its progress."""

BACKFILL_CANCEL: Final = Method("backfill.cancel")
"""Cancel a backfill: it starts nothing more, and its open runs are canceled."""

BACKFILL_PAUSE: Final = Method("backfill.pause")
"""Start nothing more of a backfill; its runs that are open go on."""

BACKFILL_RESUME: Final = Method("backfill.resume")
"""Go on with a backfill that was paused."""

BULK_CREATE: Final = Method("bulk.create")
"""Pause, resume, trigger or delete all jobs that a filter names, or cancel, retry or redrive its runs; dryRun only counts them."""

BULK_LIST: Final = Method("bulk.list", changes=False)
"""Bulk operations, the newest first."""

BULK_GET: Final = Method("bulk.get", changes=False)
"""A bulk operation, with its progress."""

BULK_ABORT: Final = Method("bulk.abort")
"""Begin no further items of a bulk operation; what it has done stays."""

BULK_UNDO: Final = Method("bulk.undo")
"""Resume what a bulk operation has paused, or pause what it has resumed, as far as nobody has changed it since."""

JOB_RUNS: Final = Method("job.runs", changes=False)
"""A job's runs, newest first."""

JOB_LEDGER: Final = Method("job.ledger", changes=False)
"""What became of every due instant."""

JOB_EXPLAIN: Final = Method("job.explain", changes=False)
"""Why a job fires or does not, or what became of one of its instants."""

JOB_STATISTICS: Final = Method("job.statistics", changes=False)
"""Outcomes, durations and lateness of a job's runs."""

JOB_VERSIONS: Final = Method("job.versions", changes=False)
"""The history of a job's definition, newest first: who changed what and why."""

JOB_ROLLBACK: Final = Method("job.rollback")
"""Give a job the definition of an earlier version, as a new version."""

SCHEDULE_PREVIEW: Final = Method("schedule.preview", changes=False)
"""When a trigger would fire; creates nothing."""

SCHEDULE_LOAD: Final = Method("schedule.load", changes=False)
"""How many instants are due in each of the next minutes."""

RUN_LIST: Final = Method("run.list", changes=False)
"""Runs of all jobs: those that are open, newest first, then those that have ended, the last one first."""

RUN_FAILED: Final = Method("run.failed", changes=False)
"""FAILED and TIMEOUT runs, newest first."""

RUN_GET: Final = Method("run.get", changes=False)
"""A run with its attempts; can wait for its end."""

RUN_EXPLAIN: Final = Method("run.explain", changes=False)
"""Why a run exists, why it is not running, why it was late."""

RUN_CANCEL: Final = Method("run.cancel")
"""Cancel a run that is not final."""

RUN_RETRY: Final = Method("run.retry")
"""Run a final run again, as its next generation."""

RUN_CONFIRM: Final = Method("run.confirm")
"""Decide about a run in NEEDS_CONFIRMATION."""

RUN_PRIORITY: Final = Method("run.priority")
"""Give a run that waits a priority of its own."""

DAG_NODES: Final = Method("dag.nodes", changes=False)
"""The nodes of a run of a DAG, with a layout."""

DAG_RETRY: Final = Method("dag.retry")
"""Run nodes of a DAG run again; what did not run because of them follows."""

DAG_MARK: Final = Method("dag.mark")
"""Set the state of a node of a DAG run, SUCCESS or SKIPPED; what waits for it goes on."""

DAG_PAUSE: Final = Method("dag.pause")
"""Pause one run of a DAG: no further node starts, and runs of nodes go on."""

DAG_RESUME: Final = Method("dag.resume")
"""Resume a paused run of a DAG: nodes start again."""

RUN_LOG: Final = Method("run.log", changes=False)
"""The output of an attempt."""

DLQ_LIST: Final = Method("dlq.list", changes=False)
"""Dead letters, newest first."""

DLQ_CAUSES: Final = Method("dlq.causes", changes=False)
"""Dead letters by their cause, the most frequent first."""

DLQ_REDRIVE: Final = Method("dlq.redrive")
"""Run a dead letter again."""

DLQ_DISCARD: Final = Method("dlq.discard")
"""Put a dead letter away; the run stays."""

OUTBOX_LIST: Final = Method("outbox.list", changes=False)
"""Messages between jobs that wait or were given up."""

OUTBOX_RESEND: Final = Method("outbox.resend")
"""Send the messages of a run that were given up again."""

OUTBOX_DISCARD: Final = Method("outbox.discard")
"""Take the messages of a run that were given up off the list."""

TENANT_LIST: Final = Method("tenant.list", changes=False)
"""Tenants with their limits and use."""

TENANT_GET: Final = Method("tenant.get", changes=False)
"""A tenant."""

TENANT_SET: Final = Method("tenant.set")
"""Set a tenant's limits (0 = none)."""

TENANT_DELETE: Final = Method("tenant.delete")
"""Forget the limits and the pause of a tenant without jobs and open runs; its history stays."""

TARGET_LIST: Final = Method("target.list", changes=False)
"""The targets of a tenant that have settings."""

TARGET_GET: Final = Method("target.get", changes=False)
"""A target of a tenant, with the state of its breaker."""

TARGET_SET: Final = Method("target.set")
"""Set all settings of a target: how many runs may call it, how often, how many retries, and when to stop."""

TARGET_DELETE: Final = Method("target.delete")
"""Forget the settings of a target; jobs that name it have the default ones."""

CALENDAR_LIST: Final = Method("calendar.list", changes=False)
"""The calendars of a tenant."""

CALENDAR_GET: Final = Method("calendar.get", changes=False)
"""A calendar of a tenant, with its versions."""

CALENDAR_SET: Final = Method("calendar.set")
"""Set all days of a calendar, as its next version."""

CALENDAR_DELETE: Final = Method("calendar.delete")
"""Delete a calendar, 60 s later; jobs that name it wait from then on."""

CALENDAR_PREVIEW: Final = Method("calendar.preview", changes=False)
"""The days that a calendar has or would have, and the next instants of jobs that a new version would change."""

TENANT_PAUSE: Final = Method("tenant.pause")
"""Stop firing and starting for a tenant."""

TENANT_RESUME: Final = Method("tenant.resume")
"""Undo a tenant's pause."""

SYSTEM_PAUSE: Final = Method("system.pause")
"""Stop firing and starting everywhere."""

SYSTEM_RESUME: Final = Method("system.resume")
"""Undo the system's pause."""

CLOCK_ACCEPT: Final = Method("clock.accept")
"""Fire again after a jump of the clock: it is right."""

AUDIT_LIST: Final = Method("audit.list", changes=False)
"""The audit trail, newest first: who changed what and why, and who was refused."""

EXECUTOR_LIST: Final = Method("executor.list", changes=False)
"""Executors that are connected, of all nodes."""

POOL_LIST: Final = Method("pool.list", changes=False)
"""Pools with their executors and waiting runs, of all nodes."""

SYSTEM_INFO: Final = Method("system.info", changes=False)
"""Facts of this node, with numbers of all nodes."""

CLUSTER_MEMBERS: Final = Method("cluster.members", changes=False)
"""Living nodes of the cluster, as this one sees them."""

CLUSTER_SHARDS: Final = Method("cluster.shards", changes=False)
"""Who owns each shard."""

CLUSTER_PLAN: Final = Method("cluster.plan", changes=False)
"""Shards that are to move, and why."""

CLUSTER_EVENTS: Final = Method("cluster.events", changes=False)
"""What this node saw happen, the newest first."""

CLUSTER_CORDON: Final = Method("cluster.cordon")
"""Give a node nothing new; it keeps what it has."""

CLUSTER_UNCORDON: Final = Method("cluster.uncordon")
"""Undo a node's cordon."""

METHODS: Final = {
    method.name: method
    for method in (
        JOB_CREATE,
        JOB_CREATE_MANY,
        DAG_CREATE,
        JOB_LIST,
        JOB_FIND,
        JOB_PLAN,
        JOB_APPLY,
        JOB_GET,
        JOB_REPLACE,
        JOB_DELETE,
        JOB_PAUSE,
        JOB_RESUME,
        JOB_TRIGGER,
        JOB_BACKFILL,
        JOB_REPLAY,
        JOB_BACKFILL_GET,
        BACKFILL_GET,
        BACKFILL_CANCEL,
        BACKFILL_PAUSE,
        BACKFILL_RESUME,
        BULK_CREATE,
        BULK_LIST,
        BULK_GET,
        BULK_ABORT,
        BULK_UNDO,
        JOB_RUNS,
        JOB_LEDGER,
        JOB_EXPLAIN,
        JOB_STATISTICS,
        JOB_VERSIONS,
        JOB_ROLLBACK,
        SCHEDULE_PREVIEW,
        SCHEDULE_LOAD,
        RUN_LIST,
        RUN_FAILED,
        RUN_GET,
        RUN_EXPLAIN,
        RUN_CANCEL,
        RUN_RETRY,
        RUN_CONFIRM,
        RUN_PRIORITY,
        DAG_NODES,
        DAG_RETRY,
        DAG_MARK,
        DAG_PAUSE,
        DAG_RESUME,
        RUN_LOG,
        DLQ_LIST,
        DLQ_CAUSES,
        DLQ_REDRIVE,
        DLQ_DISCARD,
        OUTBOX_LIST,
        OUTBOX_RESEND,
        OUTBOX_DISCARD,
        TENANT_LIST,
        TENANT_GET,
        TENANT_SET,
        TENANT_DELETE,
        TARGET_LIST,
        TARGET_GET,
        TARGET_SET,
        TARGET_DELETE,
        CALENDAR_LIST,
        CALENDAR_GET,
        CALENDAR_SET,
        CALENDAR_DELETE,
        CALENDAR_PREVIEW,
        TENANT_PAUSE,
        TENANT_RESUME,
        SYSTEM_PAUSE,
        SYSTEM_RESUME,
        CLOCK_ACCEPT,
        AUDIT_LIST,
        EXECUTOR_LIST,
        POOL_LIST,
        SYSTEM_INFO,
        CLUSTER_MEMBERS,
        CLUSTER_SHARDS,
        CLUSTER_PLAN,
        CLUSTER_EVENTS,
        CLUSTER_CORDON,
        CLUSTER_UNCORDON,
    )
}
"""Every method of callers, by its name."""
