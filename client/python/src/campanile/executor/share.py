"""How the free slots are divided among the nodes. Pure."""

from collections.abc import Sequence


def share(free: int, wanting: Sequence[bool], node: int, turn: int) -> int:
    """A node's share of the free slots. `wanting` says of each node whether runs may wait there for credit.

    Equal parts, the rest to each in turn, so that a single slot serves all nodes. While runs wait at some nodes only, the others
    keep one slot each where there are enough, and those share what is left: a node without credit says so as soon as it needs
    some. All shares together are never more than what is free.
    """
    nodes, some = len(wanting), sum(wanting)
    if some in (0, nodes):
        return _part(free, nodes, node, turn)
    kept = 1 if free >= nodes else 0
    if not wanting[node]:
        return kept
    return _part(free - kept * (nodes - some), some, sum(wanting[:node]), turn)


def _part(free: int, nodes: int, node: int, turn: int) -> int:
    return free // nodes + ((node + turn) % nodes < free % nodes)
