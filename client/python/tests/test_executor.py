"""Handlers against a real node: what they return and raise, and what becomes of it."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nodes import PATIENCE_SEC, Node, eventually, unique

from campanile import (
    AttemptState,
    Backoff,
    Client,
    Context,
    Executor,
    ExecutorHandle,
    Handler,
    JobError,
    JobSpec,
    Json,
    Manual,
    OnLostContact,
    PermanentError,
    RetryPolicy,
    Run,
    RunState,
    StopReason,
)

Function = Callable[[Context, Json], object]
QUICK = RetryPolicy(max_attempts=3, backoff=Backoff.FIXED, base_delay_sec=0.05, max_delay_sec=0.05, jitter=0.0)


@asynccontextmanager
async def serving(node: Node, function: Function, *, slots: int = 4) -> AsyncIterator[tuple[str, ExecutorHandle]]:
    """An executor with one handler, in a pool of its own; gives the pool's name."""
    pool = unique("pool")
    executor = Executor(node.rpc, token=node.token, pools=[pool], slots=slots, executor_id=pool, grace_sec=0.2)
    executor.any_handler(function)
    handle = executor.start()
    await handle.ready()
    try:
        yield pool, handle
    finally:
        await handle.drain(5)


async def trigger(
    client: Client,
    pool: str,
    params: Json = None,
    *,
    retry: RetryPolicy = QUICK,
    timeout_sec: int = 60,
    on_lost_contact: OnLostContact = OnLostContact.CONTINUE,
) -> int:
    spec = JobSpec(
        unique("job"),
        Manual(),
        executor_selector=pool,
        action=Handler("work"),
        retry_policy=retry,
        timeout_sec=timeout_sec,
        on_lost_contact=on_lost_contact,
    )
    created = await client.job_create(spec)
    return (await client.job_trigger(created.job_id, params=params)).run_id


async def run_of(client: Client, node: Node, function: Function, params: Json = None, *, timeout_sec: int = 60) -> Run:
    async with serving(node, function) as (pool, _):
        return await client.run_wait(await trigger(client, pool, params, timeout_sec=timeout_sec), timeout_sec=40)


async def test_what_a_coroutine_sees_and_returns(client: Client, shared_node: Node) -> None:
    seen: list[Context] = []
    loop = asyncio.get_running_loop()

    async def work(ctx: Context, params: Json) -> Json:
        seen.append(ctx)
        assert asyncio.get_running_loop() is loop
        ctx.log("größer")
        ctx.progress(0.5, "half")
        ctx.progress(0.6, "too soon")
        ctx.progress(1.0)
        return {"got": params, "remaining": ctx.remaining_sec()}

    run = await run_of(client, shared_node, work, {"n": [1, "ü", None]})
    [ctx] = seen
    assert (run.state, run.attempt_count) == (RunState.SUCCESS, 1)
    assert run.result["got"] == {"n": [1, "ü", None]}
    assert 50 < run.result["remaining"] <= 60
    assert (ctx.run_id, ctx.job_id, ctx.attempt, ctx.generation) == (run.run_id, run.job_id, 1, 1)
    assert ctx.idempotency_key == f"{run.run_id}/1"
    assert ctx.token == run.attempts[0].token
    assert (ctx.source, ctx.tenant) == ("MANUAL", "default")
    assert timedelta(0) < ctx.deadline - datetime.now(UTC) <= timedelta(seconds=60)
    log = await client.run_log_text(run.run_id)
    assert log == "größer\n[progress 50%] half\n[progress 100%]\n"


async def test_a_function_runs_in_a_thread(client: Client, shared_node: Node) -> None:
    def work(ctx: Context, params: Json) -> Json:
        ctx.log("from a thread")
        return threading.current_thread() is not threading.main_thread()

    run = await run_of(client, shared_node, work)
    assert (run.state, run.result) == (RunState.SUCCESS, True)
    assert await client.run_log_text(run.run_id) == "from a thread\n"


async def test_no_result_is_none(client: Client, shared_node: Node) -> None:
    async def work(ctx: Context, params: Json) -> None:
        pass

    run = await run_of(client, shared_node, work)
    assert (run.state, run.result) == (RunState.SUCCESS, None)


