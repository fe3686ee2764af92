"""An executor follows the nodes of a cluster, of which a node tells it."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from fake_node import FakeNode, assignment
from nodes import PATIENCE_SEC

from campanile import Context, Executor, ExecutorHandle, Json
from campanile.executor.assignment import SUCCESS
from campanile.executor.nodes import Meeting, NodeKey, Nodes


@pytest.fixture
async def nodes() -> AsyncIterator[list[FakeNode]]:
    nodes = [await FakeNode.start(name) for name in ("n1", "n2", "n3")]
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.stop()


def start(address: str, gate: asyncio.Semaphore, slots: int = 4) -> ExecutorHandle:
    executor = Executor(address, token="token", slots=slots)

    @executor.handler("wait")
    async def wait(ctx: Context, params: Json) -> int:
        await gate.acquire()
        return 7

    return executor.start()


async def registered(handle: ExecutorHandle, count: int) -> None:
    status = await asyncio.wait_for(handle.wait_until(lambda s: s.registered == count), PATIENCE_SEC)
    assert status.registered == count


async def test_it_connects_to_nodes_that_it_is_told_of_and_lets_go_of_those_that_left(nodes: list[FakeNode]) -> None:
    one, two, three = nodes
    gate = asyncio.Semaphore(0)
    # The name of the machine and its address: one node all the same.
    handle = start("localhost:" + one.address.rpartition(":")[2], gate)
    first = await one.executor()
    first.tell_of(n1=one.address, n2=two.address)
    second = await two.executor(4)
    await registered(handle, 2)
    assert handle.status.last_error is None, "nobody was connected to twice"
    second.assign(assignment(1, 1, "wait", e=4))
    await asyncio.wait_for(handle.wait_until(lambda s: s.running == 1), PATIENCE_SEC)

    # It leaves, and what came over its connection is told to the other one.
    first.tell_of(n1=one.address)
    await two.stop()
    gate.release()
    await registered(handle, 1)
    [ended] = await asyncio.wait_for(first.finish("d"), PATIENCE_SEC)
    assert (ended["r"], ended["s"]) == (1, SUCCESS)

    # The next one takes its place.
    first.tell_of(n1=one.address, n3=three.address)
    await three.executor(5)
    await registered(handle, 2)
    await handle.kill()


async def test_an_address_that_cannot_be_reached_changes_nothing_for_one_that_can(fake: FakeNode) -> None:
    gate = asyncio.Semaphore(1)
    handle = start(fake.address, gate)
    link = await fake.executor()
    # Bound and never listened on: nobody else gets the port.
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{nobody.getsockname()[1]}"
        # The node does not know how it is reached: not even its own address is right.
        link.tell_of(fake=nowhere, n2=nowhere)
        link.assign(assignment(1, 1, "wait"))
        [ended] = await link.finish("d")
        assert ended["s"] == SUCCESS
        for _ in range(3):
            # All of them: nobody else takes any.
            assert (await link.next("executor.credit")).params["slots"] == 4
        assert (handle.status.registered, handle.status.last_error) == (1, None), "quietly"
    await handle.kill()


async def test_an_address_that_leads_to_another_node_than_was_told_is_not_registered_with(
    nodes: list[FakeNode],
) -> None:
    one, other, _ = nodes
    handle = start(one.address, asyncio.Semaphore(0))
    first = await one.executor()
    first.tell_of(n5=other.address)
    stranger = await other.accept()
    assert await stranger.hear() is None, "it hangs up"
    assert handle.status.registered == 1
    await handle.kill()


async def test_two_addresses_of_one_node_do_not_take_its_session_from_each_other(fake: FakeNode) -> None:
    handle = start(f"{fake.address},localhost:{fake.address.rpartition(':')[2]}", asyncio.Semaphore(0))
    used = await fake.executor()
    await registered(handle, 1)
    # The other one is hung up on, each time that it comes.
    for _ in range(2):
        assert await (await fake.accept()).hear() is None
    assert (await used.next("executor.credit")).params["slots"] == 4
    await handle.kill()


async def test_one_that_does_not_follow_stays_with_what_it_was_given(nodes: list[FakeNode]) -> None:
    one, two, _ = nodes
    executor = Executor(one.address, token="token", follow=False)
    executor.any_handler(lambda ctx, params: 7)
    handle = executor.start()
    first = await one.executor()
    first.tell_of(n1=one.address, n2=two.address)
    # What is told before is heard before.
    first.assign(assignment(1, 1, "any"))
    [ended] = await first.finish("d")
    assert ended["s"] == SUCCESS
    assert (two.connections, handle.status.registered) == (0, 1)
    await handle.kill()


async def test_a_single_slot_serves_all_nodes(nodes: list[FakeNode]) -> None:
    handle = start(nodes[0].address, asyncio.Semaphore(0), slots=1)
    links = [await nodes[0].executor()]
    links[0].tell_of(**{node.name: node.address for node in nodes})
    links += [await node.executor() for node in nodes[1:]]
    await registered(handle, 3)

    waiting = set(range(3))

    async def until_all_had_credit(at: int) -> None:
        while waiting:
            if (await links[at].next("executor.credit")).params["slots"]:
                waiting.discard(at)

    async with asyncio.timeout(30), asyncio.TaskGroup() as each:
        for at in range(3):
            each.create_task(until_all_had_credit(at))
    await handle.kill()


async def test_messages_of_members_that_cannot_be_read_change_nothing(fake: FakeNode) -> None:
    handle = start(fake.address, asyncio.Semaphore(0))
    link = await fake.executor()
    for nodes in (None, 7, [7, {"node": 1}, {"node": "x"}, {"address": "y:1"}]):
        link.send([2, "executor.members", [{"nodes": nodes}]])
    assert (await link.next("executor.credit")).params["slots"] == 4
    assert handle.status.registered == 1
    await handle.kill()


N1, N2, N3 = (NodeKey(1, name) for name in ("n1", "n2", "n3"))


def told(**nodes: str) -> dict[str, object]:
    return {"nodes": [{"node": node, "address": address} for node, address in nodes.items()]}


def test_told_nodes_are_dropped_when_they_left_and_are_down() -> None:
    nodes = Nodes()
    one = nodes.add("tls://one:1", None, 0)
    assert nodes.up(one, N1) == (Meeting.USE, None)
    nodes.told(one, told(n1="10.0.0.1:1", n2="10.0.0.2:1"))
    assert nodes.unmet(0) == [(N2, "tls://10.0.0.2:1")], "n1 is reached by the name that was given"
    two = nodes.add("tls://10.0.0.2:1", N2, 0)
    assert nodes.unmet(0) == [], "once"
    assert nodes.up(two, N2) == (Meeting.USE, None)
    # It left the list and is still there: it may still have something to say.
    nodes.told(one, told(n1="10.0.0.1:1"))
    assert nodes.spare() == []
    nodes.down(two, 5)
    assert nodes.spare() == [two]
    nodes.give_up(two)
    # The one that was given stays whatever the lists say.
    nodes.down(one, 10)
    assert nodes.spare() == []


def test_the_address_that_was_given_wins_whichever_comes_first() -> None:
    nodes = Nodes()
    one, two = nodes.add("one:1", None, 0), nodes.add("two:1", None, 0)
    nodes.up(one, N1)
    nodes.told(one, told(n1="10.0.0.1:1", n2="10.0.0.2:1"))
    assert nodes.unmet(0) == [], "two:1 may lead to n2"
    nodes.down(two, 1)
    assert nodes.unmet(1) == [(N2, "10.0.0.2:1")], "it does not"
    other = nodes.add("10.0.0.2:1", N2, 1)
    assert nodes.up(other, N2) == (Meeting.USE, None)
    assert nodes.up(two, N2) == (Meeting.REPLACE, other)
    nodes.give_up(other)
    # It breaks: waited for at first, then the other address is tried too, in vain.
    nodes.down(two, 10)
    assert nodes.unmet(1009) == []
    assert nodes.unmet(1010) == [(N2, "10.0.0.2:1")]
    other = nodes.add("10.0.0.2:1", N2, 2000)
    nodes.down(other, 2001)
    assert nodes.spare() == [], "tried again and again, since nothing else leads to it"
    assert nodes.up(two, N2) == (Meeting.USE, None)
    assert nodes.spare() == [other]
    assert nodes.up(other, N2) == (Meeting.TURN_AWAY, None)


def test_every_node_that_is_there_may_tell_and_one_that_is_gone_only_when_it_is_the_only_one() -> None:
    nodes = Nodes()
    one, two = nodes.add("one:1", None, 0), nodes.add("two:1", None, 0)
    nodes.up(one, N1)
    nodes.up(two, N2)
    nodes.told(one, told(n1="one:1", n3="three:1"))
    nodes.told(two, told(n2="two:1", n4="four:1"))
    three, four = (N3, "three:1"), (NodeKey(1, "n4"), "four:1")
    assert nodes.unmet(0) == [three, four]
    nodes.down(one, 1)
    assert nodes.unmet(1) == [four]
    nodes.down(two, 2)
    assert nodes.unmet(2) == [three, four], "better than nobody"
