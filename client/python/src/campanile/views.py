"""What calls answer with. Instants are aware datetimes in UTC; ids are numbers below 2^53."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from campanile.enums import (
    ApplyOutcome,
    AttemptState,
    BackfillMode,
    BackfillState,
    BreakerState,
    BulkAction,
    BulkState,
    ClusterEventKind,
    DegradationLevel,
    EdgeOutcome,
    ExecutorState,
    JobStatus,
    JobStep,
    MemberState,
    MessageKind,
    MoveReason,
    NodeFailure,
    NodeRule,
    NodeState,
    OutboxState,
    Outcome,
    PlanAction,
    RunState,
    SkipReason,
    Source,
    UnknownInstants,
)
from campanile.shapes import FLAT, Json
from campanile.spec import JobSpec, Trigger

T = TypeVar("T")


@dataclass(frozen=True)
class Welcome:
    """What a node says to the hello. Times in milliseconds."""

    protocol: int
    server: str
    cluster_id: int
    node: str
    max_frame_bytes: int
    heartbeat_ms: int
    lease_ms: int
    credit_ms: int


@dataclass(frozen=True)
class Created:
    """Answer of a create; `next_fire_at` is None for a job without an instant ahead."""

    job_id: int
    status: JobStatus
    next_fire_at: datetime | None = None


@dataclass(frozen=True)
class Job:
    """A job as read. `quarantine_reason` is set when it was put aside because its actor failed again and again."""

    job_id: int
    status: JobStatus
    version: int
    created_at: datetime
    updated_at: datetime
    run_count: int
    spec: JobSpec = field(metadata=FLAT)
    next_fire_at: datetime | None = None
    last_run_at: datetime | None = None
    last_run_state: RunState | None = None
    quarantine_reason: str | None = None


@dataclass(frozen=True)
class Attempt:
    """One try of a run. `token` is its fencing token; CPU in milliseconds, memory in KiB. `permanent`: its executor said that
    no further attempt would succeed."""

    attempt: int
    generation: int
    token: int
    state: AttemptState
    executor_id: str
    started_at: datetime
    ended_at: datetime | None = None
    error_code: str | None = None
    error_message: str | None = None
    cpu_ms: int | None = None
    max_rss_kb: int | None = None
    permanent: bool = False


@dataclass(frozen=True)
class RunChange:
    """A run as a decision left it, at the instant `at`."""

    at: datetime
    run_id: int
    job_id: int
    job_name: str
    tenant_id: str
    state: RunState
    source: Source
    generation: int
    attempt_count: int
    logical_time: datetime | None = None
    executor_id: str | None = None
    next_retry_at: datetime | None = None
    last_error: str | None = None


@dataclass(frozen=True)
class JobChange:
    """A job's definition as a decision left it, at the instant `at`."""

    at: datetime
    job_id: int
    job_name: str
    tenant_id: str
    change: JobStep
    status: JobStatus
    version: int


@dataclass(frozen=True)
class Stopping:
    """A body was told to stop and has not ended: why (CANCEL, TIMEOUT, REPLACE), and since when."""

    reason: str
    since: datetime | None = None


@dataclass(frozen=True)
class TriggeredBy:
    """Who triggered a run: the name of the credential, the caller's address, and the request."""

    who: str | None = None
    address: str | None = None
    request_id: str | None = None


@dataclass(frozen=True)
class FailedHook:
    """A hook of a run whose job was not started. `generation`: of the run when it ended; `hook`: `onFailure` and the like."""

    generation: int
    target_job: str
    state: OutboxState
    at: datetime
    reason: str | None = None
    hook: str | None = None


@dataclass(frozen=True)
class Run:
    """A run as read. `wait_reason` says why it is not running, or not ending: then `stopping` is set, and no other body of it
    starts until this one has ended or `run_confirm` says ENDED. `generation` rises with each redrive and retry by hand.
    `effective_params` are those that the body got, where one run is read and they are known; `params` is the caller's part."""

    run_id: int
    job_id: int
    tenant_id: str
    state: RunState
    source: Source
    generation: int
    attempt_count: int
    created_at: datetime
    dead_letter: bool
    logical_time: datetime | None = None
    key: str | None = None
    next_retry_at: datetime | None = None
    executor_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    last_error: str | None = None
    wait_reason: str | None = None
    stopping: Stopping | None = None
    params: Json = None
    effective_params: Json = None
    secret_params: dict[str, str] = field(default_factory=dict)
    result: Json = None
    reason: str | None = None
    triggered_by: TriggeredBy | None = None
    trace_id: str | None = None
    failed_hooks: list[FailedHook] = field(default_factory=list)
    compensated: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    dag_run_id: int | None = None
    dag_node: int | None = None
    backfill_id: int | None = None
    priority: int | None = None


