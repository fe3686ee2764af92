"""What an executor refuses, and what it does when connections break: with a fake node that says what the real one rarely does."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fake_node import CLUSTER, FakeNode, assignment
from nodes import PATIENCE_SEC

from campanile import Context, Executor, ExecutorHandle, JobError, Json, StopReason
from campanile.clock import boot_ms
from campanile.executor import failure
from campanile.executor.assignment import CANCELED as WAS_CANCELED
from campanile.executor.assignment import FAILED, NOT_STARTED, SUCCESS, TIMEOUT, Assignment, Held
from campanile.executor.fence import Fence, Refusal

SetLimit = Callable[[str, int], None]


class Bodies:
    """Handlers that wait to be let go."""

    def __init__(self, fake: FakeNode, slots: int = 4, grace_sec: float = 0.05) -> None:
        self.begun: list[int] = []
        self.gate = asyncio.Semaphore(0)
        self.executor = Executor(fake.address, token="token", slots=slots, executor_id="x", grace_sec=grace_sec)
        self.executor.handler("wait")(self.wait)
        self.executor.handler("stubborn")(self.stubborn)

    async def wait(self, ctx: Context, params: Json) -> int:
        self.begun.append(ctx.run_id)
        ctx.log("begun")
        gate = asyncio.ensure_future(self.gate.acquire())
        told = asyncio.ensure_future(ctx.canceled())
        await asyncio.wait({gate, told}, return_when=asyncio.FIRST_COMPLETED)
        if not gate.done():
            gate.cancel()
            raise JobError("told to stop", code="STOPPED")
        told.cancel()
        return 7

    async def stubborn(self, ctx: Context, params: Json) -> None:
        """Does not look at `ctx`, and catches the first cancellation."""
        self.begun.append(ctx.run_id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()


async def running(handle: ExecutorHandle, count: int) -> None:
    status = await asyncio.wait_for(handle.wait_until(lambda s: s.running == count), PATIENCE_SEC)
    assert status.running == count


async def refused(link: Any, outcome: str = "d") -> Any:
    [ended] = await link.finish(outcome)
    assert ended["s"] == NOT_STARTED
    return ended["c"]


async def test_it_registers_and_gives_credit_again_and_again(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    began_ms = boot_ms()
    handle = bodies.executor.start()
    link = await fake.accept()
    ident, register = await link.request("executor.register")
    assert register["session"] < 1 << 53
    assert register == {
        "executorId": "x",
        "session": register["session"],
        "pools": ["default"],
        "slots": 4,
        "handlers": ["stubborn", "wait"],
        "anyHandler": False,
        "commands": False,
        "labels": {},
        "cpu": 0.0,
        "memoryMb": 0,
        "storageMb": 0,
        "stopGraceSec": 0.05,
    }
    link.answer(ident, {"clusterId": CLUSTER, "epochs": []})
    stamps = [(await link.next("executor.credit")).params["stampMs"] for _ in range(4)]
    assert link.credit == {"stampMs": stamps[-1], "slots": 4, "received": 0, "load": 0.0}
    # How soon is tested with given times, in `test_executor_upstream.py`: here a busy machine may be late.
    for earlier, later in itertools.pairwise([began_ms, *stamps, boot_ms()]):
        assert earlier <= later
    await handle.kill()


async def test_what_must_not_start_is_refused(fake: FakeNode) -> None:
    bodies = Bodies(fake, slots=2)
    handle = bodies.executor.start()
    link = await fake.executor(epoch=3)
    stamp = link.credit["stampMs"]
    link.assign(assignment(1, 1, "wait", cs=stamp - 2_500))
    assert await refused(link) == failure.CREDIT_VOID
    link.assign(assignment(1, 1, "wait", e=2))
    assert await refused(link) == failure.OLD_EPOCH
    link.assign(assignment(1, 5, "wait"))
    await running(handle, 1)
    await link.next("executor.log")
    for token in (4, 1):
        link.assign(assignment(1, token, "wait"))
        assert await refused(link) == failure.OLD_TOKEN
    # The same one again, while it runs: ignored, and it runs once.
    link.assign(assignment(1, 5, "wait"))
    link.assign(assignment(2, 1, "wait"))
    await running(handle, 2)
    await link.next("executor.log")
    link.assign(assignment(3, 1, "wait"))
    assert await refused(link) == failure.NO_SLOT
    assert bodies.begun == [1, 2]
    assert link.credit["received"] == 8
    assert link.credit["slots"] == 0
    await handle.kill()


async def test_what_it_cannot_read_or_run_is_told(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait", o=99), {"no": "names"})
    assert await refused(link) == failure.UNKNOWN_ASSIGNMENT
    for run, action in ((2, {"kind": "HANDLER", "name": "other"}), (3, {"kind": "COMMAND", "command": ["x"]})):
        link.assign(assignment(run, 1, "", a=action))
        [ended] = await link.finish("d")
        assert (ended["s"], ended["c"]) == (FAILED, failure.NO_HANDLER)
    await handle.kill()


def test_the_fence_remembers_as_long_as_it_must() -> None:
    fence = Fence()
    fence.learn(CLUSTER, [(1, 3)])

    def admit(run: int, token: int, now_ms: int, epoch: int = 3, credit_ms: int | None = None) -> Refusal | bool:
        a = assignment(run, token, "x", e=epoch, cs=now_ms if credit_ms is None else credit_ms)
        return fence.admit(Assignment.read(a), now_ms)

    assert admit(1, 2, 100_000) is False
    assert admit(1, 2, 101_999) == Refusal(failure.OLD_TOKEN, "a newer attempt of this run was seen")
    # As long as a credit that was given before it can be used.
    for later in (102_000, 104_001, 104_100):
        admit(99, later, later)
    assert isinstance(admit(1, 2, 104_101, credit_ms=102_101), Refusal)
    assert admit(1, 3, 104_200) is False
    assert admit(2, 1, 104_200, epoch=4) is True, "a new owner wants to be told what is held"
    assert admit(3, 1, 104_200, epoch=3) == Refusal(failure.OLD_EPOCH, "the shard has a newer owner")
    assert isinstance(admit(4, 1, 104_200, epoch=4, credit_ms=102_199), Refusal)
    assert admit(4, 1, 104_200, epoch=4, credit_ms=102_200) is False


async def test_a_result_is_handed_in_until_a_node_calls_it_durable(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    handle = bodies.executor.start()
    link = await fake.executor()
    assert link.announced == []
    link.assign(assignment(1, 1, "wait"), assignment(2, 1, "wait"))
    await running(handle, 2)
    link.close()

    # Both run on without a connection, and one ends.
    bodies.gate.release()
    await handle.wait_until(lambda status: status.unacknowledged == 1)
    link = await fake.executor()
    assert link.announced == [(1, 1), (2, 1)], "all that it holds, run or ended"
    while (said := await link.hear()) is not None and said.method != "executor.finish":
        pass
    assert said is not None
    assert said.ident is not None
    link.answer(said.ident, {"outcomes": ["a"]})
    first = said.params["items"]
    again = await link.finish("d")
    assert again == first
    assert (again[0]["s"], again[0]["w"]) == (SUCCESS, b"7")
    await handle.wait_until(lambda status: status.unacknowledged == 0)

    # A result on its way when the connection breaks is sent over the next one.
    bodies.gate.release()
    _, lost = await link.request("executor.finish")
    link.close()
    link = await fake.executor()
    assert len(link.announced) == 1
    assert await link.finish("s") == lost["items"]
    status = await handle.wait_until(lambda status: status.unacknowledged == 0)
    assert (status.running, status.ended) == (0, 2)
    assert sorted(bodies.begun) == [1, 2]
    await handle.kill()


async def test_what_the_announcement_is_answered_with_is_stopped(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    handle = bodies.executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait"), assignment(2, 1, "wait"))
    await running(handle, 2)
    link.close()
    link = await fake.executor(stop=[Held(2, 1, 1).write()])
    ended = await _finish_after_logs(link)
    assert [(item["r"], item["s"], item["c"]) for item in ended] == [(2, WAS_CANCELED, failure.CANCELED)]
    await running(handle, 1)
    await handle.kill()


async def _finish_after_logs(link: Any) -> list[Any]:
    while True:
        said = await link.hear()
        assert said is not None
        if said.method == "executor.finish":
            link.answer(said.ident, {"outcomes": ["d"] * len(said.params["items"])})
            return list(said.params["items"])
        if said.ident is not None:
            link.answer(said.ident, {})


async def test_a_new_epoch_is_told_what_is_held(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.executor(epoch=3)
    link.assign(assignment(1, 1, "wait", e=4))
    while (said := await link.hear()) is not None and said.method != "executor.announce":
        pass
    assert said is not None
    assert said.params == {"held": [Held(1, 1, 1).write()], "more": False}
    await handle.kill()


async def test_a_node_that_takes_shards_over_is_told_what_is_held_and_honoured(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.executor(epoch=3)
    link.assign(assignment(1, 1, "wait"))
    link.send([2, "executor.epochs", [{"clusterId": CLUSTER, "epochs": [[1, 5], [2, 1]]}]])
    while (said := await link.hear()) is not None and said.method != "executor.announce":
        pass
    assert said is not None
    assert said.ident is not None
    assert said.params == {"held": [Held(1, 1, 1).write()], "more": False}
    link.answer(said.ident, {"stop": []})
    # The owner of before speaks too late; the present one is heard.
    link.assign(assignment(2, 1, "wait", e=4), assignment(3, 1, "wait", e=5))
    results = await _finish_after_logs(link)
    assert [(result["r"], result["s"], result["c"]) for result in results] == [(2, 6, "OLD_EPOCH")]
    await handle.kill()


async def test_a_stop_is_followed_and_the_first_reason_stands(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait", to=1), assignment(2, 1, "wait"), assignment(3, 1, "stubborn"))
    await running(handle, 3)
    link.send([2, "executor.stop", [{"items": [Held(2, 1, 1).write(), Held(9, 1, 1).write(), "nonsense"]}]])
    by_run = {}
    by_run.update({item["r"]: item for item in await _finish_after_logs(link)})
    by_run.update({item["r"]: item for item in await _finish_after_logs(link)})
    assert (by_run[2]["s"], by_run[2]["c"]) == (WAS_CANCELED, failure.CANCELED)
    assert "STOPPED: told to stop" in by_run[2]["m"]
    assert (by_run[1]["s"], by_run[1]["c"]) == (TIMEOUT, failure.TIMEOUT)
    assert by_run[1]["m"].startswith("stopped after 1 s")
    # One that catches the cancellation keeps its slot until it is gone, and is canceled again.
    link.send([2, "executor.stop", [{"items": [Held(3, 1, 1).write()]}]])
    [ended] = await _finish_after_logs(link)
    assert (ended["r"], ended["s"]) == (3, WAS_CANCELED)
    await handle.kill()


async def test_a_thread_keeps_its_slot_until_it_returns(fake: FakeNode) -> None:
    executor = Executor(fake.address, token="token", slots=1, grace_sec=0.01)
    go, told = threading.Event(), threading.Event()

    @executor.handler("deaf")
    def deaf(ctx: Context, params: Json) -> str:
        if ctx.wait_canceled(20) and ctx.stop_reason is StopReason.TIMEOUT:
            told.set()
        go.wait(20)
        return "late"

    handle = executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "deaf", to=0))
    assert await asyncio.to_thread(told.wait, PATIENCE_SEC)
    link.assign(assignment(2, 1, "deaf"))
    assert await refused(link) == failure.NO_SLOT
    await running(handle, 1)
    # Long after its grace: no slot is free, and nothing is handed in.
    for _ in range(3):
        credit = await link.next("executor.credit")
        assert credit.params["slots"] == 0
    go.set()
    [ended] = await link.finish("d")
    assert (ended["r"], ended["s"], ended["c"]) == (1, TIMEOUT, failure.TIMEOUT)
    await handle.kill()


async def test_bodies_that_must_not_outlive_their_lease_stop_while_the_node_is_silent(
    fake: FakeNode, limit: SetLimit
) -> None:
    """The real limits, five times faster."""
    limit("LEASE_MS", 2_000)
    limit("STOP_MARGIN_MS", 100)
    limit("HEARTBEAT_MS", 400)
    handle = Bodies(fake).executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait", lc=1), assignment(2, 1, "wait"))
    await running(handle, 2)
    # From now on the node hears nothing and says nothing. After how long it must be is tested with given times, in
    # `test_executor_upstream.py`: here a busy machine may be late.
    await running(handle, 1)
    link.close()
    link = await fake.executor()
    [ended] = await _finish_after_logs(link)
    assert (ended["r"], ended["s"], ended["c"]) == (1, FAILED, failure.LOST_CONTACT)
    await handle.kill()


async def test_a_node_that_leaves_heartbeats_unanswered_is_connected_anew(fake: FakeNode, limit: SetLimit) -> None:
    limit("HEARTBEAT_ANSWER_MS", 1_000)
    limit("HEARTBEAT_MS", 100)
    handle = Bodies(fake).executor.start()
    await fake.executor()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait"))
    await running(handle, 1)
    await handle.kill()


async def test_an_answered_heartbeat_keeps_the_connection(fake: FakeNode, limit: SetLimit) -> None:
    limit("HEARTBEAT_MS", 50)
    handle = Bodies(fake).executor.start()
    link = await fake.executor()
    for _ in range(30):
        ident, beat = await link.request("executor.heartbeat")
        assert beat == {"running": 0}
        link.answer(ident, {})
    assert fake.connections == 1
    await handle.kill()


async def test_a_refused_registration_is_told_and_tried_again(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.accept()
    ident, register = await link.request("executor.register")
    link.fail(ident, "403_FORBIDDEN")
    link = await fake.accept()
    _, again = await link.request("executor.register")
    assert again == register, "with the same session"
    status = await handle.wait_until(lambda status: status.last_error is not None)
    assert "403_FORBIDDEN" in str(status.last_error)
    await handle.kill()


async def test_nonsense_costs_the_connection_and_no_run(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    handle = bodies.executor.start()
    for n, data in enumerate((b"\xc1", b"GET / HTTP/1.1\r\n", b"\x91" * 5000, b"\xdd\xff\xff\xff\xff")):
        link = await fake.executor()
        assert [run for run, _ in link.announced] == list(range(1, n + 1))
        link.assign(assignment(n + 1, 1, "wait"))
        await running(handle, n + 1)
        link.writer.write(data)
    await fake.executor()
    assert bodies.begun == [1, 2, 3, 4]
    await handle.kill()


async def test_logs_go_before_the_result_in_order_and_say_what_was_dropped(fake: FakeNode) -> None:
    executor = Executor(fake.address, token="token")

    @executor.handler("loud")
    def loud(ctx: Context, params: Json) -> None:
        for n in range(40_000):
            ctx.log(f"{n:09}")

    handle = executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "loud"))
    log = b""
    while True:
        said = await link.hear()
        assert said is not None
        if said.method == "executor.log":
            assert len(said.params["data"]) <= 32 << 10
            assert (said.params["run"], said.params["token"], said.params["attempt"]) == (1, 1, 1)
            log += said.params["data"]
            if said.ident is not None:
                link.answer(said.ident, {})
        elif said.method == "executor.finish":
            break
    lines, _, note = log.decode().partition("\n[")
    numbers = [int(line) for line in lines.split()]
    assert numbers == sorted(set(numbers))
    dropped = int(note.split()[0]) if note else 0
    assert len(numbers) * 10 + dropped == 400_000
    await handle.kill()


async def test_a_drain_lets_bodies_finish_and_takes_nothing_new(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    handle = bodies.executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait"))
    await running(handle, 1)
    await link.next("executor.log")
    drained = asyncio.ensure_future(handle.drain(20))
    await link.next("executor.drain")
    link.assign(assignment(2, 1, "wait"))
    assert await refused(link) == failure.DRAINING
    assert link.credit["slots"] == 0
    bodies.gate.release()
    [ended] = await link.finish("d")
    assert (ended["r"], ended["s"]) == (1, SUCCESS)
    status = await drained
    assert (status.running, status.unacknowledged, status.ended) == (0, 0, 1)
    assert await link.hear() is None


async def test_a_drain_that_takes_too_long_stops_bodies_and_hands_in_why(fake: FakeNode) -> None:
    handle = Bodies(fake).executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait"), assignment(2, 1, "stubborn"))
    await running(handle, 2)
    await link.next("executor.log")
    drained = asyncio.ensure_future(handle.drain(0.2))
    await link.next("executor.drain")
    ended = await link.finish("d")
    ended += await link.finish("d")
    assert {(item["s"], item["c"]) for item in ended} == {(FAILED, failure.EXECUTOR_SHUTDOWN)}
    assert (await drained).running == 0


async def test_a_killed_executor_ends_bodies_and_connections(fake: FakeNode) -> None:
    bodies = Bodies(fake)
    handle = bodies.executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "wait"))
    await running(handle, 1)
    await handle.kill()
    while (said := await link.hear()) is not None:
        assert said.method != "executor.finish"


async def test_a_result_that_is_too_large_is_not_sent(fake: FakeNode) -> None:
    """A frame would be lost over it."""
    executor = Executor(fake.address, token="token")

    @executor.handler("large")
    def large(ctx: Context, params: Json) -> Json:
        return "x" * params["bytes"]

    handle = executor.start()
    link = await fake.executor()
    link.assign(assignment(1, 1, "large", p=b'{"bytes":16382}'))
    [ended] = await link.finish("d")
    assert len(ended["w"]) == 16 << 10
    link.assign(assignment(2, 1, "large", p=b'{"bytes":16383}'))
    [ended] = await _finish_after_logs(link)
    assert (ended["s"], ended["c"]) == (SUCCESS, failure.RESULT_TOO_LARGE)
    assert "w" not in ended
    await handle.kill()


def test_wrong_settings_are_told_at_once() -> None:
    refused: list[dict[str, Any]] = [{"slots": 0}, {"executor_id": ""}, {"executor_id": "x" * 129}, {"pools": []}]
    for wrong in refused:
        with pytest.raises(ValueError, match="slots|id|pool"):
            Executor("127.0.0.1:1", token="t", **wrong)
    with pytest.raises(ValueError, match="no node"):
        Executor(" , ", token="t")
    executor = Executor("127.0.0.1:1", token="t")
    executor.handler("a")(print)
    with pytest.raises(ValueError, match="already"):
        executor.handler("a")(print)


async def test_an_executor_without_handlers_does_not_start() -> None:
    with pytest.raises(ValueError, match="nothing it could run"):
        Executor("127.0.0.1:1", token="t").start()
