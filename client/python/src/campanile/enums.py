"""The protocol's words. A word of a newer node that this release does not know becomes a member with that word."""

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """An UPPER_SNAKE word. Unknown ones are kept as they came; they equal their text and nothing else."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        known = cls.__members__.get(value.upper())
        if known is not None:
            return known
        other = str.__new__(cls, value)
        other._name_ = other._value_ = value
        return other


class Dialect(Word):
    """Which reading of a cron expression; AUTO chooses, and the answer names what it chose."""

    AUTO = "AUTO"
    UNIX = "UNIX"
    QUARTZ = "QUARTZ"


class ExecutorState(Word):
    """How an executor stands."""

    DISCONNECTED = "DISCONNECTED"
    SUSPECTED_LOST = "SUSPECTED_LOST"
    READY = "READY"
    DRAINING = "DRAINING"


class MemberState(Word):
    """How a node of a cluster stands."""

    ALIVE = "ALIVE"
    SUSPECTED = "SUSPECTED"
    CORDONED = "CORDONED"
    DRAINING = "DRAINING"
    CLOCK_WRONG = "CLOCK_WRONG"


class MoveReason(Word):
    """Why a shard moves."""

    NO_OWNER = "NO_OWNER"
    UNDERWAY = "UNDERWAY"
    OWNER_LEAVES = "OWNER_LEAVES"
    BALANCE = "BALANCE"


class ClusterEventKind(Word):
    """What happened to a cluster."""

    NODE_CAME = "NODE_CAME"
    NODE_SUSPECTED = "NODE_SUSPECTED"
    NODE_WELL_AGAIN = "NODE_WELL_AGAIN"
    NODE_GONE = "NODE_GONE"
    NODE_DRAINING = "NODE_DRAINING"
    NODE_CORDONED = "NODE_CORDONED"
    NODE_UNCORDONED = "NODE_UNCORDONED"
    SESSION_BEGUN = "SESSION_BEGUN"
    SESSION_OVER = "SESSION_OVER"
    SHARD_SERVED = "SHARD_SERVED"
    SHARD_HANDED_OVER = "SHARD_HANDED_OVER"
    SHARD_LOST = "SHARD_LOST"
    NODE_CLOCK_WRONG = "NODE_CLOCK_WRONG"
    NODE_CLOCK_RIGHT = "NODE_CLOCK_RIGHT"


class PlanAction(Word):
    """What becomes of a job when manifests are applied."""

    CREATE = "CREATE"
    CHANGE = "CHANGE"
    UNCHANGED = "UNCHANGED"
    DELETE = "DELETE"


class ApplyOutcome(Word):
    """How far an apply came with a job."""

    DONE = "DONE"
    FAILED = "FAILED"
    NOT_BEGUN = "NOT_BEGUN"


class Gap(Word):
    """What a schedule does with an instant that daylight saving removes."""

    SHIFT = "SHIFT"
    SKIP = "SKIP"


class Overlap(Word):
    """What a schedule does with an instant that daylight saving repeats."""

    FIRST = "FIRST"
    SECOND = "SECOND"
    BOTH = "BOTH"


class MisfirePolicy(Word):
    """What happens to instants that are older than the threshold when they can be decided."""

    SKIP = "SKIP"
    FIRE_ONCE_NOW = "FIRE_ONCE_NOW"
    FIRE_ALL_MISSED = "FIRE_ALL_MISSED"


class ConcurrencyPolicy(Word):
    """What happens when an instant is due while a run of the job is active."""

    ALLOW = "ALLOW"
    FORBID = "FORBID"
    REPLACE = "REPLACE"
    QUEUE_ONE = "QUEUE_ONE"


class Backoff(Word):
    """How the delay between attempts grows."""

    FIXED = "FIXED"
    EXPONENTIAL = "EXPONENTIAL"


class OnLostContact(Word):
    """What an executor that hears from no node does with a running body."""

    CONTINUE = "CONTINUE"
    STOP = "STOP"


class JobStatus(Word):
    """State of a job."""

    ENABLED = "ENABLED"
    PAUSED = "PAUSED"
    DELETED = "DELETED"


class RunState(Word):
    """State of a run. The last five are final."""

    PENDING = "PENDING"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    SUSPECTED_LOST = "SUSPECTED_LOST"
    NEEDS_CONFIRMATION = "NEEDS_CONFIRMATION"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"

    @property
    def is_final(self) -> bool:
        """Nothing happens to the run any more, unless a person retries or redrives it."""
        return self in _FINAL


_FINAL = frozenset({RunState.SUCCESS, RunState.FAILED, RunState.TIMEOUT, RunState.CANCELED, RunState.SKIPPED})


class LogLevel(Word):
    """Level of a line of a log."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class AttemptState(Word):
    """State of one attempt. NOT_STARTED: the executor refused it before the body began."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELED = "CANCELED"
    LOST = "LOST"
    NOT_STARTED = "NOT_STARTED"


class Source(Word):
    """Why a run exists."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"
    BACKFILL = "BACKFILL"
    DAG = "DAG"
    EVENT = "EVENT"
    COMPENSATION = "COMPENSATION"
    REPLAY = "REPLAY"


class Outcome(Word):
    """What became of due instants, in the fire ledger. FIRED_LATE: more than 1 s after the instant."""

    FIRED = "FIRED"
    FIRED_LATE = "FIRED_LATE"
    COALESCED = "COALESCED"
    SKIPPED = "SKIPPED"
    MISSED = "MISSED"
    DST_SKIPPED = "DST_SKIPPED"