async def test_a_failure_is_tried_again_with_the_same_key(client: Client, shared_node: Node) -> None:
    keys: list[tuple[int, int, str]] = []

    async def work(ctx: Context, params: Json) -> str:
        keys.append((ctx.attempt, ctx.token, ctx.idempotency_key))
        if ctx.attempt == 1:
            raise JobError("the disk is full", code="DISK_FULL")
        if ctx.attempt == 2:
            raise KeyError("missing")
        return "third time"

    run = await run_of(client, shared_node, work)
    assert (run.state, run.result, run.attempt_count) == (RunState.SUCCESS, "third time", 3)
    first, second, third = run.attempts
    assert (first.state, first.error_code, first.error_message) == (
        AttemptState.FAILED,
        "DISK_FULL",
        "the disk is full",
    )
    assert (second.error_code, second.error_message) == ("HANDLER_ERROR", "KeyError: 'missing'")
    assert third.state is AttemptState.SUCCESS
    assert [attempt for attempt, _, _ in keys] == [1, 2, 3]
    assert len({token for _, token, _ in keys}) == 3
    assert {key for _, _, key in keys} == {f"{run.run_id}/1"}
    trace = await client.run_log_text(run.run_id, attempt=2)
    assert 'raise KeyError("missing")' in trace, "the log says where it broke"


async def test_failures_without_end_are_a_dead_letter(client: Client, shared_node: Node) -> None:
    def work(ctx: Context, params: Json) -> None:
        raise ValueError("x" * 5_000)

    run = await run_of(client, shared_node, work)
    assert (run.state, run.attempt_count, run.dead_letter) == (RunState.FAILED, 3, True)
    message = run.attempts[-1].error_message
    assert message is not None
    assert len(message) == 2048


async def test_a_permanent_failure_ends_the_run(client: Client, shared_node: Node) -> None:
    ran: list[int] = []

    async def work(ctx: Context, params: Json) -> None:
        ran.append(ctx.generation)
        raise PermanentError("no such customer", code="NO_CUSTOMER")

    async with serving(shared_node, work) as (pool, _):
        run = await client.run_wait(await trigger(client, pool))
        assert (run.state, run.attempt_count, run.dead_letter, ran) == (RunState.FAILED, 1, True, [1])
        assert {attempt.error_code for attempt in run.attempts} == {"NO_CUSTOMER"}
        # A retry by hand is a new invocation.
        await client.run_retry(run.run_id)
        assert (await client.run_wait(run.run_id)).generation == 2
        assert ran == [1, 2]


async def test_results_that_cannot_be_kept(client: Client, shared_node: Node) -> None:
    async def not_json(ctx: Context, params: Json) -> Json:
        return {1, 2}

    run = await run_of(client, shared_node, not_json)
    assert run.attempts[0].error_code == "INVALID_RESULT"

    async def large(ctx: Context, params: Json) -> Json:
        return "x" * 20_000

    run = await run_of(client, shared_node, large)
    assert (run.state, run.result, run.attempts[0].error_code) == (RunState.SUCCESS, None, "RESULT_TOO_LARGE")
    assert "is not kept" in await client.run_log_text(run.run_id)


async def test_what_ends_programs_ends_only_the_attempt(client: Client, shared_node: Node) -> None:
    def work(ctx: Context, params: Json) -> str:
        if ctx.attempt == 1:
            sys.exit(3)
        return "still here"

    run = await run_of(client, shared_node, work)
    assert (run.state, run.attempts[0].error_code) == (RunState.SUCCESS, "HANDLER_PANIC")


@pytest.mark.parametrize("listens", [True, False])
async def test_a_coroutine_that_takes_too_long_is_stopped(client: Client, shared_node: Node, listens: bool) -> None:
    reasons: list[StopReason | None] = []

    async def work(ctx: Context, params: Json) -> str:
        try:
            if listens:
                await ctx.canceled()
                return "in time, it thinks"
            await asyncio.Event().wait()
            return "never"
        finally:
            reasons.append(ctx.stop_reason)

    async with serving(shared_node, work) as (pool, _):
        once = RetryPolicy(max_attempts=1)
        run = await client.run_wait(await trigger(client, pool, timeout_sec=1, retry=once))
    assert (run.state, run.attempts[0].state) == (RunState.TIMEOUT, AttemptState.TIMEOUT)
    assert run.attempts[0].error_message == "stopped after 1 s"
    assert reasons == [StopReason.TIMEOUT]


async def test_a_canceled_run_stops_its_body(client: Client, shared_node: Node) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def work(ctx: Context, params: Json) -> None:
        begun.set()
        if ctx.wait_canceled(30) and ctx.is_canceled and ctx.stop_reason is StopReason.CANCELED:
            stopped.set()
        raise JobError("gave up")

    async with serving(shared_node, work) as (pool, _):
        run_id = await trigger(client, pool)
        assert await asyncio.to_thread(begun.wait, 30)
        await client.run_cancel(run_id, reason="enough")
        run = await client.run_wait(run_id)
    assert run.state is RunState.CANCELED
    assert stopped.is_set()
    assert run.attempts[0].error_message == "stopped on request (HANDLER_ERROR: gave up)"


