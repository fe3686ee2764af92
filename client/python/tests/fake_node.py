"""A node that says what a test tells it to: for what the real one does rarely or never."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self

import msgpack
from nodes import PATIENCE_SEC

CLUSTER = 5
WELCOME = {
    "protocol": 1,
    "server": "fake",
    "clusterId": CLUSTER,
    "node": "fake",
    "maxFrameBytes": 4 << 20,
    "heartbeatMs": 2000,
    "leaseMs": 10_000,
    "creditMs": 2000,
}


@dataclass
class Said:
    """What the other side said; `ident` is None for a notification."""

    ident: int | None
    method: str
    params: Any


class FakeLink:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        self.credit: dict[str, Any] = {}
        self.announced: list[Any] = []

    async def hear(self) -> Said | None:
        """The next message; None when the other side has gone."""
        while True:
            for message in self._unpacker:
                kind, *rest = message
                said = Said(rest[0], rest[1], rest[2][0]) if kind == 0 else Said(None, rest[0], rest[1][0])
                if said.method == "executor.credit":
                    self.credit = said.params
                return said
            try:
                data = await asyncio.wait_for(self.reader.read(65536), PATIENCE_SEC)
            except ConnectionError:
                return None
            if not data:
                return None
            self._unpacker.feed(data)

    async def next(self, wanted: str) -> Said:
        """The next message of this method; heartbeats and announcements are answered, credits kept, others fail the test."""
        while True:
            said = await self.hear()
            assert said is not None, f"gone while waiting for {wanted}"
            if said.method == wanted:
                return said
            if said.method in ("executor.heartbeat", "executor.announce") and said.ident is not None:
                self.answer(said.ident, {})
            else:
                assert said.method == "executor.credit", f"{said} while waiting for {wanted}"

    async def request(self, wanted: str) -> tuple[int, Any]:
        said = await self.next(wanted)
        assert said.ident is not None, "a request"
        return said.ident, said.params

    def send(self, message: Any) -> None:
        self.writer.write(msgpack.packb(message))

    def answer(self, ident: int, result: Any) -> None:
        self.send([1, ident, None, result])

    def fail(self, ident: int, code: str, **more: Any) -> None:
        self.send([1, ident, {"code": code, "message": "of the fake node", **more}, None])

    def tell_of(self, **nodes: str) -> None:
        """Tells of the nodes of the cluster: names and addresses."""
        told = [{"node": node, "address": address} for node, address in nodes.items()]
        self.send([2, "executor.members", [{"nodes": told}]])

    def hint(self, waiting: bool) -> None:
        """Tells whether runs wait for credit."""
        self.send([2, "executor.hint", [{"waiting": waiting}]])

    async def until_credit(self, slots: int) -> None:
        """Hears until the credit is of so many slots."""
        async with asyncio.timeout(PATIENCE_SEC):
            while (await self.next("executor.credit")).params["slots"] != slots:
                pass

    def assign(self, *items: dict[str, Any]) -> None:
        """Assignments that use the newest credit, unless they name another stamp."""
        stamp = self.credit["stampMs"]
        self.send([2, "executor.assign", [{"items": [{"cs": stamp, **item} for item in items]}]])

    async def finish(self, outcome: str) -> list[Any]:
        """The next results, answered item by item: `d`, `s` or `a`."""
        ident, finish = await self.request("executor.finish")
        self.answer(ident, {"outcomes": [outcome] * len(finish["items"])})
        self.credit = finish.get("credit", self.credit)
        return list(finish["items"])

    def close(self) -> None:
        self.writer.transport.abort()


class FakeNode:
    """Listens on a free port; connections are taken one by one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._links: asyncio.Queue[FakeLink] = asyncio.Queue()
        self._all: list[FakeLink] = []
        self._server: asyncio.Server | None = None
        self.address = ""

    @classmethod
    async def start(cls, name: str = "fake") -> Self:
        node = cls(name)
        node._server = await asyncio.start_server(node._connected, "127.0.0.1", 0)
        node.address = f"127.0.0.1:{node._server.sockets[0].getsockname()[1]}"
        return node

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = FakeLink(reader, writer)
        self._all.append(link)
        self._links.put_nowait(link)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in self._all:
            link.close()

    @property
    def connections(self) -> int:
        """So many were made."""
        return len(self._all)

    async def accept_raw(self) -> FakeLink:
        return await asyncio.wait_for(self._links.get(), PATIENCE_SEC)

    async def accept(self) -> FakeLink:
        """The next connection, hello answered."""
        link = await self.accept_raw()
        ident, hello = await link.request("session.hello")
        assert hello["token"] == "token"
        link.answer(ident, {**WELCOME, "node": self.name})
        return link

    async def executor(self, epoch: int = 3, stop: list[Any] | None = None) -> FakeLink:
        """The next connection of an executor, registered and ready."""
        link = await self.accept()
        ident, _ = await link.request("executor.register")
        link.answer(ident, {"clusterId": CLUSTER, "epochs": [[1, epoch]]})
        ident, announce = await link.request("executor.announce")
        assert not announce["more"]
        link.announced = sorted((held["r"], held["k"]) for held in announce["held"])
        link.answer(ident, {"stop": stop or []})
        await link.next("executor.credit")
        return link


def assignment(run: int, token: int, handler: str, **more: Any) -> dict[str, Any]:
    """An assignment of shard 1, epoch 3; `more` replaces fields."""
    action = {"kind": "HANDLER", "name": handler}
    return {
        "r": run,
        "j": 1,
        "jn": "job",
        "t": "fin",
        "n": 1,
        "g": 1,
        "k": token,
        "h": 1,
        "e": 3,
        "c": CLUSTER,
        "o": 1,
        "to": 3600,
        "lc": 0,
        "a": action,
        "p": b"{}",
        **more,
    }
