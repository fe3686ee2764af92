"""What nodes and executors say of attempts: the short names of the wire, and how they are read."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from campanile.enums import OnLostContact, Source
from campanile.shapes import Json, from_ms, from_payload

SUCCESS: Final = 1
FAILED: Final = 2
TIMEOUT: Final = 3
CANCELED: Final = 4
NOT_STARTED: Final = 6
"""Numbers of attempt states on the wire."""

_SOURCES: Final = tuple(Source)


@dataclass(frozen=True, slots=True)
class Key:
    """Names an attempt."""

    run_id: int
    token: int


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt as announcements, stops and results name it: run, job, token."""

    run_id: int
    job_id: int
    token: int

    @classmethod
    def read(cls, item: Any) -> "Held":
        """From a map that has at least the three; KeyError or TypeError otherwise."""
        return cls(_number(item["r"]), _number(item["j"]), _number(item["k"]))

    @property
    def key(self) -> Key:
        """Run and token."""
        return Key(self.run_id, self.token)

    def write(self) -> dict[str, Any]:
        """The map."""
        return {"r": self.run_id, "j": self.job_id, "k": self.token}


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a node sends of an attempt. `secrets` are opened, never to be logged."""

    run_id: int
    job_id: int
    job_name: str
    tenant: str
    attempt: int
    generation: int
    token: int
    shard: int
    epoch: int
    cluster_id: int
    credit_stamp_ms: int
    source: Source
    logical_time: datetime | None
    timeout_sec: int
    on_lost_contact: OnLostContact
    action: dict[str, Any]
    params: Json
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    traceparent: str | None = None

    @classmethod
    def read(cls, item: Any) -> "Assignment":
        """From the wire; KeyError, TypeError or ValueError for what this release cannot read."""
        logical = item.get("l")
        source = _number(item["o"])
        if source >= len(_SOURCES):
            raise ValueError(f"source {source} is not known")
        action = item["a"]
        if not isinstance(action, dict):
            raise TypeError("the action is no map")
        return cls(
            run_id=_number(item["r"]),
            job_id=_number(item["j"]),
            job_name=str(item["jn"]),
            tenant=str(item["t"]),
            attempt=_number(item["n"]),
            generation=_number(item["g"]),
            token=_number(item["k"]),
            shard=_number(item["h"]),
            epoch=_number(item["e"]),
            cluster_id=_number(item["c"]),
            credit_stamp_ms=_number(item["cs"]),
            source=_SOURCES[source],
            logical_time=None if logical is None else from_ms(_number(logical)),
            timeout_sec=_number(item["to"]),
            on_lost_contact=(OnLostContact.CONTINUE, OnLostContact.STOP)[_number(item.get("lc", 0))],
            action=action,
            params=from_payload(item["p"]),
            secrets={str(name): str(value) for name, value in (item.get("s") or {}).items()},
            traceparent=item.get("tp"),
        )

    @property
    def held(self) -> Held:
        """Its name."""
        return Held(self.run_id, self.job_id, self.token)


def result(
    held: Held,
    state: int,
    *,
    code: str | None = None,
    message: str | None = None,
    payload: bytes | None = None,
    permanent: bool = False,
) -> dict[str, Any]:
    """The map of a result. `permanent` goes with FAILED: no retry."""
    ended = {**held.write(), "s": state, "c": code, "m": message, "w": payload, "p": permanent or None}
    return {name: value for name, value in ended.items() if value is not None}


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"a number was expected, not {value!r}")
    return value
