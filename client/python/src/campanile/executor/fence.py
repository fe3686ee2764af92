"""Which assignments must not start: the executor's part of fencing off owners that were replaced. The clock is an argument."""

from dataclasses import dataclass

from campanile import limits
from campanile.executor import failure
from campanile.executor.assignment import Assignment


@dataclass(frozen=True)
class Refusal:
    """Why an assignment is refused."""

    code: str
    message: str


class Fence:
    """Highest epochs and tokens seen."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[int, int], int] = {}
        # Tokens of the present and the previous stretch of time. An older one needs no remembering: an assignment that is
        # older than a credit's life is refused for that.
        self._tokens: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._stretch_began_ms = 0

    def learn(self, cluster: int, epochs: list[tuple[int, int]]) -> None:
        """Epochs of shards that a node names at registration."""
        for shard, epoch in epochs:
            self._raise(cluster, shard, epoch)

    def _raise(self, cluster: int, shard: int, epoch: int) -> bool:
        before = self._epochs.get((cluster, shard))
        if before is not None and before >= epoch:
            return False
        self._epochs[(cluster, shard)] = epoch
        return True

    def admit(self, a: Assignment, now_ms: int) -> Refusal | bool:
        """Refuses, or remembers. True: the epoch is newer than any seen of this shard; its owner wants to hear what is held."""
        if now_ms - a.credit_stamp_ms > limits.CREDIT_MS:
            return Refusal(failure.CREDIT_VOID, "the credit was older than its life")
        if a.epoch < self._epochs.get((a.cluster_id, a.shard), 0):
            return Refusal(failure.OLD_EPOCH, "the shard has a newer owner")
        self._turn(now_ms)
        if any(a.token <= seen.get(a.run_id, -1) for seen in self._tokens):
            return Refusal(failure.OLD_TOKEN, "a newer attempt of this run was seen")
        self._tokens[0][a.run_id] = a.token
        return self._raise(a.cluster_id, a.shard, a.epoch)

    def _turn(self, now_ms: int) -> None:
        # Twice the life of a credit, so that the two stretches together always cover one.
        if now_ms - self._stretch_began_ms > 2 * limits.CREDIT_MS:
            self._stretch_began_ms = now_ms
            self._tokens = ({}, self._tokens[0])
