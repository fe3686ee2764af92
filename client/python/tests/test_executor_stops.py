"""Bodies that do not end, and what is kept of those that have: the grace, an operator's word, deadlines."""

import asyncio
import threading

import pytest
from fake_node import FakeNode, assignment
from nodes import PATIENCE_SEC

from campanile import Context, Executor, ExecutorHandle, Json, StopReason, limits
from campanile.executor.assignment import Assignment
from campanile.executor.attempts import Attempts
from campanile.executor.bodies import Report
from campanile.executor.log import AttemptLog, LogBudget


async def running(handle: ExecutorHandle, count: int) -> None:
    await asyncio.wait_for(handle.wait_until(lambda s: s.running == count), PATIENCE_SEC)


def test_deadlines_of_bodies_that_have_ended_are_not_kept() -> None:
    """A timeout of an hour is not to hold memory for an hour."""
    attempts = Attempts(grace_ms=50)
    for n in range(1, 5_001):
        read = Assignment.read(assignment(n, 1, "wait", cs=0, to=3_600))
        ctx = Context(read, AttemptLog(LogBudget(), lambda: None))
        attempts.started(read.held.key, ctx, _Nothing(), 1, n)
        attempts.ended(read.held.key, Report())
        attempts.settled(read.held.key)
    assert (attempts.running, attempts.unacknowledged) == (0, 0)
    assert attempts.deadlines <= 2 * limits.DEADLINES_SPARE
    # What runs keeps its deadline over all that.
    read = Assignment.read(assignment(9_999, 1, "wait", cs=0, to=1))
    ctx = Context(read, AttemptLog(LogBudget(), lambda: None))
    attempts.started(read.held.key, ctx, _Nothing(), 1, 10_000)
    for n in range(20_000, 20_500):
        other = Assignment.read(assignment(n, 1, "wait", cs=0, to=3_600))
        attempts.started(other.held.key, Context(other, AttemptLog(LogBudget(), lambda: None)), _Nothing(), 1, 10_000)
        attempts.ended(other.held.key, Report())
    attempts.expire(11_001)
    assert ctx.stop_reason is StopReason.TIMEOUT


class _Nothing:
    def abort(self) -> None:
        """It does not run."""


async def test_an_operators_word_frees_the_slot_of_a_thread_that_does_not_return(fake: FakeNode) -> None:
    go = threading.Event()
    executor = Executor(fake.address, token="token", slots=1, grace_sec=0.01)

    @executor.handler("deaf")
    def deaf(ctx: Context, params: Json) -> None:
        go.wait(60)

    handle = executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "deaf"))
    await running(handle, 1)
    link.send([2, "executor.stop", [{"items": [], "ended": [{"r": 1, "j": 1, "k": 1}]}]])
    await running(handle, 0)
    link.assign(assignment(2, 1, "deaf"))
    await running(handle, 1)
    go.set()
    [ended] = await link.finish("d")
    assert ended["r"] == 2, "of the forgotten one nothing is handed in"
    await handle.kill()


def test_a_grace_that_does_not_fit_the_lease_is_refused() -> None:
    with pytest.raises(ValueError, match=r"grace_sec must be 0\.\.6, not 7.*lease of 10 s"):
        Executor("127.0.0.1:1", token="t", grace_sec=7)
