"""Connections that break, nodes that say nonsense or nothing, and what is sent again."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import msgpack
import pytest
from fake_node import WELCOME, FakeLink, FakeNode
from nodes import Node, eventually, unique

import campanile
from campanile import Client, JobSpec, Manual, RunState
from campanile.client.calls import Calls
from campanile.methods import METHODS
from campanile.wire import request

SetLimit = Callable[[str, int], None]
JOB = {"jobId": 7, "status": "ENABLED", "nextFireAt": None}


async def connected(fake: FakeNode, timeout_sec: float = 30.0) -> tuple[Client, FakeLink]:
    connecting = asyncio.ensure_future(_connect(fake, timeout_sec))
    link = await fake.accept()
    return await connecting, link


async def _connect(fake: FakeNode, timeout_sec: float) -> Client:
    return await Client.connect(fake.address, token="token", timeout_sec=timeout_sec)


def test_what_a_call_says_beside_its_params_is_a_second_map() -> None:
    alone = msgpack.unpackb(request(7, "job.trigger", {"jobId": 1}))
    assert alone == [0, 7, "job.trigger", [{"jobId": 1}]]
    traced = msgpack.unpackb(request(7, "job.trigger", {"jobId": 1}, {"traceparent": "t"}))
    assert traced == [0, 7, "job.trigger", [{"jobId": 1}, {"traceparent": "t"}]]


async def test_a_thousand_calls_are_under_way_at_once(fake: FakeNode) -> None:
    """The fake node answers none before it has heard all, and the last one first."""
    client, link = await connected(fake)
    async with client:
        calls = [asyncio.ensure_future(client.call("run.get", {"runId": n})) for n in range(1000)]
        heard = [await link.request("run.get") for _ in calls]
        for ident, params in reversed(heard):
            link.answer(ident, {"echo": params["runId"]})
        assert [(await call)["echo"] for call in calls] == list(range(1000))
        assert fake.connections == 1


async def test_no_more_than_the_limit_are_under_way(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        calls = [asyncio.ensure_future(client.call("run.get", {"runId": n})) for n in range(1100)]
        heard = [await link.request("run.get") for _ in range(1024)]
        with pytest.raises(asyncio.TimeoutError):
            # A pause in which nothing may come: there is no condition to wait for.
            await asyncio.wait_for(link.hear(), 0.2)
        for ident, _ in heard:
            link.answer(ident, {})
        for _ in range(1100 - 1024):
            ident, _ = await link.request("run.get")
            link.answer(ident, {})
        await asyncio.gather(*calls)


async def test_a_call_that_is_safe_to_repeat_survives_the_connection(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        repeated: list[tuple[str, dict[str, Any]]] = [
            ("run.get", {"runId": 1}),
            ("job.create", {"name": "a", "idempotencyKey": "k"}),
            ("job.trigger", {"jobId": 1, "manualRunId": "m"}),
        ]
        for call, params in repeated:
            asked = asyncio.ensure_future(client.call(call, params))
            await link.request(call)
            link.close()
            link = await fake.accept()
            ident, again = await link.request(call)
            assert again == params
            link.answer(ident, JOB)
            assert await asked == JOB


async def test_a_call_that_is_not_is_sent_once(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        once: list[tuple[str, dict[str, Any]]] = [("job.create", {"name": "a"}), ("run.cancel", {"runId": 1})]
        for n, (method, params) in enumerate(once):
            asked = asyncio.ensure_future(client.call(method, params))
            await link.request(method)
            link.close()
            with pytest.raises(campanile.ConnectionLostError) as lost:
                await asked
            assert lost.value.outcome_unknown
            assert lost.value.advice
            link = await fake.accept()
            # The connection is used again, and what comes first over it is not that call.
            asked = asyncio.ensure_future(client.call("system.info"))
            ident, _ = await link.request("system.info")
            link.answer(ident, {"n": n})
            assert await asked == {"n": n}


async def test_a_pause_tells_which_shards_do_not_hold_it_yet(fake: FakeNode) -> None:
    client, link = await connected(fake)
    calls: dict[str, Callable[[], Coroutine[Any, Any, list[int]]]] = {
        "tenant.pause": lambda: client.tenant_pause("acme"),
        "tenant.resume": lambda: client.tenant_resume("acme"),
        "system.pause": client.system_pause,
        "system.resume": client.system_resume,
    }
    async with client:
        for method, call in calls.items():
            for answer, shards in [({}, []), ({"outstanding": [7, 201]}, [7, 201])]:
                asked = asyncio.ensure_future(call())
                ident, _ = await link.request(method)
                link.answer(ident, answer)
                assert await asked == shards
        answers: list[Any] = [None, [], {"outstanding": "all"}]
        for nonsense in answers:
            asked = asyncio.ensure_future(client.system_pause())
            ident, _ = await link.request("system.pause")
            link.answer(ident, nonsense)
            with pytest.raises(campanile.CampanileError, match="list of shards"):
                await asked


def test_every_method_of_the_table_has_a_call() -> None:
    """The name of a call follows from the method's."""
    named = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name.replace(".", "_")) for name in METHODS}
    calls = {name for name, member in vars(Calls).items() if not name.startswith("_") and callable(member)}
    assert named - calls == set()
    keyed = [name for name, method in METHODS.items() if method.key is not None]
    assert keyed == ["job.create", "dag.create", "job.trigger"]


