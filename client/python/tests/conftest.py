"""Fixtures: a node for all tests that only use it, one for each test that mistreats it, a fake one."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from fake_node import FakeNode
from nodes import Node

from campanile import Client


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("shared") / "data", executor=True)
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[Node]:
    """A node to be killed, stopped and started again."""
    node = Node(tmp_path / "data")
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture
async def client(shared_node: Node) -> AsyncIterator[Client]:
    async with Client.connect(shared_node.rpc, token=shared_node.token) as client:
        yield client


@pytest.fixture
async def fake() -> AsyncIterator[FakeNode]:
    node = await FakeNode.start()
    try:
        yield node
    finally:
        await node.stop()


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Sets a limit for a test that would take too long with the real one."""

    def set_limit(name: str, value: int) -> None:
        monkeypatch.setattr(f"campanile.limits.{name}", value)

    return set_limit