@dataclass(frozen=True)
class Holder:
    """What holds something that a run or a job waits for. `kind`: RUN, JOB, EXECUTOR, CALLER, TENANT, POOL, DAG_NODE, TARGET."""

    kind: str
    id: str | None = None
    name: str | None = None
    state: str | None = None
    since: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Reason:
    """One reason of an explanation. `topic`: ORIGIN, WAIT, LATE, END, SCHEDULE, INSTANT. Compare the `code`; the sentence
    may change. `freed_by`: what to do, or to wait for."""

    topic: str
    code: str
    sentence: str
    held_by: list[Holder] = field(default_factory=list)
    freed_by: str | None = None


@dataclass(frozen=True)
class Explanation:
    """Why a run or a job is as it is. What cannot be known now is not in it."""

    tenant_id: str
    job_id: int
    now: datetime
    reasons: list[Reason]
    job_name: str | None = None
    run_id: int | None = None
    run_state: RunState | None = None
    job_status: JobStatus | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class StateCount:
    """How many runs have a state."""

    state: RunState
    count: int


@dataclass(frozen=True)
class Times:
    """Times of `count` runs, milliseconds."""

    count: int
    mean: float
    p50: int
    p95: int
    max: int


@dataclass(frozen=True)
class Statistics:
    """Of the ended runs of a job that were created in the window. `truncated`: it has more than the 10,000 that are counted."""

    job_id: int
    start: datetime = field(metadata={"wire": "from"})
    to: datetime
    runs: int
    truncated: bool
    retried: int
    outcomes: list[StateCount] = field(default_factory=list)
    success_rate: float | None = None
    failure_rate: float | None = None
    duration_ms: Times | None = None
    lateness_ms: Times | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """What became of a due instant, or of `count` instants from `logical_time` to `until` with one outcome."""

    logical_time: datetime
    count: int
    outcome: Outcome
    until: datetime | None = None
    reason: SkipReason | None = None
    run_id: int | None = None


@dataclass(frozen=True)
class Ledger:
    """What became of every due instant from `start` to `to`, both included, without gap or overlap.

    `truncated`: more follows; ask again with `start` = this `to`.
    """

    job_id: int
    start: datetime = field(metadata={"wire": "from"})
    to: datetime
    items: list[LedgerEntry]
    truncated: bool


@dataclass(frozen=True)
class RunLog:
    """A piece of an attempt's log. `end`: the attempt has ended and all of its log was returned."""

    run_id: int
    attempt: int
    offset: int
    text: str
    next_offset: int
    end: bool
    lines: list[int] | None = None
    """Of a search: for each line of `text` its number, from 1 at `offset`."""


@dataclass(frozen=True)
class DeadLetter:
    """A run that ended badly and waits for somebody: redrive or discard it."""

    run_id: int
    job_id: int
    tenant_id: str
    reason: str
    at: datetime
    attempt_count: int
    job_name: str | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Cause:
    """Dead letters whose errors differ in numbers and ids only. `reason` and `run_id` are of the newest one."""

    cause: str
    reason: str
    count: int
    jobs: int
    run_id: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class Causes:
    """Dead letters by cause, the most frequent first. `truncated`: there are more than the 10,000 that are counted."""

    items: list[Cause]
    counted: int
    truncated: bool


@dataclass(frozen=True)
class MinuteLoad:
    """Instants that are due in the minute that begins at `at`."""

    at: datetime
    count: int


@dataclass(frozen=True)
class Load:
    """How many instants are due in each of the next minutes. `truncated`: the numbers are too small."""

    items: list[MinuteLoad]
    jobs: int
    truncated: bool


@dataclass(frozen=True)
class OutboxMessage:
    """A message between jobs that waits or was given up, as a hook whose job was not started.

    `run_id` sends it to `target_job`. `may_have_run`: that job may have acted on it all the same.
    """

    run_id: int
    generation: int
    tenant_id: str
    kind: MessageKind
    state: OutboxState
    decided_at: datetime
    may_have_run: bool
    job_id: int | None = None
    target_job: str | None = None
    reason: str | None = None
    given_up_at: datetime | None = None


