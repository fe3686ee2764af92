"""One node as the session sees it: what was asked of it, when it was last heard, what it has been told. Clocks are arguments."""

import logging
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from campanile import limits
from campanile.errors import connection_lost
from campanile.executor.assignment import Key
from campanile.wire import ID_MAX, Connection, notification, request

_log = logging.getLogger("campanile.executor")


class Stage(Enum):
    """How far a connection has come."""

    DOWN = auto()
    REGISTERING = auto()
    ANNOUNCING = auto()
    READY = auto()


class What(Enum):
    """A kind of request."""

    REGISTER = auto()
    ANNOUNCE = auto()
    HEARTBEAT = auto()
    FINISH = auto()
    LOG = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for its answer."""

    what: What
    last: bool = False
    """The last part of an announcement."""
    keys: tuple[Key, ...] = ()
    sent_ms: int = 0


class Upstream:
    """See the module's text."""

    def __init__(self) -> None:
        self.stage = Stage.DOWN
        self.cluster: int | None = None
        """That it said it is of, when it took the registration last."""
        self._connection: Connection | None = None
        self._last_id = 0
        self._asked: dict[int, Asked] = {}
        self._received = 0
        self._in_flight = dict.fromkeys(What, 0)
        self._up_ms = 0
        self._heartbeat_ms = 0
        self._unanswered_ms: int | None = None
        self._contact_ms: int | None = None
        self._credit_ms = 0
        self.given = 0
        """Slots of the credit that it was given last."""
        self.hint: bool | None = None
        """Whether runs wait there, as it has said; a node of an older release never does."""

    def is_current(self, connection: Connection) -> bool:
        """Whether it is the present connection; words of one before come too late."""
        return self._connection is connection and self.stage is not Stage.DOWN

    def is_flushed(self) -> bool:
        """Everything written has left for the socket."""
        return self.stage is Stage.DOWN or self._connection is None or self._connection.unsent_bytes() == 0

    def received(self, assignments: int) -> None:
        """So many assignments came over this connection."""
        self._received += assignments

    def _has_room(self) -> bool:
        ready = self.stage is Stage.READY and self._connection is not None
        return ready and self._connection is not None and self._connection.unsent_bytes() < limits.UNSENT_BYTES

    def can_finish(self) -> bool:
        """Results can be sent now."""
        return self._has_room() and self._in_flight[What.FINISH] < limits.FINISHES_IN_FLIGHT

    def can_log(self) -> bool:
        """Log can be sent now."""
        return self._has_room() and self._in_flight[What.LOG] < limits.LOGS_IN_FLIGHT

    def up(self, connection: Connection, now_ms: int) -> None:
        """A new connection: whatever was asked on the last one has no answer any more."""
        self.down()
        self._connection = connection
        self.stage = Stage.REGISTERING
        self._up_ms = self._heartbeat_ms = now_ms
        self._received = 0

    def down(self) -> None:
        """The connection is lost."""
        self.stage = Stage.DOWN
        self._connection = None
        self._asked.clear()
        self._in_flight = dict.fromkeys(What, 0)
        self._unanswered_ms = None
        self.given = 0
        self.hint = None

    def hang_up(self, why: str) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close(connection_lost(self._connection.address, why))

    def request(self, method: str, params: dict[str, Any], asked: Asked) -> None:
        """Asks the node."""
        if self._connection is None:
            return
        self._last_id = self._last_id % ID_MAX + 1
        self._in_flight[asked.what] += 1
        self._asked[self._last_id] = asked
        self._connection.send(request(self._last_id, method, params))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tells the node."""
        if self._connection is not None:
            self._connection.send(notification(method, params))

    def answered(self, ident: int) -> Asked | None:
        """What an answer is for."""
        asked = self._asked.pop(ident, None)
        if asked is None:
            return None
        self._in_flight[asked.what] -= 1
        if asked.what is What.HEARTBEAT:
            self._contact_ms = asked.sent_ms
            # Answers come in order, so a later heartbeat is the oldest one now.
            unanswered = [a.sent_ms for a in self._asked.values() if a.what is What.HEARTBEAT]
            self._unanswered_ms = min(unanswered, default=None)
        elif asked.what is What.REGISTER:
            self._contact_ms = self._up_ms
        return asked

    def credit(self, slots: int, load: float, now_ms: int) -> dict[str, Any]:
        """The credit as it is now; counts as given."""
        self._credit_ms = now_ms
        self.given = slots
        return {"stampMs": now_ms, "slots": slots, "received": self._received, "load": load}

    def credit_is_due(self, now_ms: int) -> bool:
        """It is time to give credit again."""
        return self.stage is Stage.READY and now_ms - self._credit_ms >= limits.CREDIT_AGAIN_MS

    def tick(self, running: int, now_ms: int) -> None:
        """Heartbeats when due; ends a connection that does not answer."""
        if self.stage is Stage.DOWN:
            return
        silent_since = self._unanswered_ms if self.stage is Stage.READY else self._up_ms
        if silent_since is not None and now_ms - silent_since > limits.HEARTBEAT_ANSWER_MS:
            self._unanswered_ms = None
            _log.info("the node does not answer; connecting anew")
            self.hang_up("the node does not answer")
            return
        if self.stage is Stage.READY and now_ms - self._heartbeat_ms >= limits.HEARTBEAT_MS:
            self._heartbeat_ms = now_ms
            if self._unanswered_ms is None:
                self._unanswered_ms = now_ms
            self.request("executor.heartbeat", {"running": running}, Asked(What.HEARTBEAT, sent_ms=now_ms))

    def is_out_of_contact(self, grace_ms: int, now_ms: int) -> bool:
        """For so long the node cannot be shown to have heard us that bodies which must not outlive their lease must be told to
        stop, so that they have ended by then; they have so long to end."""
        return self._contact_ms is not None and now_ms - self._contact_ms > limits.lost_contact_ms(grace_ms)
