"""What a body sees of its attempt."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from enum import Enum

from campanile import limits
from campanile.enums import Source
from campanile.executor.assignment import Assignment
from campanile.executor.log import AttemptLog


class StopReason(Enum):
    """Why a body must stop."""

    CANCELED = "the run was canceled or replaced"
    TIMEOUT = "the job's timeout_sec is over"
    LOST_CONTACT = "no node answered for so long that the lease is about to end, and the job says onLostContact STOP"
    SHUTDOWN = "the executor shuts down and its time for that is over"


class Context:
    """One attempt, as its body sees it. Every method may be called from any thread."""

    def __init__(self, assignment: Assignment, log: AttemptLog) -> None:
        self.assignment = assignment
        """All that the node sent."""
        self.deadline = datetime.now(UTC) + timedelta(seconds=assignment.timeout_sec)
        """When the attempt's time is over, on this machine's clock."""
        self._ends_at = time.monotonic() + assignment.timeout_sec
        self._log = log
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._stop_reason: StopReason | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._progress_at = -float("inf")

    @property
    def run_id(self) -> int:
        """The run; the same for all its attempts."""
        return self.assignment.run_id

    @property
    def job_id(self) -> int:
        """The job."""
        return self.assignment.job_id

    @property
    def job_name(self) -> str:
        """The job's name, unique in its tenant."""
        return self.assignment.job_name

    @property
    def tenant(self) -> str:
        """Whose job it is."""
        return self.assignment.tenant

    @property
    def attempt(self) -> int:
        """From 1, over all generations."""
        return self.assignment.attempt

    @property
    def generation(self) -> int:
        """Rises with each redrive and retry by hand."""
        return self.assignment.generation

    @property
    def token(self) -> int:
        """The fencing token, which rises with each attempt: a system that a body writes to can refuse lower ones."""
        return self.assignment.token

    @property
    def idempotency_key(self) -> str:
        """What to be idempotent with: `runId/generation`, the same for all attempts that shall have one effect."""
        return f"{self.run_id}/{self.generation}"

    @property
    def logical_time(self) -> datetime | None:
        """The instant that the run stands for, which may lie in the past; None for runs that stand for none."""
        return self.assignment.logical_time

    @property
    def source(self) -> Source:
        """Why the run exists."""
        return self.assignment.source

    @property
    def secrets(self) -> dict[str, str]:
        """The job's secret params, opened. Never logged by this package."""
        return self.assignment.secrets

    @property
    def traceparent(self) -> str | None:
        """The span that what the body does is a child of, as W3C Trace Context writes it; None when the run has no trace.

        To be sent as header `traceparent` with the body's own calls, or given to a propagator of OpenTelemetry.
        """
        return self.assignment.traceparent

    @property
    def trace_id(self) -> str | None:
        """The trace that the run belongs to, 32 hexadecimal digits; for lines of a log."""
        parts = (self.traceparent or "").split("-")
        return parts[1] if len(parts) > 1 else None

    def remaining_sec(self) -> float:
        """Seconds until the attempt's time is over; not below 0."""
        return max(self._ends_at - time.monotonic(), 0.0)

    def log(self, line: str) -> None:
        """Writes a line to the run's log. Never waits; a line that finds the buffer full is dropped and counted in the log."""
        self.write_log(line.encode(errors="replace") + b"\n")

    def write_log(self, output: bytes) -> None:
        """Writes bytes to the run's log as they are. Never waits; all of them are taken or dropped."""
        self._log.write(output)

    def progress(self, fraction: float, note: str = "") -> None:
        """Says how far the work is, 0.0..1.0, as a line in the run's log; at most one a second, and always the one at 1.0.

        It needs no calling for the attempt to be kept alive: the executor's heartbeats do that.
        """
        fraction = min(max(fraction, 0.0), 1.0)
        with self._lock:
            now = time.monotonic()
            if fraction < 1.0 and now - self._progress_at < limits.PROGRESS_MS / 1000:
                return
            self._progress_at = now
        self.log(f"[progress {fraction:.0%}]" + (f" {note}" if note else ""))

    @property
    def is_canceled(self) -> bool:
        """The body was told to stop."""
        return self._stopped.is_set()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the body was told to stop; None while it was not."""
        return self._stop_reason

    async def canceled(self) -> StopReason:
        """Waits until the body is told to stop. One that goes on gets asyncio's CancelledError after a grace."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            reason = self._stop_reason
            if reason is None:
                self._waiting.append(waiter)
        if reason is None:
            await waiter
            reason = self._stop_reason
        return reason or StopReason.CANCELED

    def wait_canceled(self, timeout_sec: float | None = None) -> bool:
        """For functions in threads: waits so long, or for ever, until the body is told to stop; whether it was."""
        return self._stopped.wait(timeout_sec)

    def stop(self, reason: StopReason) -> None:
        """Tells the body to stop; the first reason stands. Of the executor."""
        with self._lock:
            if self._stop_reason is not None:
                return
            self._stop_reason = reason
            waiting, self._waiting = self._waiting, []
        self._stopped.set()
        for waiter in waiting:
            loop = waiter.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, waiter)

    def take_log(self, *, last: bool) -> bytes:
        """The next piece of log to send. Of the executor."""
        return self._log.take(last=last)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