@dataclass(frozen=True)
class DagCreated:
    """Answer to `dag_create`. `dag_id` is the name of the job that the DAG became."""

    dag_id: str
    job_id: int
    status: JobStatus


@dataclass(frozen=True)
class DagNode:
    """A node of a run of a DAG. `run_id` is its newest run; `generation` is 0 when it was never started. `marked`: a person set
    its state. `failure` and `error` say why it is FAILED, when its run does not. `layer`, `row`, `x` and `y` are its place in
    a layout."""

    id: str
    job: str
    rule: NodeRule
    state: NodeState
    generation: int
    layer: int
    row: int
    x: int
    y: int
    marked: bool = False
    run_id: int | None = None
    failure: NodeFailure | None = None
    error: str | None = None


@dataclass(frozen=True)
class DagEdge:
    """An edge of a DAG. `when` is its condition, and `outcome` what that has said, when it was not true."""

    from_: str = field(metadata={"wire": "from"})
    to: str
    when: str | None = None
    outcome: EdgeOutcome | None = None


@dataclass(frozen=True)
class DagPause:
    """Since when, by whom and why no further node of a DAG run starts."""

    since: datetime
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class DagRun:
    """A run of a DAG with its nodes, in the order of the definition of this `version`."""

    run_id: int
    job_id: int
    tenant_id: str
    state: RunState
    generation: int
    version: int
    width: int
    height: int
    nodes: list[DagNode] = field(default_factory=list)
    edges: list[DagEdge] = field(default_factory=list)
    drawing: str | None = None
    paused: DagPause | None = None


@dataclass(frozen=True)
class BackfillProgress:
    """What became of a backfill so far: its runs, and the instants that it passed over."""

    started: int
    active: int
    succeeded: int
    failed: int
    canceled: int
    existing: int
    unknown: int
    differing: int = 0
    gone: int = 0
    done_until: datetime | None = None


@dataclass(frozen=True)
class Backfill:
    """A backfill or a replay. A dry run answers with the same without `backfill_id`, `state` and `progress`. `failed` is None where
    there are too many runs to look at each. `wait_reason` says why it starts no run now."""

    job_id: int
    tenant_id: str
    mode: BackfillMode
    start: datetime = field(metadata={"wire": "from"})
    to: datetime
    parallelism: int
    unknown_instants: UnknownInstants
    hooks: bool
    instants: int
    missing: int
    existing: int
    unknown: int
    to_run: int
    differing: int = 0
    gone: int = 0
    failed: int | None = None
    backfill_id: int | None = None
    state: BackfillState | None = None
    estimated_sec: int | None = None
    hazard: str | None = None
    progress: BackfillProgress | None = None
    reason: str | None = None
    requested_by: str | None = None
    state_reason: str | None = None
    wait_reason: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class BulkItem:
    """A job or a run that a dry run of a bulk operation shows. `name`: of the job, None if it was deleted."""

    id: int
    state: str
    name: str | None = None


@dataclass(frozen=True)
class BulkFailure:
    """An item that a bulk operation could not do, and why."""

    id: int
    code: str
    message: str


@dataclass(frozen=True)
class Bulk:
    """A bulk operation. A dry run answers with the same without `bulk_id` and `state`, and shows the `first` items. `matched` is a
    lower bound, and `left` is None, when `matched_more`. `compensated`: runs that a RETRY or REDRIVE left as they are, because
    their compensation was started."""

    action: BulkAction
    filter: Json
    matched: int
    matched_more: bool
    done: int
    unchanged: int
    failed: int
    bulk_id: int | None = None
    tenant_id: str | None = None
    compensated: int = 0
    state: BulkState | None = None
    left: int | None = None
    failures: list[BulkFailure] = field(default_factory=list)
    first: list[BulkItem] = field(default_factory=list)
    delete_at: datetime | None = None
    grace_sec: int | None = None
    undo_of: int | None = None
    undone_by: int | None = None
    reason: str | None = None
    requested_by: str | None = None
    state_reason: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class AuditRecord:
    """Who did what, and why. `outcome`: DONE, or the code of the error. `count`: equal refusals within a minute, or things changed
    by one call. Without `who` the token was not known; without `address` the node itself called."""

    at: datetime
    operation: str
    outcome: str
    count: int
    who: str | None = None
    address: str | None = None
    tenant_id: str | None = None
    job_id: int | None = None
    run_id: int | None = None
    target: str | None = None
    reason: str | None = None
    request_id: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True)
