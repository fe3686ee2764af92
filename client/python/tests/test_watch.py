"""Changes as they become durable: from a real node, and from one that breaks off, falls silent or overruns us."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from fake_node import FakeNode
from nodes import PATIENCE_SEC, Node, unique

import campanile
import campanile.blocking
from campanile import Client, Dropped, Executor, JobSpec, JobStep, Manual, NotFoundError, RunChange, RunState

SetLimit = Callable[[str, int], None]
CHANGE = {
    "at": 1,
    "runId": 7,
    "jobId": 1,
    "jobName": "j",
    "tenantId": "fin",
    "state": "RUNNING",
    "source": "MANUAL",
    "logicalTime": None,
    "generation": 1,
    "attemptCount": 1,
    "executorId": None,
    "nextRetryAt": None,
    "lastError": None,
}


async def states(changes: campanile.Changes[RunChange], run_id: int) -> list[RunState]:
    """Of this run, until it is final."""
    found: list[RunState] = []
    async with asyncio.timeout(PATIENCE_SEC):
        async for change in changes:
            assert not isinstance(change, Dropped)
            if change.run_id == run_id:
                found.append(change.state)
            if found and found[-1].is_final:
                break
    return found


async def test_a_run_and_a_job_are_told_through_their_lives(shared_node: Node, client: Client) -> None:
    pool = unique("pool")
    executor = Executor(shared_node.rpc, token=shared_node.token, pools=[pool])

    @executor.handler("work")
    async def work(_ctx: campanile.Context, _params: campanile.Json) -> None:
        return None

    async with await client.job_watch(labels=f"pool={pool}") as jobs, executor.start():
        spec = JobSpec(
            unique("watched"), Manual(), action=campanile.Handler("work"), executor_selector=pool, labels={"pool": pool}
        )
        created = await client.job_create(spec)
        first = await anext(jobs)
        assert not isinstance(first, Dropped)
        assert (first.change, first.job_id, first.job_name) == (JobStep.CREATED, created.job_id, spec.name)
        runs = await client.run_watch(job_id=created.job_id)
        run = await client.job_trigger(created.job_id)
        expected = [RunState.QUEUED, RunState.RUNNING, RunState.SUCCESS]
        assert await states(runs, run.run_id) == expected
        runs.close()
        # One that is over: its state, and the end.
        one = await client.run_watch(run_id=run.run_id)
        told = [change async for change in one]
        assert [change.state for change in told if isinstance(change, RunChange)] == [RunState.SUCCESS]
        # Where another watch stood.
        later = await client.run_watch(job_id=created.job_id, after=runs.cursor)
        again = await client.job_trigger(created.job_id)
        assert await states(later, again.run_id) == expected
    with pytest.raises(NotFoundError):
        await client.run_watch(run_id=4096)


def test_without_asyncio(shared_node: Node) -> None:
    with campanile.blocking.Client(shared_node.rpc, token=shared_node.token) as client:
        job = client.job_create(JobSpec(unique("blocking"), Manual())).job_id
        changes = client.run_watch(job_id=job)
        done = threading.Thread(target=client.job_trigger, args=(job,))
        done.start()
        change = next(changes)
        assert isinstance(change, RunChange)
        assert change.state is RunState.QUEUED
        done.join()


async def test_a_watch_goes_on_over_the_next_connection(fake: FakeNode) -> None:
    connecting = asyncio.create_task(_connected(fake))
    link = await fake.accept()
    client = await connecting
    watching = asyncio.create_task(client.run_watch(tenant_id="fin"))
    ident, params = await link.request("run.watch")
    assert params == {"tenantId": "fin"}
    # In one go with the answer.
    link.answer(ident, {"watchId": 1, "cursor": "a-1"})
    link.send([2, "run.changed", [{"watchId": 1, "items": [CHANGE], "cursor": "a-2"}]])
    changes = await watching
    change = await anext(changes)
    assert not isinstance(change, Dropped)
    assert (change.run_id, changes.cursor) == (7, "a-2")
    link.close()
    coming = asyncio.create_task(anext(changes))
    link = await fake.accept()
    ident, params = await link.request("run.watch")
    assert params == {"tenantId": "fin", "after": "a-2"}
    link.answer(ident, {"watchId": 9, "cursor": "a-2"})
    link.send([2, "run.changed", [{"watchId": 9, "items": [CHANGE], "cursor": "a-5", "dropped": 3}]])
    assert await coming == Dropped(3)
    assert isinstance(await anext(changes), RunChange)
    # A node that restarts says so; one that has told everything, too.
    link.send([2, "watch.ended", [{"watchId": 9, "code": "503_NOT_READY", "message": "restarting"}]])
    coming = asyncio.create_task(anext(changes))
    await link.request("watch.stop")
    ident, params = await link.request("run.watch")
    assert params["after"] == "a-5"
    link.answer(ident, {"watchId": 10, "cursor": "a-5"})
    link.send([2, "watch.ended", [{"watchId": 10}]])
    with pytest.raises(StopAsyncIteration):
        await coming
    await client.close()


async def test_one_who_does_not_keep_up_begins_again_where_it_was(fake: FakeNode, limit: SetLimit) -> None:
    limit("CHANGES_WAITING", 2)
    connecting = asyncio.create_task(_connected(fake))
    link = await fake.accept()
    client = await connecting
    watching = asyncio.create_task(client.run_watch())
    ident, _ = await link.request("run.watch")
    link.answer(ident, {"watchId": 1, "cursor": "a-0"})
    changes = await watching
    for number in range(1, 5):
        link.send([2, "run.changed", [{"watchId": 1, "items": [CHANGE], "cursor": f"a-{number}"}]])
    _, stopped = await link.request("watch.stop")
    assert stopped == {"watchId": 1}
    for _ in range(2):
        assert isinstance(await anext(changes), RunChange)
    coming = asyncio.create_task(anext(changes))
    ident, params = await link.request("run.watch")
    assert params == {"after": "a-2"}
    link.answer(ident, {"watchId": 2, "cursor": "a-2"})
    link.send([2, "run.changed", [{"watchId": 2, "items": [CHANGE], "cursor": "a-3"}]])
    assert isinstance(await coming, RunChange)
    await client.close()


async def test_a_silent_node_is_asked_anew(fake: FakeNode, limit: SetLimit) -> None:
    limit("WATCH_SILENCE_MS", 50)
    connecting = asyncio.create_task(_connected(fake))
    link = await fake.accept()
    client = await connecting
    watching = asyncio.create_task(client.run_watch())
    ident, _ = await link.request("run.watch")
    link.answer(ident, {"watchId": 1, "cursor": "a-0"})
    changes = await watching
    coming = asyncio.create_task(anext(changes))
    await link.request("watch.stop")
    ident, _ = await link.request("run.watch")
    link.answer(ident, {"watchId": 2, "cursor": "a-0"})
    link.send([2, "run.changed", [{"watchId": 2, "items": [CHANGE], "cursor": "a-1"}]])
    assert isinstance(await coming, RunChange)
    await client.close()


async def test_a_wait_is_one_question_and_no_polling(fake: FakeNode) -> None:
    connecting = asyncio.create_task(_connected(fake))
    link = await fake.accept()
    client = await connecting
    waiting = asyncio.create_task(client.run_wait(7))
    run = {
        "runId": 7,
        "jobId": 1,
        "tenantId": "fin",
        "state": "RUNNING",
        "source": "MANUAL",
        "generation": 1,
        "attemptCount": 1,
        "createdAt": 1,
        "deadLetter": False,
        "attempts": [],
    }
    ident, params = await link.request("run.get")
    assert params == {"runId": 7, "waitMs": 0}
    link.answer(ident, run)
    ident, params = await link.request("run.get")
    assert params == {"runId": 7, "waitMs": campanile.limits.WAIT_QUESTION_MS}
    link.answer(ident, {**run, "state": "SUCCESS"})
    assert (await waiting).state is RunState.SUCCESS
    await client.close()


async def _connected(fake: FakeNode) -> Client:
    return await Client.connect(fake.address, token="token")
