"""Which nodes an executor is to be connected to: the addresses that it was given, and nodes that others tell it of.

Pure: what time it is is an argument. A node is known by its cluster and its name, since one node may be reached by several
addresses; a session that registers over a second connection would lose the first. The addresses that were given are never
dropped, and win over those that were told.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from campanile import limits

_log = logging.getLogger("campanile.executor")


class NodeKey(NamedTuple):
    """Which node."""

    cluster: int
    name: str


class Meeting(Enum):
    """What to do with a connection to a node that has just said who it is."""

    USE = auto()
    REPLACE = auto()
    """The way that `Nodes.up` names goes: the new one leads to the same node and was given."""
    TURN_AWAY = auto()


@dataclass
class _Way:
    address: str
    told: NodeKey | None
    """Who it should lead to; None = it was given."""
    down_ms: int | None
    """Since when it leads to no node; None: it leads to one."""
    met: NodeKey | None = None
    """Who answered last."""
    list: dict[str, str] = field(default_factory=dict)
    """Names and addresses that who answered last told."""
    tried: bool = False
    """It led to a node, or did not, at least once."""


class Nodes:
    """See the module's text. A way has the number of its link; numbers are never used again."""

    def __init__(self) -> None:
        self._ways: dict[int, _Way] = {}
        self._last = -1

    def add(self, address: str, told: NodeKey | None, now_ms: int) -> int:
        """A way; its number."""
        self._last += 1
        self._ways[self._last] = _Way(address, told, now_ms)
        return self._last

    def give_up(self, link: int) -> None:
        """It is no way any more."""
        del self._ways[link]

    def address(self, link: int) -> str:
        """Where it leads."""
        return self._ways[link].address

    def is_missed(self, link: int) -> bool:
        """Whether its connection is missed: not one that was told and never came, nor one that was turned away."""
        way = self._ways[link]
        return way.down_ms is None or (way.told is None and not self._twins(link, way.met))

    def _twins(self, link: int, key: NodeKey | None) -> list[int]:
        """Other ways that lead to this node now."""
        if key is None:
            return []
        return [at for at, way in self._ways.items() if at != link and way.down_ms is None and way.met == key]

    def up(self, link: int, key: NodeKey) -> tuple[Meeting, int | None]:
        """A node has said who it is."""
        way, twins = self._ways[link], self._twins(link, key)
        way.tried, way.met = True, key
        if way.told is not None and way.told != key:
            return Meeting.TURN_AWAY, None
        if not twins:
            way.down_ms = None
            return Meeting.USE, None
        if way.told is None and self._ways[twins[0]].told is not None:
            way.down_ms = None
            return Meeting.REPLACE, twins[0]
        return Meeting.TURN_AWAY, None

    def down(self, link: int, now_ms: int) -> None:
        """It leads to no node now."""
        way = self._ways[link]
        way.tried = True
        if way.down_ms is None:
            way.down_ms = now_ms

    def told(self, link: int, said: Mapping[str, Any]) -> None:
        """A node has told of nodes. What cannot be read is passed over."""
        nodes = said.get("nodes")
        told = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
        if len(told) > limits.EXECUTOR_NODES:
            _log.warning("told of %d nodes; only %d are connected to", len(told), limits.EXECUTOR_NODES)
        pairs = [(node.get("node"), node.get("address")) for node in told[: limits.EXECUTOR_NODES]]
        self._ways[link].list = {n: a for n, a in pairs if isinstance(n, str) and isinstance(a, str)}

    def _wanted(self) -> dict[NodeKey, str]:
        """Nodes that somebody tells of, with addresses.

        What a node that is gone said counts only when nobody else of its cluster is there.
        """
        tellers = [(way, way.met) for way in self._ways.values() if way.list and way.met is not None]
        live = {met.cluster for way, met in tellers if way.down_ms is None}
        wanted: dict[NodeKey, str] = {}
        for way, met in tellers:
            if way.down_ms is None or met.cluster not in live:
                for name, address in way.list.items():
                    wanted.setdefault(NodeKey(met.cluster, name), _as_reached(way.address, address))
        return wanted

    def unmet(self, now_ms: int) -> list[tuple[NodeKey, str]]:
        """Nodes that no way leads to. None before every address that was given has been tried: it may lead there."""
        if any(way.told is None and not way.tried for way in self._ways.values()):
            return []

        def leads(way: _Way, key: NodeKey, address: str) -> bool:
            soon = way.down_ms is None or now_ms - way.down_ms < limits.SAME_ADDRESS_MS
            # An address that leads elsewhere now leads there no more.
            same = way.address == address and way.met in (None, key)
            return way.told == key or (way.met == key and soon) or same

        unmet = [
            (key, address)
            for key, address in self._wanted().items()
            if not any(leads(way, key, address) for way in self._ways.values())
        ]
        return unmet[: max(limits.EXECUTOR_NODES - len(self._ways), 0)]

    def spare(self) -> list[int]:
        """Ways that were told and lead nowhere: their node left the list, or is reached by another way."""
        wanted = self._wanted()
        return [
            link
            for link, way in self._ways.items()
            if way.told is not None
            and way.down_ms is not None
            and (way.told not in wanted or self._twins(link, way.told))
        ]


def _as_reached(teller: str, address: str) -> str:
    """A told address with the scheme of the address over which it was told."""
    scheme, found, _ = teller.partition("://")
    return f"{scheme}://{address}" if found else address
