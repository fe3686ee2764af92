"""One method per method of the protocol, names as in the wire spec with `_` for the dot."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from campanile import methods
from campanile.enums import (
    BackfillMode,
    BulkAction,
    DagDrawing,
    Decision,
    JobStatus,
    LogLevel,
    NodeState,
    Source,
    UnknownInstants,
)
from campanile.errors import ApiError, api_error, protocol_error
from campanile.shapes import Json, read, to_ms, to_payload, write
from campanile.spec import Blackout, JobSpec, Trigger, Window
from campanile.views import (
    Applied,
    AuditRecord,
    Calendar,
    CalendarPreview,
    Backfill,
    Bulk,
    Causes,
    ClusterEvent,
    Created,
    DagCreated,
    DagRun,
    DeadLetter,
    ExecutorInfo,
    Explanation,
    Gathered,
    Job,
    Ledger,
    Load,
    Member,
    MissingNode,
    NodeInfo,
    OutboxMessage,
    Page,
    Plan,
    Pool,
    Preview,
    Quota,
    Run,
    RunLog,
    Shard,
    ShardPlan,
    Statistics,
    Target,
    TargetSettings,
    Tenant,
    Version,
)

T = TypeVar("T")


class Calls(ABC):
    """Every call of the protocol. Each raises a CampanileError; `reason` is kept with the change, for people."""

    @abstractmethod
    async def call(self, method: str, params: dict[str, Any] | None = None, *, timeout_sec: float | None = None) -> Any:
        """Any method by name with its map as the wire has it, for those that this release does not know yet."""

    async def job_create(self, spec: JobSpec, *, idempotency_key: str | None = None) -> Created:
        """Creates a job.

        With a key (kept for 30 days) the call is safe to repeat, and is repeated when its answer is lost: the same key with
        the same job answers with what was made. DuplicateNameError, InvalidScheduleError, QuotaError,
        IdempotencyKeyReusedError.
        """
        key = {} if idempotency_key is None else {"idempotencyKey": idempotency_key}
        return read(Created, await self.call(methods.JOB_CREATE.name, {**key, **write(spec)}))

    async def job_create_many(self, specs: Iterable[JobSpec]) -> list[Created | ApiError]:
        """Creates up to 10,000 jobs in one message, durable together; an answer per job, in order. It raises none of those."""
        answer = await self.call(methods.JOB_CREATE_MANY.name, {"items": [write(spec) for spec in specs]})
        return [_item(item) for item in _items(answer)]

    async def job_plan(
        self,
        files: Mapping[str, str],
        *,
        tenant_id: str | None = None,
        owner: str | None = None,
        prune: bool = False,
        prune_labels: str | None = None,
        take_over: bool = False,
        forecast: bool = False,
    ) -> Plan:
        """What an apply of these manifests would do; it changes nothing. `files`: texts (YAML or JSON) by name.

        With `forecast` it also says what the changes do to next fires, to the fullest minutes, and to the limits of tenants.
        """
        given = _manifests(
            files,
            tenantId=tenant_id,
            owner=owner,
            prune=prune,
            pruneLabels=prune_labels,
            takeOver=take_over,
            forecast=True if forecast else None,
        )
        return read(Plan, await self.call(methods.JOB_PLAN.name, given))

    async def job_apply(
        self,
        files: Mapping[str, str],
        *,
        tenant_id: str | None = None,
        owner: str | None = None,
        prune: bool = False,
        prune_labels: str | None = None,
        take_over: bool = False,
        plan_id: str | None = None,
    ) -> Applied:
        """Brings jobs to what these manifests say; nothing is changed while anything is wrong with any of them.

        With the `plan_id` of a plan only exactly that is done: StaleVersionError when something else would be by now.
        """
        given = _manifests(
            files,
            tenantId=tenant_id,
            owner=owner,
            prune=prune,
            pruneLabels=prune_labels,
            takeOver=take_over,
            planId=plan_id,
        )
        return read(Applied, await self.call(methods.JOB_APPLY.name, given))

    async def job_get(self, job_id: int) -> Job:
        """The job. NotFoundError."""
        return read(Job, await self.call(methods.JOB_GET.name, {"jobId": job_id}))

    async def job_find(self, name: str, *, tenant_id: str | None = None) -> Job:
        """The job of a name; the tenant is the token's own, for operators `default`, unless named. NotFoundError."""
        return read(Job, await self.call(methods.JOB_FIND.name, {"name": name, **_given(tenantId=tenant_id)}))

    async def job_list(
        self,
        *,
        tenant_id: str | None = None,
        status: JobStatus | None = None,
        labels: str | None = None,
        text: str | None = None,
        page_token: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Page[Job]:
        """A page of jobs. `labels`: `key=value,key2!=value2,key3`; `text`: part of the name; `page_size` at most 1000."""
        params = _given(tenantId=tenant_id, status=status, labels=labels, text=text)
        return _page(Job, await self.call(methods.JOB_LIST.name, {**params, **_paging(page_token, page, page_size)}))

    async def job_replace(self, job_id: int, version: int, spec: JobSpec) -> Job:
        """Replaces the definition that has `version`. StaleVersionError when that is not the current one."""
        params = {"jobId": job_id, "version": version, "spec": write(spec)}
        return read(Job, await self.call(methods.JOB_REPLACE.name, params))

    async def job_delete(self, job_id: int, *, reason: str | None = None) -> None:
        """Deletes the job; its history stays."""
        await self.call(methods.JOB_DELETE.name, {"jobId": job_id, **_given(reason=reason)})

    async def job_pause(self, job_id: int, *, reason: str | None = None) -> Job:
        """No due instant fires until it is resumed; the ledger records them as skipped."""
        return read(Job, await self.call(methods.JOB_PAUSE.name, {"jobId": job_id, **_given(reason=reason)}))

    async def job_resume(self, job_id: int, *, reason: str | None = None) -> Job:
        """Ends a pause, or a quarantine."""
        return read(Job, await self.call(methods.JOB_RESUME.name, {"jobId": job_id, **_given(reason=reason)}))

    async def job_trigger(
        self, job_id: int, *, params: Json = None, manual_run_id: str | None = None, reason: str | None = None
    ) -> Run:
        """Runs the job now; `params` are merged over the job's.

        With `manual_run_id` the call is safe to repeat, and is repeated when its answer is lost: the same id makes one run.
        RunActiveError, JobPausedError, QuotaError.
        """
        given = _given(manualRunId=manual_run_id, reason=reason, params=None if params is None else to_payload(params))
        return read(Run, await self.call(methods.JOB_TRIGGER.name, {"jobId": job_id, **given}))

    async def job_runs(
        self, job_id: int, *, page_token: str | None = None, page: int | None = None, page_size: int | None = None
    ) -> Page[Run]:
        """A page of the job's runs, newest first."""
        return _page(
            Run, await self.call(methods.JOB_RUNS.name, {"jobId": job_id, **_paging(page_token, page, page_size)})
        )

    async def job_ledger(
        self, job_id: int, *, start: datetime | None = None, to: datetime | None = None, page_size: int | None = None
    ) -> Ledger:
        """What became of the job's due instants from `start` to `to`, both included; by default of the last day."""
        given = _given(start=start, to=to, pageSize=page_size)
        times = {
            "from" if name == "start" else name: to_ms(v) if isinstance(v, datetime) else v for name, v in given.items()
        }
        return read(Ledger, await self.call(methods.JOB_LEDGER.name, {"jobId": job_id, **times}))

    async def job_explain(self, job_id: int, *, at: datetime | None = None) -> Explanation:
        """When the job fires next and why it does not; with `at` what became of that instant."""
        given = {} if at is None else {"at": to_ms(at)}
        return read(Explanation, await self.call(methods.JOB_EXPLAIN.name, {"jobId": job_id, **given}))

    async def job_statistics(self, job_id: int, *, window: str | None = None) -> Statistics:
        """Outcomes, durations and lateness of the job's runs. `window`: `90s`, `30m`, `24h` (the default), `7d`."""
        return read(
            Statistics, await self.call(methods.JOB_STATISTICS.name, {"jobId": job_id, **_given(window=window)})
        )

    async def job_versions(
        self, job_id: int, *, against: int | None = None, page_token: str | None = None, page_size: int | None = None
    ) -> Page[Version]:
        """A page of the history of the job's definition, newest first: who changed what and why.

        `against`: compare each with this version instead of the one before it.
        """
        given = _given(against=against, pageToken=page_token, pageSize=page_size)
        return _page(Version, await self.call(methods.JOB_VERSIONS.name, {"jobId": job_id, **given}))

    async def job_rollback(self, job_id: int, to: int, *, version: int | None = None, reason: str | None = None) -> Job:
        """Gives the job the definition of the version `to`, as a new version. Secret params keep their values of now.

        With `version`: StaleVersionError when the job is not of this version any more.
        """
        params = {"jobId": job_id, "to": to, **_given(version=version, reason=reason)}
        return read(Job, await self.call(methods.JOB_ROLLBACK.name, params))

    async def job_backfill(
        self,
        job_id: int,
        start: datetime,
        to: datetime,
        *,
        parallelism: int | None = None,
        mode: BackfillMode = BackfillMode.MISSING,
        unknown: UnknownInstants = UnknownInstants.SKIP,
        hooks: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Backfill:
        """Runs instants of the past from `start` to `to`, both included, behind the live runs; a dry run only counts them.

        A job has one backfill at a time: ConflictError.
        """
        params = {
            "jobId": job_id,
            "from": to_ms(start),
            "to": to_ms(to),
            "mode": BackfillMode(mode).value,
            "unknown": UnknownInstants(unknown).value,
            "hooks": hooks,
            "dryRun": dry_run,
            **_given(parallelism=parallelism, reason=reason),
        }
        return read(Backfill, await self.call(methods.JOB_BACKFILL.name, params))

    async def job_replay(
        self,
        job_id: int,
        start: datetime,
        to: datetime,
        *,
        parallelism: int | None = None,
        hooks: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Backfill:
        """Runs the instants that made a run once more, with the params of that run."""
        params = {
            "jobId": job_id,
            "from": to_ms(start),
            "to": to_ms(to),
            "hooks": hooks,
            "dryRun": dry_run,
            **_given(parallelism=parallelism, reason=reason),
        }
        return read(Backfill, await self.call(methods.JOB_REPLAY.name, params))

    async def job_backfill_get(self, job_id: int) -> Backfill:
        """The newest backfill or replay of a job. NotFoundError: it never had one."""
        return read(Backfill, await self.call(methods.JOB_BACKFILL_GET.name, {"jobId": job_id}))

    async def backfill_get(self, backfill_id: int) -> Backfill:
        """A backfill with its progress; a job keeps its newest one. NotFoundError."""
        return read(Backfill, await self.call(methods.BACKFILL_GET.name, {"backfillId": backfill_id}))

    async def backfill_cancel(self, backfill_id: int, *, reason: str | None = None) -> Backfill:
        """Starts nothing more, and cancels the open runs of it."""
        params = {"backfillId": backfill_id, **_given(reason=reason)}
        return read(Backfill, await self.call(methods.BACKFILL_CANCEL.name, params))

    async def backfill_pause(self, backfill_id: int, *, reason: str | None = None) -> Backfill:
        """Starts nothing more; runs that are open go on."""
        params = {"backfillId": backfill_id, **_given(reason=reason)}
        return read(Backfill, await self.call(methods.BACKFILL_PAUSE.name, params))

    async def backfill_resume(self, backfill_id: int, *, reason: str | None = None) -> Backfill:
        """Goes on with a backfill that was paused, by a person or by a restore."""
        params = {"backfillId": backfill_id, **_given(reason=reason)}
        return read(Backfill, await self.call(methods.BACKFILL_RESUME.name, params))

    async def bulk_create(
        self,
        action: BulkAction,
        *,
        tenant_id: str | None = None,
        everything: bool = False,
        status: JobStatus | None = None,
        labels: str | None = None,
        text: str | None = None,
        state: str | None = None,
        job_id: int | None = None,
        source: Source | None = None,
        start: datetime | None = None,
        to: datetime | None = None,
        cause: str | None = None,
        grace_sec: int | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Bulk:
        """Changes all jobs or runs that fit what is given; a dry run only counts them. `everything`: without any filter.

        `grace_sec`: a DELETE pauses now and deletes so much later; until then `bulk_undo` brings the jobs back.
        """
        filters = {
            **_given(status=status and JobStatus(status).value, labels=labels, text=text, state=state, jobId=job_id),
            **_given(source=source and Source(source).value, cause=cause),
            **_times(start, to),
        }
        params = {
            "action": BulkAction(action).value,
            "filter": filters,
            "all": everything,
            "dryRun": dry_run,
            **_given(tenantId=tenant_id, graceSec=grace_sec, reason=reason),
        }
        return read(Bulk, await self.call(methods.BULK_CREATE.name, params))

    async def bulk_list(
        self,
        *,
        tenant_id: str | None = None,
        page_token: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Page[Bulk]:
        """A page of bulk operations, the newest first."""
        params = {**_given(tenantId=tenant_id), **_paging(page_token, page, page_size)}
        return _page(Bulk, await self.call(methods.BULK_LIST.name, params))

    async def bulk_get(self, bulk_id: int) -> Bulk:
        """A bulk operation with its progress. NotFoundError."""
        return read(Bulk, await self.call(methods.BULK_GET.name, {"bulkId": bulk_id}))

    async def bulk_abort(self, bulk_id: int, *, reason: str | None = None) -> Bulk:
        """Begins no further items; what was done stays."""
        return read(Bulk, await self.call(methods.BULK_ABORT.name, {"bulkId": bulk_id, **_given(reason=reason)}))

    async def bulk_undo(self, bulk_id: int, *, reason: str | None = None) -> Bulk:
        """Resumes what it has paused, or pauses what it has resumed, where nobody has changed it since. The new operation."""
        return read(Bulk, await self.call(methods.BULK_UNDO.name, {"bulkId": bulk_id, **_given(reason=reason)}))

    async def run_get(self, run_id: int, *, wait_ms: int | None = None) -> Run:
        """The run with its attempts. NotFoundError.

        `wait_ms`: it answers when the run is final, at the latest after so many milliseconds (60,000 at most).
        """
        return read(Run, await self.call(methods.RUN_GET.name, {"runId": run_id, **_given(waitMs=wait_ms)}))

    async def run_list(
        self,
        *,
        tenant_id: str | None = None,
        state: str | None = None,
        job_id: int | None = None,
        labels: str | None = None,
        source: Source | None = None,
        start: datetime | None = None,
        to: datetime | None = None,
        page_token: str | None = None,
        page_size: int | None = None,
    ) -> Page[Run]:
        """A page of the runs of all jobs: those that are open, newest first, then ended ones, the last one first.

        `state`: one or several, with commas between them; without it with a job all, otherwise those of open runs, FAILED and
        TIMEOUT. `start` and `to` are about the end of a
        run, or about its creation if it is open. A page may have few runs although more follow: go on with `page_token` until
        there is none.
        """
        given = _given(
            tenantId=tenant_id,
            state=state,
            jobId=job_id,
            labels=labels,
            source=source,
            pageToken=page_token,
            pageSize=page_size,
            **_times(start, to),
        )
        return _page(Run, await self.call(methods.RUN_LIST.name, given))

    async def run_explain(self, run_id: int) -> Explanation:
        """Why the run exists, why it is not running, why it was late. NotFoundError."""
        return read(Explanation, await self.call(methods.RUN_EXPLAIN.name, {"runId": run_id}))

    async def run_failed(
        self,
        *,
        tenant_id: str | None = None,
        page_token: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Page[Run]:
        """A page of FAILED and TIMEOUT runs across jobs, newest first."""
        params = {**_given(tenantId=tenant_id), **_paging(page_token, page, page_size)}
        return _page(Run, await self.call(methods.RUN_FAILED.name, params))

    async def run_cancel(self, run_id: int, *, reason: str | None = None) -> Run:
        """Cancels the run; a body that runs is told to stop. IllegalStateError when the run is final."""
        return read(Run, await self.call(methods.RUN_CANCEL.name, {"runId": run_id, **_given(reason=reason)}))

    async def run_retry(self, run_id: int, *, reason: str | None = None, force: bool = False) -> Run:
        """Runs a final run again, with a fresh budget of attempts and the next generation. `force`: also if it was compensated."""
        params = {"runId": run_id, **_given(reason=reason, force=force or None)}
        return read(Run, await self.call(methods.RUN_RETRY.name, params))

    async def run_confirm(self, run_id: int, decision: Decision, *, reason: str | None = None) -> Run:
        """Decides about a run in NEEDS_CONFIRMATION; ENDED says that the body of a run that is STOPPING has ended."""
        params = {"runId": run_id, "decision": Decision(decision).value, **_given(reason=reason)}
        return read(Run, await self.call(methods.RUN_CONFIRM.name, params))

    async def run_priority(self, run_id: int, priority: int, *, reason: str | None = None) -> Run:
        """Gives a run that waits (PENDING, QUEUED, RETRY_WAIT) a priority of its own, 0 to 1000, higher first."""
        params = {"runId": run_id, "priority": priority, **_given(reason=reason)}
        return read(Run, await self.call(methods.RUN_PRIORITY.name, params))

    async def dag_create(
        self,
        dag_id: str,
        nodes: Iterable[int],
        edges: Iterable[tuple[int, int]] = (),
        *,
        tenant_id: str | None = None,
        trigger: Trigger | None = None,
        idempotency_key: str | None = None,
    ) -> DagCreated:
        """Makes a DAG of jobs that exist, by their ids. An edge is a pair: its first job ends before the second one starts.

        Conditions, rules and params of nodes need the long form: `job_create` with an action of the kind DAG.
        """
        params = {
            "dagId": dag_id,
            "nodes": list(nodes),
            "edges": [{"from": first, "to": second} for first, second in edges],
            **_given(tenantId=tenant_id, idempotencyKey=idempotency_key),
            **({} if trigger is None else {"trigger": write(trigger)}),
        }
        return read(DagCreated, await self.call(methods.DAG_CREATE.name, params))

    async def dag_nodes(self, run_id: int, *, draw: DagDrawing | None = None) -> DagRun:
        """The nodes of a run of a DAG; with `draw` also a drawing of them as text."""
        params = {"runId": run_id, **({} if draw is None else {"draw": DagDrawing(draw).value})}
        return read(DagRun, await self.call(methods.DAG_NODES.name, params))

    async def dag_retry(
        self, run_id: int, nodes: Iterable[str] = (), *, and_after: bool = False, reason: str | None = None
    ) -> Run:
        """Runs nodes of a DAG run again (by default all that failed or were canceled); what did not run because of them follows."""
        params = {"runId": run_id, "nodes": list(nodes), "andAfter": and_after, **_given(reason=reason)}
        return read(Run, await self.call(methods.DAG_RETRY.name, params))

    async def dag_mark(self, run_id: int, node: str, state: NodeState, *, reason: str | None = None) -> Run:
        """Sets the state of a node without an open run, SUCCESS or SKIPPED; what waits for it goes on."""
        params = {"runId": run_id, "node": node, "state": NodeState(state).value, **_given(reason=reason)}
        return read(Run, await self.call(methods.DAG_MARK.name, params))

    async def dag_pause(self, run_id: int, *, reason: str | None = None) -> Run:
        """Pauses one run of a DAG: no further node starts, and runs of nodes go on."""
        params = {"runId": run_id, **_given(reason=reason)}
        return read(Run, await self.call(methods.DAG_PAUSE.name, params))

    async def dag_resume(self, run_id: int, *, reason: str | None = None) -> Run:
        """Resumes a paused run of a DAG: nodes start again."""
        params = {"runId": run_id, **_given(reason=reason)}
        return read(Run, await self.call(methods.DAG_RESUME.name, params))

    async def run_log(
        self,
        run_id: int,
        *,
        attempt: int | None = None,
        offset: int | None = None,
        contains: str | None = None,
        level: LogLevel | None = None,
        tail: int | None = None,
    ) -> RunLog:
        """A piece of an attempt's log (by default the newest attempt's) from a byte offset.

        With `contains` (text, in large or small letters), `level` (that one or a more severe one) or `tail` (the last lines, so
        many of those that the others leave) it has the lines that these leave, and `lines` their numbers.
        """
        severe = None if level is None else LogLevel(level).value
        search = _given(attempt=attempt, offset=offset, contains=contains, level=severe, tail=tail)
        return read(RunLog, await self.call(methods.RUN_LOG.name, {"runId": run_id, **search}))

    async def dlq_list(
        self,
        *,
        tenant_id: str | None = None,
        job_id: int | None = None,
        start: datetime | None = None,
        to: datetime | None = None,
        cause: str | None = None,
        page_token: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Page[DeadLetter]:
        """A page of dead letters. `start` and `to`: when the run ended; `cause`: as `dlq_causes` tells it."""
        params = {
            **_given(tenantId=tenant_id, jobId=job_id, cause=cause),
            **_times(start, to),
            **_paging(page_token, page, page_size),
        }
        return _page(DeadLetter, await self.call(methods.DLQ_LIST.name, params))

    async def dlq_causes(
        self, *, tenant_id: str | None = None, start: datetime | None = None, to: datetime | None = None
    ) -> Causes:
        """Dead letters by cause, the most frequent first: errors that differ in numbers and ids only are one."""
        params = {**_given(tenantId=tenant_id), **_times(start, to)}
        return read(Causes, await self.call(methods.DLQ_CAUSES.name, params))

    async def dlq_redrive(self, run_id: int, *, reason: str | None = None, force: bool = False) -> Run:
        """Runs a dead letter again. `force`: also if it was compensated."""
        params = {"runId": run_id, **_given(reason=reason, force=force or None)}
        return read(Run, await self.call(methods.DLQ_REDRIVE.name, params))

    async def dlq_discard(self, run_id: int, *, reason: str | None = None) -> None:
        """Takes a dead letter off the list; the run stays in the history."""
        await self.call(methods.DLQ_DISCARD.name, {"runId": run_id, **_given(reason=reason)})

    async def outbox_list(
        self,
        *,
        tenant_id: str | None = None,
        page_token: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Page[OutboxMessage]:
        """A page of the messages between jobs that wait or were given up."""
        params = {**_given(tenantId=tenant_id), **_paging(page_token, page, page_size)}
        return _page(OutboxMessage, await self.call(methods.OUTBOX_LIST.name, params))

    async def outbox_resend(self, run_id: int, *, reason: str | None = None) -> None:
        """Sends the messages of a run that were given up again, at most 47 hours after they were decided."""
        await self.call(methods.OUTBOX_RESEND.name, {"runId": run_id, **_given(reason=reason)})

    async def outbox_discard(self, run_id: int, *, reason: str | None = None) -> None:
        """Takes the messages of a run that were given up off the list."""
        await self.call(methods.OUTBOX_DISCARD.name, {"runId": run_id, **_given(reason=reason)})

    async def audit_list(
        self,
        *,
        tenant_id: str | None = None,
        job_id: int | None = None,
        run_id: int | None = None,
        who: str | None = None,
        operation: str | None = None,
        outcome: str | None = None,
        start: datetime | None = None,
        to: datetime | None = None,
        page_token: str | None = None,
        page_size: int | None = None,
    ) -> Page[AuditRecord]:
        """A page of the audit trail, newest first: who changed what and why, and who was refused.

        `outcome` is DONE, REFUSED (all others) or an error code. A page may have few records although more follow: go on with
        `page_token` until there is none.
        """
        given = _given(
            tenantId=tenant_id,
            jobId=job_id,
            runId=run_id,
            who=who,
            operation=operation,
            outcome=outcome,
            pageToken=page_token,
            pageSize=page_size,
        )
        if start is not None:
            given["from"] = to_ms(start)
        if to is not None:
            given["to"] = to_ms(to)
        return _page(AuditRecord, await self.call(methods.AUDIT_LIST.name, given))

    async def schedule_load(self, *, tenant_id: str | None = None, minutes: int | None = None) -> Load:
        """How many instants are due in each of the next minutes (60, at most 120), by the schedules of now and without jitter."""
        return read(Load, await self.call(methods.SCHEDULE_LOAD.name, _given(tenantId=tenant_id, minutes=minutes)))

    async def schedule_preview(
        self,
        trigger: Trigger,
        *,
        windows: Sequence[Window] = (),
        blackouts: Sequence[Blackout] = (),
        after: datetime | None = None,
        count: int | None = None,
    ) -> Preview:
        """The next instants of a schedule (5, at most 100), what is removed, and what may surprise. InvalidScheduleError."""
        given = _given(after=None if after is None else to_ms(after), count=count)
        for name, items in [("windows", windows), ("blackouts", blackouts)]:
            if items:
                given[name] = [write(item) for item in items]
        wire = trigger.fields if not hasattr(trigger, "KIND") else write(trigger)
        return read(Preview, await self.call(methods.SCHEDULE_PREVIEW.name, {"trigger": wire, **given}))

    async def tenant_get(self, tenant_id: str) -> Tenant:
        """The tenant's limits and use."""
        return read(Tenant, await self.call(methods.TENANT_GET.name, {"tenantId": tenant_id}))

    async def tenant_list(self) -> list[Tenant]:
        """All tenants that the token may see."""
        return [read(Tenant, item) for item in _items(await self.call(methods.TENANT_LIST.name))]

    async def tenant_set(self, tenant_id: str, quota: Quota) -> Tenant:
        """Sets all of a tenant's limits (operators)."""
        return read(Tenant, await self.call(methods.TENANT_SET.name, {"tenantId": tenant_id, **write(quota)}))

    async def tenant_delete(self, tenant_id: str, *, reason: str | None = None) -> None:
        """Forgets the limits and the pause of a tenant without jobs and open runs (operators). NotFoundError, ConflictError."""
        await self.call(methods.TENANT_DELETE.name, {"tenantId": tenant_id, **_given(reason=reason)})

    async def tenant_pause(self, tenant_id: str, *, reason: str | None = None) -> list[int]:
        """No job of the tenant fires until it is resumed (operators).

        Returns the shards that are not known to hold it yet: it goes on there by itself, and saying it again is harmless.
        """
        return _outstanding(
            await self.call(methods.TENANT_PAUSE.name, {"tenantId": tenant_id, **_given(reason=reason)})
        )

    async def tenant_resume(self, tenant_id: str, *, reason: str | None = None) -> list[int]:
        """Ends a tenant's pause (operators). Returns what tenant_pause returns."""
        return _outstanding(
            await self.call(methods.TENANT_RESUME.name, {"tenantId": tenant_id, **_given(reason=reason)})
        )

    async def target_list(self, tenant_id: str) -> list[Target]:
        """The targets of a tenant that have settings."""
        return [
            read(Target, item) for item in _items(await self.call(methods.TARGET_LIST.name, {"tenantId": tenant_id}))
        ]

    async def target_get(self, tenant_id: str, target: str) -> Target:
        """Its settings, the state of its breaker, and the runs that use it or wait for it. NotFoundError."""
        return read(Target, await self.call(methods.TARGET_GET.name, {"tenantId": tenant_id, "target": target}))

    async def target_set(self, tenant_id: str, target: str, settings: TargetSettings) -> Target:
        """Sets all settings of a named system that bodies call: limits, retries, breaker."""
        given = {"tenantId": tenant_id, "target": target, **write(settings)}
        return read(Target, await self.call(methods.TARGET_SET.name, given))

    async def target_delete(self, tenant_id: str, target: str, *, reason: str | None = None) -> None:
        """Forgets the settings of a target; jobs that name it have the default ones. NotFoundError."""
        given = {"tenantId": tenant_id, "target": target, **_given(reason=reason)}
        await self.call(methods.TARGET_DELETE.name, given)

    async def calendar_list(self, tenant_id: str) -> list[Calendar]:
        """The calendars of a tenant."""
        answer = await self.call(methods.CALENDAR_LIST.name, {"tenantId": tenant_id})
        return [read(Calendar, item) for item in _items(answer)]

    async def calendar_get(self, tenant_id: str, calendar: str) -> Calendar:
        """A calendar with its versions, also a deleted one. NotFoundError."""
        given = {"tenantId": tenant_id, "calendar": calendar}
        return read(Calendar, await self.call(methods.CALENDAR_GET.name, given))

    async def calendar_set(
        self,
        tenant_id: str,
        calendar: str,
        spec: Mapping[str, Any],
        *,
        effective_from: datetime | None = None,
        version: int | None = None,
        reason: str | None = None,
    ) -> Calendar:
        """Sets all days of a calendar, as its next version, which decides instants from at least 60 s later on.

        `spec`: include, exclude, makeUp, minus and validThrough, as over HTTP. `version`: the one that was read.
        """
        given = {"tenantId": tenant_id, "calendar": calendar, "spec": dict(spec)}
        from_ms = None if effective_from is None else to_ms(effective_from)
        given |= _given(effectiveFrom=from_ms, version=version, reason=reason)
        return read(Calendar, await self.call(methods.CALENDAR_SET.name, given))

    async def calendar_delete(self, tenant_id: str, calendar: str, *, reason: str | None = None) -> None:
        """Deletes a calendar, 60 s later; jobs that name it wait from then on. NotFoundError."""
        given = {"tenantId": tenant_id, "calendar": calendar, **_given(reason=reason)}
        await self.call(methods.CALENDAR_DELETE.name, given)

    async def calendar_preview(
        self, tenant_id: str, calendar: str, *, spec: Mapping[str, Any] | None = None, days: int | None = None
    ) -> CalendarPreview:
        """The days that it has, or would have with `spec`, and the jobs that would change. NotFoundError."""
        given = {"tenantId": tenant_id, "calendar": calendar}
        given |= _given(spec=None if spec is None else dict(spec), days=days)
        return read(CalendarPreview, await self.call(methods.CALENDAR_PREVIEW.name, given))

    async def system_pause(self, *, reason: str | None = None) -> list[int]:
        """No job at all fires until the system is resumed (operators). Returns what tenant_pause returns."""
        return _outstanding(await self.call(methods.SYSTEM_PAUSE.name, _given(reason=reason)))

    async def system_resume(self, *, reason: str | None = None) -> list[int]:
        """Ends the system's pause (operators). Returns what tenant_pause returns."""
        return _outstanding(await self.call(methods.SYSTEM_RESUME.name, _given(reason=reason)))

    async def clock_accept(self, *, reason: str | None = None) -> None:
        """After a jump of the node's clock that halted its firing: the clock is right (operators)."""
        await self.call(methods.CLOCK_ACCEPT.name, _given(reason=reason))

    async def system_info(self) -> NodeInfo:
        """Facts of the node; the numbers of jobs, runs and executors are of all nodes of its cluster."""
        return read(NodeInfo, await self.call(methods.SYSTEM_INFO.name))

    async def executor_list(self) -> Gathered[ExecutorInfo]:
        """Executors of all nodes."""
        return _gathered(ExecutorInfo, await self.call(methods.EXECUTOR_LIST.name))

    async def pool_list(self) -> Gathered[Pool]:
        """Pools of all nodes."""
        return _gathered(Pool, await self.call(methods.POOL_LIST.name))

    async def cluster_members(self) -> list[Member]:
        """Living nodes of the cluster, as the asked one sees them (operators)."""
        return [read(Member, item) for item in _items(await self.call(methods.CLUSTER_MEMBERS.name))]

    async def cluster_shards(self, *, node: str | None = None) -> list[Shard]:
        """Who owns each shard; narrowed to those of a node (operators)."""
        return [read(Shard, item) for item in _items(await self.call(methods.CLUSTER_SHARDS.name, _given(node=node)))]

    async def cluster_plan(self) -> ShardPlan:
        """Shards that are to move, and why (operators)."""
        return read(ShardPlan, await self.call(methods.CLUSTER_PLAN.name))

    async def cluster_events(self) -> list[ClusterEvent]:
        """What the asked node saw happen since its start, the newest first (operators)."""
        return [read(ClusterEvent, item) for item in _items(await self.call(methods.CLUSTER_EVENTS.name))]

    async def cluster_cordon(self, node: str, *, reason: str | None = None) -> None:
        """The node keeps its shards and gets nothing new (operators)."""
        await self.call(methods.CLUSTER_CORDON.name, {"node": node, **_given(reason=reason)})

    async def cluster_uncordon(self, node: str, *, reason: str | None = None) -> None:
        """Undoes a node's cordon (operators)."""
        await self.call(methods.CLUSTER_UNCORDON.name, {"node": node, **_given(reason=reason)})


async def every_page(fetch: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    """The items of all pages; `fetch` gets a page's token, first None."""
    token: str | None = None
    while True:
        page = await fetch(token)
        for item in page:
            yield item
        token = page.next_page_token
        if token is None:
            return


def _manifests(files: Mapping[str, str], **given: Any) -> dict[str, Any]:
    return {"files": [{"name": name, "text": text} for name, text in files.items()], **_given(**given)}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _times(start: datetime | None, to: datetime | None) -> dict[str, int]:
    times = {"from": start, "to": to}
    return {name: to_ms(time) for name, time in times.items() if time is not None}


def _paging(page_token: str | None, page: int | None, page_size: int | None) -> dict[str, Any]:
    return _given(pageToken=page_token, page=page, pageSize=page_size)


def _items(answer: object) -> list[Any]:
    if isinstance(answer, dict) and isinstance(answer.get("items"), list):
        return list(answer["items"])
    raise protocol_error("a list was expected: a map with `items`")


def _outstanding(answer: object) -> list[int]:
    """Shards that are not known to hold a change yet; none when it is done."""
    shards = answer.get("outstanding", []) if isinstance(answer, dict) else None
    if isinstance(shards, list):
        return [int(shard) for shard in shards]
    raise protocol_error("a map was expected, with a list of shards as `outstanding`")


def _page(shape: type[T], answer: object) -> Page[T]:
    token = answer.get("nextPageToken") if isinstance(answer, dict) else None
    return Page([read(shape, item) for item in _items(answer)], None if token is None else str(token))


def _gathered(shape: type[T], answer: object) -> Gathered[T]:
    missing = answer.get("missing") if isinstance(answer, dict) else None
    return Gathered([read(shape, item) for item in _items(answer)], [read(MissingNode, item) for item in missing or []])


def _item(item: object) -> Created | ApiError:
    match item:
        case {"ok": ok} if ok is not None:
            return read(Created, ok)
        case {"error": error} if error is not None:
            return api_error(error)
        case _:
            raise protocol_error("an item of a batch needs either `ok` or `error`")
