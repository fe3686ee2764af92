"""An executor moves credit to the nodes where runs wait."""

import asyncio
from itertools import product

from fake_node import FakeLink, FakeNode, assignment
from nodes import PATIENCE_SEC

from campanile import Context, Executor, ExecutorHandle, Json
from campanile.executor.share import share


async def ready(
    slots: int, gate: asyncio.Semaphore, one: FakeNode, two: FakeNode
) -> tuple[ExecutorHandle, FakeLink, FakeLink]:
    """An executor of so many slots that is ready on two nodes."""
    executor = Executor(f"{one.address},{two.address}", token="token", slots=slots)

    @executor.handler("wait")
    async def wait(ctx: Context, params: Json) -> int:
        await gate.acquire()
        return 7

    handle = executor.start()
    return handle, await one.executor(), await two.executor()


async def three_turns(link: FakeLink) -> None:
    """The slot goes and comes back."""
    for _ in range(3):
        await link.until_credit(0)
        await link.until_credit(1)


async def running(handle: ExecutorHandle, count: int) -> None:
    await asyncio.wait_for(handle.wait_until(lambda s: s.running == count), PATIENCE_SEC)


async def test_credit_moves_to_the_node_where_runs_wait_until_all_slots_serve_it() -> None:
    one, two = await FakeNode.start("n1"), await FakeNode.start("n2")
    handle, busy, idle = await ready(8, asyncio.Semaphore(0), one, two)
    busy.hint(False)
    idle.hint(False)
    await busy.until_credit(4)
    await idle.until_credit(4)
    busy.hint(True)
    await idle.until_credit(1)
    await busy.until_credit(7)
    busy.assign(*(assignment(run, run, "wait") for run in range(1, 8)))
    await running(handle, 7)
    await idle.until_credit(0)
    await busy.until_credit(1)
    busy.assign(assignment(8, 8, "wait"))
    await running(handle, 8)
    await handle.kill()
    await one.stop()
    await two.stop()


async def test_moved_credit_comes_back_when_the_other_node_has_runs_too_or_is_gone() -> None:
    one, two = await FakeNode.start("n1"), await FakeNode.start("n2")
    handle, first, second = await ready(8, asyncio.Semaphore(0), one, two)
    first.hint(True)
    second.hint(False)
    await first.until_credit(7)
    await second.until_credit(1)
    second.hint(True)
    await first.until_credit(4)
    await second.until_credit(4)
    first.hint(False)
    await first.until_credit(1)
    await second.until_credit(7)
    await two.stop()
    await first.until_credit(8)
    await handle.kill()
    await one.stop()


async def test_a_node_that_gives_no_hints_keeps_its_part_of_the_credit() -> None:
    one, two = await FakeNode.start("n1"), await FakeNode.start("n2")
    handle, older, newer = await ready(1, asyncio.Semaphore(0), one, two)
    newer.hint(True)
    newer.send([2, "executor.hint", [{"waiting": "no"}]])
    # The one slot is each one's in turn.
    await asyncio.gather(three_turns(older), three_turns(newer))
    await handle.kill()
    await one.stop()
    await two.stop()


def test_all_credit_is_shared_and_never_more() -> None:
    assert [share(8, (True, False), node, 0) for node in (0, 1)] == [7, 1]
    assert [share(2, (False, True, False), node, 0) for node in range(3)] == [0, 2, 0]
    for nodes in range(1, 6):
        for wanting, free, turn in product(product((False, True), repeat=nodes), range(13), range(4)):
            given = [share(free, wanting, node, turn) for node in range(nodes)]
            assert sum(given) == free
            assert free < nodes or min(given) > 0