async def test_a_node_that_is_not_ready_is_asked_again_when_it_said(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        asked = asyncio.ensure_future(client.call("system.info"))
        ident, _ = await link.request("system.info")
        begun = asyncio.get_running_loop().time()
        link.fail(ident, "503_NOT_READY", retryAfterSec=0.3)
        ident, _ = await link.request("system.info")
        assert asyncio.get_running_loop().time() - begun >= 0.3
        link.answer(ident, {})
        await asked
        cancel = asyncio.ensure_future(client.call("run.cancel", {"runId": 1}))
        ident, _ = await link.request("run.cancel")
        link.fail(ident, "503_DISPATCHER_OVERLOADED", retryAfterSec=0.01)
        with pytest.raises(campanile.UnavailableError) as refused:
            await cancel
        assert refused.value.retry_after_sec == 0.01


async def test_an_unknown_code_has_the_class_of_its_status(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        for code, kind in (
            ("409_NEW_REASON", campanile.ConflictError),
            ("418_TEAPOT", campanile.RejectedError),
            ("500_NEW", campanile.NodeBugError),
            ("nonsense", campanile.NodeBugError),
        ):
            asked = asyncio.ensure_future(client.call("run.cancel", {}))
            ident, _ = await link.request("run.cancel")
            link.fail(ident, code, detail={"field": "x"})
            with pytest.raises(kind) as refused:
                await asked
            assert (type(refused.value), refused.value.code, refused.value.detail) == (kind, code, {"field": "x"})


async def test_a_call_ends_at_its_deadline(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(campanile.DeadlineError) as late:
            await client.call("run.get", {"runId": 1}, timeout_sec=0.2)
        assert asyncio.get_running_loop().time() - begun >= 0.2
        assert late.value.outcome_unknown
        # The late answer disturbs nobody.
        ident, _ = await link.request("run.get")
        link.answer(ident, {"late": True})
        asked = asyncio.ensure_future(client.call("run.get", {"runId": 2}))
        ident, _ = await link.request("run.get")
        link.answer(ident, {"late": False})
        assert await asked == {"late": False}
        assert client._link._pending == {}
        await fake.stop()

        async def noticed() -> bool:
            return client._link._connection is None

        await eventually(noticed)
        with pytest.raises(campanile.DeadlineError, match="not sent") as unsent:
            await client.with_timeout(0.3).job_create(JobSpec("a", Manual()))
        assert not unsent.value.outcome_unknown


async def test_a_canceled_call_leaves_nothing_behind(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        asked = asyncio.ensure_future(client.call("run.get", {"runId": 1}))
        ident, _ = await link.request("run.get")
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert client._link._pending == {}
        link.answer(ident, {})


async def test_a_silent_node_is_connected_anew(fake: FakeNode, limit: SetLimit) -> None:
    limit("SILENCE_MS", 300)
    client, link = await connected(fake)
    async with client:
        asked = asyncio.ensure_future(client.call("run.get", {"runId": 1}))
        await link.request("run.get")
        link = await fake.accept()
        ident, _ = await link.request("run.get")
        link.answer(ident, {"heard": True})
        assert await asked == {"heard": True}


# Wrong whatever follows.
COMPLETE: list[bytes] = [
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
    b"\x91" * 100_000 + b"\xc0",
    msgpack.packb({"no": "message"}),
    msgpack.packb([1, "no id", None, {}]),
    msgpack.packb([9, 9, 9, 9]),
    msgpack.packb([2, "session.error", [{"code": "413_BODY_TOO_LARGE", "message": "too large"}]]),
]


def nonsense() -> list[bytes]:
    """Random bytes too, of which a part may be the beginning of something long."""
    dice = random.Random(7)
    return [*COMPLETE, b"\xc6\xff\xff\xff\xff", *(dice.randbytes(dice.randrange(1, 4096)) + b"\xc1" for _ in range(40))]


@pytest.mark.parametrize("data", nonsense(), ids=range(len(nonsense())))
async def test_nonsense_instead_of_a_hello_is_an_error(fake: FakeNode, limit: SetLimit, data: bytes) -> None:
    limit("CONNECT_MS", 2_000)
    connecting = asyncio.ensure_future(_connect(fake, 5.0))
    link = await fake.accept_raw()
    await link.request("session.hello")
    link.writer.write(data)
    with contextlib.suppress(ConnectionError):
        link.writer.write_eof()
    with pytest.raises(campanile.CampanileError) as refused:
        await connecting
    assert isinstance(refused.value, campanile.ProtocolError | campanile.ConnectionLostError | campanile.TooLargeError)


@pytest.mark.parametrize("data", nonsense(), ids=range(len(nonsense())))
async def test_nonsense_in_between_costs_the_connection_and_no_more(fake: FakeNode, data: bytes) -> None:
    client, link = await connected(fake)
    async with client:
        asked = asyncio.ensure_future(client.call("run.get", {"runId": 1}))
        await link.request("run.get")
        link.writer.write(data)
        if data in COMPLETE:
            assert await link.hear() is None, "it hangs up by itself"
        else:
            with contextlib.suppress(ConnectionError):
                link.writer.write_eof()
        link = await fake.accept()
        ident, _ = await link.request("run.get")
        link.answer(ident, {"fine": True})
        assert await asked == {"fine": True}


async def test_a_hello_that_does_not_fit_is_refused(fake: FakeNode, limit: SetLimit) -> None:
    for said, what in (({**WELCOME, "protocol": 2}, "version 2"), ({"protocol": 1}, "missing"), (7, "a map")):
        connecting = asyncio.ensure_future(_connect(fake, 5.0))
        link = await fake.accept_raw()
        ident, hello = await link.request("session.hello")
        assert (hello["protocol"], hello["role"]) == (1, "CALLER")
        link.answer(ident, said)
        with pytest.raises(campanile.ProtocolError, match=what):
            await connecting
    limit("CONNECT_MS", 200)
    with pytest.raises(campanile.ConnectionLostError, match="no hello within 200 ms"):
        await _connect(fake, 5.0)


async def test_answers_that_do_not_fit_are_errors(fake: FakeNode) -> None:
    client, link = await connected(fake)
    async with client:
        for answer, what in (({}, "is missing"), ([], "a map"), ({**JOB, "jobId": "x"}, "jobId: int"), (None, "a map")):
            asked = asyncio.ensure_future(client.job_create(JobSpec("a", Manual())))
            ident, _ = await link.request("job.create")
            link.answer(ident, answer)
            with pytest.raises(campanile.ProtocolError, match=what):
                await asked
        # What a newer node adds is passed over; its new words are kept.
        asked = asyncio.ensure_future(client.job_create(JobSpec("a", Manual())))
        ident, _ = await link.request("job.create")
        link.answer(ident, {**JOB, "status": "SLEEPING", "more": 1})
        assert (await asked).status == "SLEEPING"


async def test_the_next_address_is_tried(fake: FakeNode) -> None:
    address = f"127.0.0.1:1, {fake.address}"
    connecting = asyncio.ensure_future(_connect_to(address))
    await fake.accept()
    async with await connecting:
        pass
    with pytest.raises(campanile.ConnectionLostError, match="127.0.0.1:1"):
        await _connect_to("127.0.0.1:1")
    with pytest.raises(ValueError, match="HOST:PORT"):
        await _connect_to("nowhere")


async def _connect_to(address: str) -> Client:
    return await Client.connect(address, token="token")


async def test_a_closed_client_says_so(fake: FakeNode) -> None:
    client, link = await connected(fake)
    asked = asyncio.ensure_future(client.call("run.get", {"runId": 1}))
    await link.request("run.get")
    await client.close()
    with pytest.raises(campanile.ClosedError):
        await asked
    with pytest.raises(campanile.ClosedError):
        await client.system_info()


async def test_calls_survive_a_killed_node(own_node: Node) -> None:
    """Reads, and creates and triggers with a key, that are under way or made while the node is away."""
    async with Client.connect(own_node.rpc, token=own_node.token) as client:
        job_id = (await client.job_create(JobSpec("before", Manual(), executor_selector="nobody"))).job_id
        keyed = [JobSpec(unique("keyed"), Manual()) for _ in range(50)]
        calls = [asyncio.ensure_future(client.job_create(spec, idempotency_key=spec.name)) for spec in keyed]
        reads = [asyncio.ensure_future(client.job_get(job_id)) for _ in range(50)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        own_node.kill()
        trigger = asyncio.ensure_future(client.job_trigger(job_id, manual_run_id="m"))
        own_node.start()
        created = await asyncio.gather(*calls)
        assert {job.spec.name for job in await asyncio.gather(*reads)} == {"before"}
        assert len({made.job_id for made in created}) == 50
        listed = {job.job_id async for job in client.jobs(text="keyed-")}
        assert listed == {made.job_id for made in created}, "each was made once"
        run = await trigger
        assert [found.run_id for found in await client.job_runs(job_id)] == [run.run_id]
        assert run.state is not RunState.SUCCESS


async def test_a_node_that_stands_still_costs_deadlines_and_nothing_else(own_node: Node) -> None:
    async with Client.connect(own_node.rpc, token=own_node.token) as client:
        own_node.signal(signal.SIGSTOP)
        with pytest.raises(campanile.DeadlineError) as late:
            await client.with_timeout(0.3).system_info()
        assert late.value.outcome_unknown
        waiting = asyncio.ensure_future(client.job_create(JobSpec("slow", Manual()), idempotency_key="slow"))
        await asyncio.wait([waiting], timeout=0.5)
        assert not waiting.done()
        own_node.signal(signal.SIGCONT)
        created = await waiting
        assert (await client.job_get(created.job_id)).spec.name == "slow"
