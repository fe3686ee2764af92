"""Everything an executor holds: attempts that run, and results that no node has called durable yet.

Clocks are arguments, and what to send is asked for.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from campanile import limits
from campanile.enums import OnLostContact
from campanile.executor import assignment as wire
from campanile.executor import failure
from campanile.executor.assignment import Held, Key
from campanile.executor.bodies import Body, Report
from campanile.executor.context import Context, StopReason
from campanile.executor.failure import PermanentError


@dataclass
class _Running:
    ctx: Context
    body: Body
    link: int
    deadline_ms: int
    """When its time is over, or, once told to stop, its grace."""
    stopping: StopReason | None = None


@dataclass
class _Outcome:
    held: Held
    ended: dict[str, Any]
    link: int
    ctx: Context | None
    """What is left of its log is sent before it."""


@dataclass
class Batch:
    """Results to send, in order, and the pieces of log that go before them."""

    keys: list[Key] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)


class Attempts:
    """See the module's text. A link is the number of a connection."""

    def __init__(self, grace_ms: int) -> None:
        self._running: dict[Key, _Running] = {}
        self._deadlines: list[tuple[int, int, int]] = []
        self._results: dict[Key, _Outcome] = {}
        self._unsent: defaultdict[int, deque[Key]] = defaultdict(deque)
        self._again: deque[tuple[int, Key]] = deque()
        self._grace_ms = grace_ms

    @property
    def running(self) -> int:
        """Bodies that run."""
        return len(self._running)

    @property
    def deadlines(self) -> int:
        """Entries that are kept to look at deadlines, count."""
        return len(self._deadlines)

    @property
    def unacknowledged(self) -> int:
        """Results that no node has called durable or stale."""
        return len(self._results)

    def holds(self, key: Key) -> bool:
        """Whether it runs, or has a result to hand in."""
        return key in self._running or key in self._results

    def context(self, key: Key) -> tuple[Context, int] | None:
        """The attempt and its link, while it runs."""
        running = self._running.get(key)
        return None if running is None else (running.ctx, running.link)

    def started(self, key: Key, ctx: Context, body: Body, link: int, now_ms: int) -> None:
        """A body runs."""
        deadline_ms = now_ms + ctx.assignment.timeout_sec * 1000
        self._running[key] = _Running(ctx, body, link, deadline_ms)
        self._look_at(key, deadline_ms)

    def _look_at(self, key: Key, at_ms: int) -> None:
        heapq.heappush(self._deadlines, (at_ms, key.run_id, key.token))
        # Entries of bodies that have ended, or whose deadline has moved, would stay until their time comes.
        if len(self._deadlines) > 2 * len(self._running) + limits.DEADLINES_SPARE:
            self._deadlines = [(r.deadline_ms, k.run_id, k.token) for k, r in self._running.items()]
            heapq.heapify(self._deadlines)

    def stop(self, key: Key, reason: StopReason, now_ms: int) -> None:
        """Tells a body to stop. The first reason stands."""
        running = self._running.get(key)
        if running is None or running.stopping is not None:
            return
        running.stopping = reason
        running.ctx.stop(reason)
        running.deadline_ms = now_ms + self._grace_ms
        self._look_at(key, running.deadline_ms)

    def forget(self, key: Key) -> bool:
        """An operator said that the body has ended: its slot is free, and its result is nobody's news any more."""
        running = self._running.pop(key, None)
        if running is None:
            return False
        running.ctx.stop(StopReason.CANCELED)
        running.body.abort()
        return True

    def stop_all(self, reason: StopReason, now_ms: int) -> None:
        """Tells all bodies to stop."""
        for key in list(self._running):
            self.stop(key, reason, now_ms)

    def stop_out_of_contact(self, link: int, now_ms: int) -> None:
        """Stops the bodies of a silent connection that must not outlive their lease."""
        for key, running in list(self._running.items()):
            if running.link == link and running.ctx.assignment.on_lost_contact == OnLostContact.STOP:
                self.stop(key, StopReason.LOST_CONTACT, now_ms)

    def expire(self, now_ms: int) -> None:
        """Acts on deadlines that have passed: over time = told to stop, over the grace = canceled."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            at_ms, run_id, token = heapq.heappop(self._deadlines)
            key = Key(run_id, token)
            running = self._running.get(key)
            # Of a body that has ended, or was told to stop meanwhile.
            if running is None or running.deadline_ms != at_ms:
                continue
            if running.stopping is None:
                self.stop(key, StopReason.TIMEOUT, now_ms)
                continue
            running.body.abort()
            # One that caught the cancellation is canceled again; until it is gone it keeps its slot.
            running.deadline_ms = now_ms + max(self._grace_ms, limits.TICK_MS)
            self._look_at(key, running.deadline_ms)
        while self._again and self._again[0][0] <= now_ms:
            self._queue(self._again.popleft()[1])

    def ended(self, key: Key, report: Report) -> None:
        """A body is gone; its result is kept until a node calls it durable or stale."""
        running = self._running.pop(key, None)
        if running is None:
            return
        held = running.ctx.assignment.held
        ended = _conclude(held, running.stopping, running.ctx.assignment.timeout_sec, report)
        self._results[key] = _Outcome(held, ended, running.link, running.ctx)
        self._queue(key)

    def keep(self, held: Held, ended: dict[str, Any], link: int) -> None:
        """Keeps the result of an attempt that never ran."""
        self._results[held.key] = _Outcome(held, ended, link, None)
        self._queue(held.key)

    def _queue(self, key: Key) -> None:
        outcome = self._results.get(key)
        if outcome is not None:
            self._unsent[outcome.link].append(key)

    def batch(self, link: int) -> Batch:
        """The next results for a connection, with the logs that go before them."""
        batch, weight = Batch(), 0
        unsent = self._unsent[link]
        while unsent and len(batch.keys) < limits.EXECUTOR_BATCH and weight < limits.UNSENT_BYTES:
            key = unsent.popleft()
            outcome = self._results.get(key)
            # One that was called durable meanwhile is gone.
            if outcome is None:
                continue
            if outcome.ctx is not None:
                while piece := outcome.ctx.take_log(last=True):
                    batch.logs.append(log_chunk(outcome.ctx, piece))
                    weight += len(piece)
                outcome.ctx = None
            batch.keys.append(key)
            batch.items.append(outcome.ended)
            weight += 64 + len(outcome.ended.get("m", "")) + len(outcome.ended.get("w", b""))
        return batch

    def has_unsent(self, link: int) -> bool:
        """Whether there are results for a connection."""
        return bool(self._unsent[link])

    def settled(self, key: Key) -> None:
        """A node has spoken about a result: it need not be held any more."""
        self._results.pop(key, None)

    def again(self, key: Key, now_ms: int) -> None:
        """A node did not take it now."""
        self._again.append((now_ms + limits.FINISH_AGAIN_MS, key))

    def resend(self, link: int) -> None:
        """A connection came back: all its results are sent again, since nobody knows which arrived."""
        mine = [key for key, outcome in self._results.items() if outcome.link == link]
        self._unsent[link] = deque(mine)
        sent = set(mine)
        self._again = deque((at, key) for at, key in self._again if key not in sent)

    def is_home(self, link: int) -> bool:
        """Whether anything is to be told over a connection."""
        running = any(running.link == link for running in self._running.values())
        return running or any(outcome.link == link for outcome in self._results.values())

    def rehome(self, old: int, new: int) -> None:
        """What came over a connection that is gone is told over another one of the same cluster: any node passes it on."""
        for running in self._running.values():
            if running.link == old:
                running.link = new
        moved = [key for key, outcome in self._results.items() if outcome.link == old]
        for key in moved:
            self._results[key].link = new
        self._unsent.pop(old, None)
        self._unsent[new].extend(moved)
        gone = set(moved)
        self._again = deque((at, key) for at, key in self._again if key not in gone)

    def held(self) -> list[Held]:
        """Everything held, for an announcement."""
        running = [running.ctx.assignment.held for running in self._running.values()]
        return running + [outcome.held for outcome in self._results.values()]

    def abort_all(self) -> None:
        """The executor is gone, and so are its bodies, as far as they can be made to go."""
        for running in self._running.values():
            running.ctx.stop(StopReason.SHUTDOWN)
            running.body.abort()


def log_chunk(ctx: Context, piece: bytes) -> dict[str, Any]:
    """The map of `executor.log`."""
    return {"run": ctx.run_id, "token": ctx.token, "attempt": ctx.attempt, "data": piece}


_STOPPED: dict[StopReason, tuple[int, str, Callable[[int], str]]] = {
    # The node asked for it and counts on it: even a body that says it was done in time is reported as stopped.
    StopReason.CANCELED: (wire.CANCELED, failure.CANCELED, lambda _: "stopped on request"),
    StopReason.TIMEOUT: (wire.TIMEOUT, failure.TIMEOUT, lambda seconds: f"stopped after {seconds} s"),
    # Failed, not canceled: the retry policy shall start it elsewhere.
    StopReason.LOST_CONTACT: (
        wire.FAILED,
        failure.LOST_CONTACT,
        lambda _: "stopped before the lease ended: no node answered",
    ),
    StopReason.SHUTDOWN: (wire.FAILED, failure.EXECUTOR_SHUTDOWN, lambda _: "stopped because the executor shut down"),
}


def _conclude(held: Held, stopping: StopReason | None, timeout_sec: int, report: Report) -> dict[str, Any]:
    said = f"{report.error.code}: {report.error.message}" if report.error else ""
    if stopping is not None:
        state, code, why = _STOPPED[stopping]
        message = why(timeout_sec) + (f" ({said})" if said else "")
        return wire.result(held, state, code=code, message=cut(message, limits.ERROR_MESSAGE_BYTES))
    if report.error is not None:
        code = cut(report.error.code, limits.ERROR_CODE_BYTES)
        message = cut(report.error.message, limits.ERROR_MESSAGE_BYTES)
        permanent = isinstance(report.error, PermanentError)
        return wire.result(held, wire.FAILED, code=code, message=message, permanent=permanent)
    if report.aborted:
        return wire.result(held, wire.FAILED, code=failure.BODY_ABORTED, message="the body was canceled")
    if report.payload is not None and len(report.payload) > limits.RESULT_BYTES:
        # Here already, and not only at the node: a frame would be lost over it.
        message = f"the result of {len(report.payload)} bytes is not kept; at most {limits.RESULT_BYTES} are"
        return wire.result(held, wire.SUCCESS, code=failure.RESULT_TOO_LARGE, message=message)
    return wire.result(held, wire.SUCCESS, payload=report.payload)


def cut(text: str, most_bytes: int) -> str:
    """The text, or as much of it as fits with `...` behind; a character is kept whole."""
    raw = text.encode(errors="replace")
    if len(raw) <= most_bytes:
        return raw.decode()
    return raw[: most_bytes - 3].decode(errors="ignore") + "..."