async def test_no_more_bodies_than_slots_run_at_once(client: Client, shared_node: Node) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def work(ctx: Context, params: Json) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)  # the length of the body
        with lock:
            now -= 1

    async with serving(shared_node, work, slots=3) as (pool, handle):
        runs = [await trigger(client, pool) for _ in range(40)]
        ended = await asyncio.gather(*(client.run_wait(run) for run in runs))
        status = await handle.wait_until(lambda status: status.unacknowledged == 0)
    assert {run.state for run in ended} == {RunState.SUCCESS}
    assert {run.attempt_count for run in ended} == {1}, "none came in vain"
    assert most == 3
    assert status.ended == 40


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(shared_node: Node) -> None:
    """Longer than the lease of 10 s: heartbeats come from another thread."""

    async def work(ctx: Context, params: Json) -> str:
        time.sleep(11)  # noqa: ASYNC251 - what must do no harm
        return "blocked"

    async with (
        serving(shared_node, work) as (pool, _),
        Client.connect(shared_node.rpc, token=shared_node.token) as client,
    ):
        run = await client.run_wait(await trigger(client, pool), timeout_sec=40)
    assert (run.state, run.result, run.attempt_count) == (RunState.SUCCESS, "blocked", 1)


async def test_a_killed_node_comes_back_and_the_run_ends_once(own_node: Node) -> None:
    ran: list[int] = []
    gate = asyncio.Event()

    async def work(ctx: Context, params: Json) -> str:
        ran.append(ctx.attempt)
        ctx.log("before")
        await gate.wait()
        ctx.log("after")
        return "once"

    async with Client.connect(own_node.rpc, token=own_node.token) as client, serving(own_node, work) as (pool, handle):
        # One goes on over the restart, one ends while no node is there.
        first, second = [await trigger(client, pool) for _ in range(2)]
        await handle.wait_until(lambda status: status.running == 2)
        own_node.kill()
        await handle.wait_until(lambda status: status.registered == 0)
        gate.set()
        await handle.wait_until(lambda status: status.unacknowledged == 2)
        gate.clear()
        third_is_late = asyncio.ensure_future(client.system_info())
        own_node.start()
        await third_is_late
        for run_id in (first, second):
            run = await client.run_wait(run_id)
            assert (run.state, run.result, run.attempt_count) == (RunState.SUCCESS, "once", 1)
        await handle.wait_until(lambda status: status.unacknowledged == 0)
        assert ran == [1, 1]

        running_over = await trigger(client, pool)
        await handle.wait_until(lambda status: status.running == 1)
        own_node.kill()
        # Before the start, which blocks this loop: the executor may be registered again by its end.
        await handle.wait_until(lambda status: status.registered == 0)
        own_node.start()
        await handle.ready()
        # What an announcement leaves out is lost some 2 s after the restart: it must not be.
        until = time.monotonic() + 4
        while time.monotonic() < until:
            run = await client.run_get(running_over)
            assert (run.state, run.attempt_count) == (RunState.RUNNING, 1)
            await asyncio.sleep(0.1)
        gate.set()
        run = await client.run_wait(running_over)
        assert (run.state, run.result, run.attempt_count) == (RunState.SUCCESS, "once", 1)
        assert ran == [1, 1, 1]
        assert "after" in await client.run_log_text(running_over)


async def test_a_node_that_stands_still_for_less_than_the_lease_changes_nothing(own_node: Node) -> None:
    gate = asyncio.Event()

    async def work(ctx: Context, params: Json) -> str:
        await gate.wait()
        return "through"

    async with Client.connect(own_node.rpc, token=own_node.token) as client, serving(own_node, work) as (pool, handle):
        run_id = await trigger(client, pool)
        await handle.wait_until(lambda status: status.running == 1)
        own_node.signal(signal.SIGSTOP)
        # The heartbeat stays unanswered until the executor hangs up: that is the condition.
        await handle.wait_until(lambda status: status.registered == 0)
        gate.set()
        await handle.wait_until(lambda status: status.unacknowledged == 1)
        own_node.signal(signal.SIGCONT)
        run = await client.run_wait(run_id)
        assert (run.state, run.result, run.attempt_count) == (RunState.SUCCESS, "through", 1)


class Program:
    """`executor_program.py` as a process."""

    def __init__(self, node: Node, pool: str, notes: Path) -> None:
        program = Path(__file__).with_name("executor_program.py")
        self.notes = notes
        self.process = subprocess.Popen([sys.executable, str(program), node.rpc, node.token, pool, str(notes)])

    async def noted(self, text: str) -> bool:
        return self.notes.exists() and text in self.notes.read_text().splitlines()