class Preview:
    """A schedule, resolved: its next instants, its meaning in words, and what may surprise.

    `removed`: what windows, blackouts and changes of the clocks take away up to the last of them.
    """

    trigger: Trigger
    next: list[datetime]
    description: str
    hazards: list[str]
    removed: list[LedgerEntry] = field(default_factory=list)


@dataclass(frozen=True)
class Quota:
    """Limits of a tenant; 0 = none."""

    max_concurrent_runs: int = 0
    max_triggers_per_sec: float = 0.0
    max_jobs: int = 0
    max_queued_runs: int = 0


@dataclass(frozen=True)
class Tenant:
    """A tenant with its limits and use."""

    tenant_id: str
    quota: Quota
    version: int
    paused: bool
    jobs: int
    running: int
    waiting: int


@dataclass(frozen=True)
class TargetSettings:
    """How a target, a named system that bodies call, is spared. Limits: 0 = none.

    `retry_percent`: retries among a hundred first attempts. The breaker opens for `open_sec` when `failure_percent` of at least
    `min_attempts` attempts failed within ten seconds; 0 = never.
    """

    max_concurrent_runs: int = 0
    max_runs_per_sec: float = 0.0
    retry_percent: int = 10
    failure_percent: int = 50
    min_attempts: int = 10
    open_sec: int = 10


@dataclass(frozen=True)
class Target:
    """A target with its settings and use."""

    tenant_id: str
    target: str
    settings: TargetSettings
    version: int
    breaker: BreakerState
    running: int
    waiting: int


@dataclass(frozen=True)
class CalendarVersion:
    """A version of a calendar; `deleted`: from then on jobs that name it wait."""

    version: int
    effective_from: datetime
    deleted: bool = False


@dataclass(frozen=True)
class Calendar:
    """A calendar with its versions, the newest first. `spec`: that of the newest one; None: it is deleted.

    `outstanding`: shards that were not heard to hold the newest version yet; they come to hold it by themselves.
    """

    tenant_id: str
    calendar: str
    version: int
    effective_from: datetime
    versions: list[CalendarVersion]
    spec: Json = None
    outstanding: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class CalendarJobChange:
    """A job whose next instants a version of a calendar changes."""

    job_id: int
    name: str
    removed: list[datetime]
    added: list[datetime]


@dataclass(frozen=True)
class CalendarPreview:
    """The days that a calendar has, as `YYYY-MM-DD`, and the jobs that would change."""

    effective_from: datetime
    days: list[str]
    jobs: list[CalendarJobChange]
    truncated: bool


@dataclass(frozen=True)
class MissingNode:
    """A node of a cluster that did not answer in time, and why."""

    node: str
    reason: str


class Gathered(list[T]):
    """A list of all nodes of a cluster; `missing` names those of whom nothing is in it."""

    def __init__(self, items: Iterable[T], missing: list[MissingNode]) -> None:
        super().__init__(items)
        self.missing = missing


@dataclass(frozen=True)
class ExecutorAtNode:
    """An executor as one node of a cluster sees it."""

    node: str
    state: ExecutorState
    running: int
    credit: int
    last_heartbeat_at: datetime


@dataclass(frozen=True)
class ExecutorInfo:
    """An executor; `credit` is how many assignments it takes now.

    In a cluster `nodes` has what each of them sees; the rest are the sums and the newest.
    """

    executor_id: str
    session: int
    pools: list[str]
    slots: int
    running: int
    credit: int
    state: ExecutorState
    labels: dict[str, str]
    last_heartbeat_at: datetime
    nodes: list[ExecutorAtNode] = field(default_factory=list)


@dataclass(frozen=True)
class Pool:
    """A pool, of all nodes of a cluster."""

    name: str
    executors: int
    credit: int
    running: int
    waiting: int


@dataclass(frozen=True)
class Member:
    """A living node of a cluster, as the asked node sees it."""

    name: str
    state: MemberState
    is_self: bool
    shards: int
    session: int
    build: str
    http: str
    rpc: str
    gateway: str
    gossip: str
    clock_offset_ms: int | None = None