class JobStep(Word):
    """What became of a job's definition."""

    CREATED = "CREATED"
    REPLACED = "REPLACED"
    PAUSED = "PAUSED"
    RESUMED = "RESUMED"
    DELETED = "DELETED"
    QUARANTINED = "QUARANTINED"
    """Put aside after its own code failed again and again."""


class SkipReason(Word):
    """Why instants were skipped or missed."""

    PAUSED = "PAUSED"
    TENANT_PAUSED = "TENANT_PAUSED"
    SYSTEM_PAUSED = "SYSTEM_PAUSED"
    RUN_ACTIVE = "RUN_ACTIVE"
    ONE_QUEUED = "ONE_QUEUED"
    QUEUE_FULL = "QUEUE_FULL"
    MISFIRE = "MISFIRE"
    CATCH_UP_CAP = "CATCH_UP_CAP"
    QUARANTINED = "QUARANTINED"
    WINDOW = "WINDOW"
    DELETED = "DELETED"
    EDITED = "EDITED"
    RESTORED = "RESTORED"
    BLACKOUT = "BLACKOUT"
    CALENDAR = "CALENDAR"
    NO_CALENDAR = "NO_CALENDAR"


class MessageKind(Word):
    """What a message between jobs asks of its receiver."""

    START = "START"
    END = "END"
    CANCEL = "CANCEL"
    HOOK = "HOOK"
    COMPENSATION = "COMPENSATION"


class OutboxState(Word):
    """How a message between jobs fares: it waits, or was given up."""

    WAITING = "WAITING"
    UNDELIVERED = "UNDELIVERED"
    REFUSED = "REFUSED"
    DROPPED = "DROPPED"


class NodeState(Word):
    """State of a node in a run of its DAG. The last five are final."""

    WAITING = "WAITING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"
    CANCELED = "CANCELED"


class NodeFailure(Word):
    """Why a node of a DAG is FAILED, when its run does not say so."""

    RUN_FAILED = "RUN_FAILED"
    RUN_TIMEOUT = "RUN_TIMEOUT"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    RESULT_MISSING = "RESULT_MISSING"
    PARAMS_TOO_LARGE = "PARAMS_TOO_LARGE"
    REFUSED = "REFUSED"
    UNDELIVERED = "UNDELIVERED"


class EdgeOutcome(Word):
    """What the condition of an edge of a DAG has said, when it was not true. BROKEN: it has no value for the result."""

    NOT_TAKEN = "NOT_TAKEN"
    BROKEN = "BROKEN"


class NodeRule(Word):
    """Which ends of the nodes before it let a node of a DAG run."""

    ALL_SUCCESS = "ALL_SUCCESS"
    ALL_DONE = "ALL_DONE"
    ANY_SUCCESS = "ANY_SUCCESS"
    ANY_FAILED = "ANY_FAILED"
    NONE_FAILED = "NONE_FAILED"


class DagDrawing(Word):
    """A text that shows a DAG: a flow chart of Mermaid, or a line of ASCII for each node."""

    MERMAID = "MERMAID"
    ASCII = "ASCII"


class BackfillMode(Word):
    """Which instants a backfill runs; REPLAY: those that made a run, with its params."""

    MISSING = "MISSING"
    FAILED = "FAILED"
    ALL = "ALL"
    REPLAY = "REPLAY"


class BackfillState(Word):
    """How a backfill stands. The last two are final."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    DONE = "DONE"


class BreakerState(Word):
    """State of a target's breaker."""

    CLOSED = "CLOSED"
    RECOVERING = "RECOVERING"
    OPEN = "OPEN"


class DegradationLevel(Word):
    """What a node does without while it cannot keep up. Each level includes those before it."""

    NORMAL = "NORMAL"
    BACKFILLS_STOP = "BACKFILLS_STOP"
    LOW_PRIORITY_WAITS = "LOW_PRIORITY_WAITS"
    READ_MODEL_STRETCHED = "READ_MODEL_STRETCHED"
    TRIGGERS_REFUSED = "TRIGGERS_REFUSED"


class BulkAction(Word):
    """What a bulk operation does with each of its items: jobs (the first four), or runs."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    TRIGGER = "TRIGGER"
    DELETE = "DELETE"
    CANCEL = "CANCEL"
    RETRY = "RETRY"
    REDRIVE = "REDRIVE"


class BulkState(Word):
    """How a bulk operation stands. The last two are final; WAITING: its jobs are paused until the grace is over."""

    RUNNING = "RUNNING"
    WAITING = "WAITING"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"
    DONE = "DONE"


class UnknownInstants(Word):
    """What a backfill does with instants of which the ledger says nothing any more."""

    SKIP = "SKIP"
    RUN = "RUN"


class Decision(Word):
    """What a person says of a run in NEEDS_CONFIRMATION: run it again, it did its work, or it did not.

    ENDED is for a run that is STOPPING: its body has ended, though its executor does not say so.
    """

    RERUN = "RERUN"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ENDED = "ENDED"


class Weekday(Word):
    """A day of the week."""

    MON = "MON"
    TUE = "TUE"
    WED = "WED"
    THU = "THU"
    FRI = "FRI"
    SAT = "SAT"
    SUN = "SUN"


class WindowEffect(Word):
    """What a window does with the instants in it."""

    ALLOW = "ALLOW"
    DENY = "DENY"


class CalendarRule(Word):
    """What the days of a calendar do with the instants of a job."""

    ONLY_ON = "ONLY_ON"
    NOT_ON = "NOT_ON"
