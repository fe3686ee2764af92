"""A job as callers write it: its schedule, its policies, its action. Every default is the node's.

Names are those of the HTTP API in snake_case; a field whose name ends in `_sec` is in seconds.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Self

from campanile.enums import (
    Backoff,
    CalendarRule,
    ConcurrencyPolicy,
    Dialect,
    Gap,
    MisfirePolicy,
    OnLostContact,
    Overlap,
    Weekday,
    WindowEffect,
)
from campanile.shapes import Json, Other, Tagged


def _whole_seconds(time: float | timedelta) -> int:
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if seconds != int(seconds) or seconds < 0:
        raise ValueError(f"{time!r}: a schedule counts whole seconds, not below 0")
    return int(seconds)


class _Trigger(Tagged):
    TAG: ClassVar[str] = "type"


@dataclass(frozen=True, kw_only=True)
class Cron(_Trigger):
    """Due by a cron expression in a time zone: `Cron.of("0 2 * * *", timezone="Europe/Berlin")`.

    `max_catch_up` bounds how many missed instants FIRE_ALL_MISSED makes up; `jitter_sec` spreads each due instant.
    """

    KIND: ClassVar[str] = "CRON"
    expr: str
    dialect: Dialect = Dialect.AUTO
    timezone: str = "UTC"
    gap: Gap = Gap.SHIFT
    overlap: Overlap = Overlap.FIRST
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_sec: int = 0
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW
    misfire_threshold_sec: int = 60
    max_catch_up: int = 1000

    @classmethod
    def of(cls, expr: str, timezone: str = "UTC") -> Self:
        """With the defaults for all else."""
        return cls(expr=expr, timezone=timezone)


@dataclass(frozen=True, kw_only=True)
class FixedRate(_Trigger):
    """Due at anchor + n x every; without an anchor the node takes the time of creation. `FixedRate.every(30)`."""

    KIND: ClassVar[str] = "FIXED_RATE"
    every_sec: int
    anchor_at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_sec: int = 0
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW
    misfire_threshold_sec: int = 60
    max_catch_up: int = 1000

    @classmethod
    def every(cls, time: float | timedelta) -> Self:
        """Whole seconds, or a timedelta of whole seconds."""
        return cls(every_sec=_whole_seconds(time))


@dataclass(frozen=True, kw_only=True)
class FixedDelay(_Trigger):
    """Due `every_sec` after the last run became final. `FixedDelay.after(30)`."""

    KIND: ClassVar[str] = "FIXED_DELAY"
    every_sec: int
    start_at: datetime | None = None
    end_at: datetime | None = None
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW
    misfire_threshold_sec: int = 60

    @classmethod
    def after(cls, time: float | timedelta) -> Self:
        """Whole seconds, or a timedelta of whole seconds."""
        return cls(every_sec=_whole_seconds(time))


@dataclass(frozen=True, kw_only=True)
class Once(_Trigger):
    """Due once: `Once(at=...)`, `Once.after(5)` or `Once.immediately()`. Exactly one of `at`, `delay_sec` and `delay_ms`.

    `at` is an aware datetime, or with `timezone` a naive one, which is a local time of that zone. A time that the clocks skip is
    the first instant after the gap, and of a time that comes twice it is the first. It is read back as an instant.
    """

    KIND: ClassVar[str] = "ONCE"
    at: datetime | None = field(default=None, metadata={"local": True})
    delay_sec: int | None = None
    delay_ms: int | None = None
    timezone: str | None = None
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW
    misfire_threshold_sec: int = 60

    def __post_init__(self) -> None:
        if self.at is not None and self.at.tzinfo is None and self.timezone is None:
            raise ValueError(f"{self.at!r} has no time zone; give timezone='Europe/Berlin', or use replace(tzinfo=...)")

    @classmethod
    def after(cls, time: float | timedelta) -> Self:
        """Seconds or a timedelta, of whole milliseconds, counted from when the node takes the job."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        milliseconds = round(seconds * 1000)
        if milliseconds < 0 or abs(seconds * 1000 - milliseconds) > 1e-6:
            raise ValueError(f"{time!r}: a delay counts whole milliseconds, not below 0")
        if milliseconds % 1000 == 0:
            return cls(delay_sec=milliseconds // 1000)
        return cls(delay_ms=milliseconds)

    @classmethod
    def immediately(cls) -> Self:
        """As soon as the node has stored the job."""
        return cls(delay_sec=0)


@dataclass(frozen=True, kw_only=True)
class Manual(_Trigger):
    """Only due when somebody triggers it."""

    KIND: ClassVar[str] = "MANUAL"


Trigger = Cron | FixedRate | FixedDelay | Once | Manual | Other


class _Action(Tagged):
    TAG: ClassVar[str] = "kind"


@dataclass(frozen=True)
class Handler(_Action):
    """Calls the function that an executor registered under this name."""

    KIND: ClassVar[str] = "HANDLER"
    name: str


@dataclass(frozen=True, kw_only=True)
class CommandLimits:
    """What each process of a command may use at most; None: what the executor itself may. `nice` of the command: 0..19."""

    cpu_sec: int | None = None
    memory_mb: int | None = None
    open_files: int | None = None
    file_size_mb: int | None = None
    processes: int | None = None


@dataclass(frozen=True)
class Command(_Action):
    """Starts a process on the machine of an executor that runs commands (the node's own, or `campanile executor`)."""

    KIND: ClassVar[str] = "COMMAND"
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None
    output_cap_kb: int = 256
    limits: CommandLimits | None = None
    nice: int | None = None


@dataclass(frozen=True, kw_only=True)
class Http(_Action):
    """Sends a request from an executor's machine. Path and query of `url`, values of `headers`, and strings in `body` may hold
    `{{name}}`: facts of the attempt, such as `{{runId}}` or `{{params.customer}}`.

    A `body` that is a string is sent as it is, any other as JSON. `expect_status`: from and to, both included.
    """

    KIND: ClassVar[str] = "HTTP"
    url: str
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: Json = None
    expect_status: list[int] = field(default_factory=lambda: [200, 299])
    timeout_sec: int = 30
    max_redirects: int = 0


Action = Handler | Command | Http | Other


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """`max_attempts` counts the first try.

    Delay before try n+1: base (FIXED) or base x 2^(n-1) (EXPONENTIAL), at most max, times 1 +- jitter (a fraction 0..1).
    No attempt begins later than `max_elapsed_sec` after the first one.
    """

    max_attempts: int = 3
    backoff: Backoff = Backoff.EXPONENTIAL
    base_delay_sec: float = 10.0
    max_delay_sec: float = 3600.0
    jitter: float = 0.2
    max_elapsed_sec: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run needs of an executor: cores, MiB, MiB."""

    cpu: float = 0.1
    memory_mb: int = 64
    storage_mb: int = 0


@dataclass(frozen=True)
class Hook:
    """A job of the same tenant that is started. `params` are laid over that job's own, with `run`, which tells what happened.
    A `compensation` undoes what the run did: it is started once for the run, and the run is retried only with `force`."""

    job: str
    params: Json = field(default_factory=dict)
    compensation: bool | None = None


@dataclass(frozen=True)
class Hooks:
    """Jobs that are started when a run ends, at most four of each kind. `on_failure`: FAILED or TIMEOUT, and not tried again;
    `on_timeout` and `on_dead_letter` are started besides."""

    on_failure: list[Hook] = field(default_factory=list)
    on_success: list[Hook] | None = None
    on_timeout: list[Hook] | None = None
    on_dead_letter: list[Hook] | None = None


@dataclass(frozen=True, kw_only=True)
class Window:
    """A piece of every week in which instants of the trigger count (ALLOW), or do not (DENY).

    `days` are those on which it begins, such as `["MON", "FRI"]`; None: every day. `from_` and `to` are `HH:MM`; a `to` that is
    not after `from_` is of the next day. `timezone`: an IANA name; None: the zone of the trigger, or UTC.
    """

    effect: WindowEffect = WindowEffect.ALLOW
    days: list[Weekday] | None = None
    from_: str = field(default="00:00", metadata={"wire": "from"})
    to: str = "24:00"
    timezone: str | None = None


@dataclass(frozen=True, kw_only=True)
class Blackout:
    """A stretch of time in which no instant counts: `from_` is in it, `to` is the first moment after it."""

    from_: datetime = field(metadata={"wire": "from"})
    to: datetime
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobCalendar:
    """A calendar of the tenant (`calendar_set`) on whose days instants count, or do not.

    `timezone`: by whose clock a day begins, an IANA name; None: the zone of the trigger, or UTC.
    """

    name: str
    rule: CalendarRule = CalendarRule.ONLY_ON
    timezone: str | None = None


@dataclass(frozen=True)
class JobSpec:
    """A whole job.

    `name`: 1..128 of letters, digits, `. _ - /`, unique per tenant. `timeout_sec` is per attempt, `max_runtime_sec` is over
    all attempts of a run with the waits between them. A job that is not `idempotent` waits for a person after a lost executor.
    `executor_selector` is the pool's name. Without an `action` it calls the handler named like the job. `secret_params` are
    stored encrypted and read back as `***`. `priority`: 0..1000, higher first. `display_name`, `description`, `owner` and
    `annotations` are texts for people, in any language. `target` names the system that bodies call, which has limits, a breaker
    and a budget of retries (`target_set`). `windows` and `blackouts` remove instants of the trigger: these make no run, and the
    ledger says so.
    """

    name: str
    trigger: Trigger
    tenant_id: str = "default"
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    retry_policy: RetryPolicy = RetryPolicy()
    timeout_sec: int = 3600
    idempotent: bool = True
    on_lost_contact: OnLostContact = OnLostContact.CONTINUE
    dead_letter: bool = True
    executor_selector: str = "default"
    action: Action | None = None
    params: Json = field(default_factory=dict)
    secret_params: dict[str, str] = field(default_factory=dict, repr=False)
    labels: dict[str, str] = field(default_factory=dict)
    priority: int = 100
    resources: Resources = Resources()
    hooks: Hooks | None = None
    display_name: str | None = None
    description: str | None = None
    owner: str | None = None
    annotations: dict[str, str] | None = None
    max_runtime_sec: int | None = None
    target: str | None = None
    windows: list[Window] | None = None
    blackouts: list[Blackout] | None = None
    calendar: JobCalendar | None = None
