"""What an executor is started with, and what it says of itself."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from campanile.executor.bodies import Handling


@dataclass(frozen=True)
class Status:
    """What an executor is doing.

    `registered`: nodes that it is registered with; `unacknowledged`: results that no node has called durable or refused yet;
    `ended`: bodies that have ended since the start; `last_error`: why the latest connection failed or was refused.
    """

    registered: int = 0
    running: int = 0
    unacknowledged: int = 0
    ended: int = 0
    last_error: str | None = None


@dataclass(frozen=True)
class Config:
    """All that does not change while an executor runs."""

    addresses: list[str]
    token: str = field(repr=False)
    tls: ssl.SSLContext | None
    register: dict[str, Any]
    handlers: Mapping[str, Handling]
    any_handler: Handling | None
    grace_ms: int
    follow: bool
    bodies_loop: asyncio.AbstractEventLoop