@dataclass(frozen=True)
class Shard:
    """Who owns a shard; `node` is None when nobody who lives does."""

    shard: int
    epoch: int
    served_here: bool
    spans: int
    node: str | None = None
    session: int | None = None
    snapshot_seq: int | None = None


@dataclass(frozen=True)
class ShardMove:
    """A shard that should have another owner."""

    shard: int
    to: str
    reason: MoveReason
    from_node: str | None = field(default=None, metadata={"wire": "from"})


@dataclass(frozen=True)
class ShardPlan:
    """Where the shards of a cluster are going; `cap` is what a node should have at the most."""

    balanced: bool
    cap: int
    moves: list[ShardMove]


@dataclass(frozen=True)
class ClusterEvent:
    """Something that a node saw happen to its cluster."""

    at: datetime
    kind: ClusterEventKind
    node: str | None = None
    shard: int | None = None
    detail: str | None = None


@dataclass(frozen=True)
class NodeFacts:
    """A node of a cluster, with what it has; one executor may be with several nodes."""

    node: str
    version: str
    epoch: int
    ready: bool
    not_ready_reasons: list[str]
    jobs: int
    open_runs: int
    executors: int
    now: datetime


@dataclass(frozen=True)
class NodeInfo:
    """Facts of a node. `jobs`, `open_runs` and `executors` are of all nodes of its cluster but `missing`."""

    version: str
    cluster_id: int
    shards: int
    epoch: int
    tzdb: str
    ready: bool
    not_ready_reasons: list[str]
    jobs: int
    open_runs: int
    executors: int
    now: datetime
    degradation: DegradationLevel = DegradationLevel.NORMAL
    nodes: list[NodeFacts] = field(default_factory=list)
    missing: list[MissingNode] = field(default_factory=list)


@dataclass(frozen=True)
class FieldChange:
    """A field of a manifest that differs; None: it has none, or the default."""

    field: str
    before: Json = None
    after: Json = None


@dataclass(frozen=True)
class Version:
    """A version of a job's definition. `changes` are what differs from the version `compared_with`. Without `who` it is not
    known who made it."""

    version: int
    at: datetime
    spec: JobSpec
    changes: list[FieldChange] = field(default_factory=list)
    who: str | None = None
    address: str | None = None
    operation: str | None = None
    reason: str | None = None
    compared_with: int | None = None


@dataclass(frozen=True)
class ApplyFailure:
    """Why a job was not brought to what its manifest says."""

    code: str
    message: str


@dataclass(frozen=True)
class JobForecast:
    """When a job is due by its schedule of now and by the planned one; a paused job is not due."""

    before: list[datetime] = field(default_factory=list)
    after: list[datetime] = field(default_factory=list)
    clock_changes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MinuteForecast:
    """A minute of the next day to which a plan adds many instants. `due`: those of now, None when it is far ahead."""

    at: datetime
    adds: int
    removes: int
    due: int | None = None


@dataclass(frozen=True)
class TenantForecast:
    """What a plan does to the jobs of a tenant; `max_jobs` 0 is no limit of its own."""

    tenant_id: str
    jobs: int
    after: int
    max_jobs: int
    exceeds: bool


@dataclass(frozen=True)
class PlanForecast:
    """What the changes of a plan mean together."""

    minutes: list[MinuteForecast] = field(default_factory=list)
    tenants: list[TenantForecast] = field(default_factory=list)
    truncated: bool = False


@dataclass(frozen=True)
class PlanItem:
    """What becomes of one job; `outcome` and `error` only of an apply."""

    action: PlanAction
    tenant_id: str
    name: str
    job_id: int | None = None
    version: int | None = None
    file: str | None = None
    line: int | None = None
    changes: list[FieldChange] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)
    outcome: ApplyOutcome | None = None
    error: ApplyFailure | None = None
    forecast: JobForecast | None = None


@dataclass(frozen=True)
class Plan:
    """What an apply would do. `plan_id` names exactly these changes."""

    plan_id: str
    create: int
    change: int
    unchanged: int
    delete: int
    items: list[PlanItem]
    forecast: PlanForecast | None = None


@dataclass(frozen=True)
class Applied:
    """What an apply did. Applying the same again does what is left."""

    created: int
    changed: int
    unchanged: int
    deleted: int
    failed: int
    not_begun: int
    items: list[PlanItem]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A list's page; `next_page_token` is None on the last."""

    items: list[T]
    next_page_token: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)