async def test_a_killed_executor_is_replaced_and_the_run_is_tried_again(
    client: Client, shared_node: Node, tmp_path: Path
) -> None:
    """The lease of 10 s passes."""
    pool, notes = unique("pool"), tmp_path / "notes"
    first = Program(shared_node, pool, notes)
    try:
        run_id = await trigger(client, pool)
        await eventually(lambda: first.noted("begin 1"))
        first.process.kill()
        first.process.wait()
        second = Program(shared_node, pool, notes)
    except BaseException:
        first.process.kill()
        raise
    try:
        await eventually(lambda: second.noted("begin 2"))
        Path(f"{notes}.go").touch()
        run = await client.run_wait(run_id)
        assert (run.state, run.result) == (RunState.SUCCESS, "done")
        assert [attempt.state for attempt in run.attempts] == [AttemptState.LOST, AttemptState.SUCCESS]
        assert notes.read_text().splitlines() == ["begin 1", "begin 2", "end 2"]
    finally:
        second.process.kill()
        second.process.wait()


async def test_sigterm_lets_bodies_finish(client: Client, shared_node: Node, tmp_path: Path) -> None:
    pool, notes = unique("pool"), tmp_path / "notes"
    program = Program(shared_node, pool, notes)
    try:
        run_id = await trigger(client, pool)
        await eventually(lambda: program.noted("begin 1"))
        program.process.send_signal(signal.SIGTERM)

        async def drains() -> bool:
            return any(e.state == "DRAINING" for e in await client.executor_list() if e.pools == [pool])

        await eventually(drains)
        waits = await trigger(client, pool)
        Path(f"{notes}.go").touch()
        run = await client.run_wait(run_id)
        assert (run.state, run.attempt_count) == (RunState.SUCCESS, 1)
        assert await asyncio.to_thread(program.process.wait, PATIENCE_SEC) == 0
        assert notes.read_text().splitlines() == ["begin 1", "end 1", "drained 0 0"]
        assert (await client.run_get(waits)).state is RunState.QUEUED
    finally:
        program.process.kill()
        program.process.wait()


async def test_a_second_signal_ends_the_patience(client: Client, shared_node: Node, tmp_path: Path) -> None:
    pool, notes = unique("pool"), tmp_path / "notes"
    program = Program(shared_node, pool, notes)
    try:
        run_id = await trigger(client, pool, retry=RetryPolicy(max_attempts=1))
        await eventually(lambda: program.noted("begin 1"))
        program.process.send_signal(signal.SIGTERM)
        program.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(program.process.wait, PATIENCE_SEC) == 0

        async def handed_in() -> bool:
            return [a.error_code for a in (await client.run_get(run_id)).attempts] == ["EXECUTOR_SHUTDOWN"]

        await eventually(handed_in)
        # The executor's own end does not count: the run waits for another executor.
        assert not (await client.run_get(run_id)).state.is_final
        assert notes.read_text().splitlines() == ["begin 1", "stop 1", "drained 0 0"]
    finally:
        program.process.kill()
        program.process.wait()


async def test_a_deaf_thread_does_not_keep_the_program_from_ending(
    client: Client, shared_node: Node, tmp_path: Path
) -> None:
    pool, notes = unique("pool"), tmp_path / "notes"
    program = Program(shared_node, pool, notes)
    try:
        spec = JobSpec(unique("deaf"), Manual(), executor_selector=pool, action=Handler("sleep"), params={"sec": 600})
        await client.job_trigger((await client.job_create(spec)).job_id)
        await eventually(lambda: program.noted("asleep"))
        # Two different ones: a second SIGTERM that comes before the first was taken is none.
        program.process.send_signal(signal.SIGTERM)
        program.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(program.process.wait, PATIENCE_SEC) == 0
        assert await program.noted("drained 1 0")
    finally:
        program.process.kill()
        program.process.wait()


async def test_the_examples_work(shared_node: Node) -> None:
    examples = Path(__file__).parents[1] / "examples"

    def command(name: str) -> list[str]:
        return [sys.executable, str(examples / name), shared_node.rpc, shared_node.token]

    executor = subprocess.Popen(command("executor.py"), stdout=subprocess.PIPE, text=True)
    try:

        def run(name: str) -> str:
            return subprocess.run(
                command(name), check=True, capture_output=True, text=True, timeout=PATIENCE_SEC
            ).stdout

        told = await asyncio.to_thread(run, "caller.py")
        assert "is SUCCESS: {'greeting': 'hello, Ada'}" in told
        assert "attempt 1 of" in told
        told = await asyncio.to_thread(run, "blocking_caller.py")
        assert "counted to 20" in told
        executor.send_signal(signal.SIGTERM)
        last, _ = await asyncio.to_thread(executor.communicate, timeout=PATIENCE_SEC)
        assert "2 bodies ran; 0 results were not handed in" in last
    finally:
        executor.kill()
        executor.wait()
