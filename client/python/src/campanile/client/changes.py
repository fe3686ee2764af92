"""Changes as they become durable: what `Client.run_watch` and `Client.job_watch` give.

A watch finds its place again by itself when its connection breaks or its node goes away; what was lost meanwhile is told, not
hidden.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from campanile import limits
from campanile.clock import jittered_sec
from campanile.errors import CampanileError, ConnectionLostError, DeadlineError, FailedError, api_error
from campanile.shapes import read
from campanile.wire import Notice

T_co = TypeVar("T_co", covariant=True)

ENDED: Final = "watch.ended"
NOTICES: Final = frozenset({"run.changed", "job.changed", ENDED})
"""Notifications of watches."""


@dataclass(frozen=True)
class Dropped:
    """So many changes at least, of all that the node saw, came and went unheard: read anew what must be known."""

    count: int


class Inbox:
    """Where a connection puts the notifications of one watch, in their order; bounded."""

    def __init__(self) -> None:
        self._waiting: deque[Notice] = deque()
        self._news = asyncio.Event()
        self._closed = False

    def put(self, notice: Notice) -> bool:
        """False: there is no room, or nobody wants it."""
        if self._closed or len(self._waiting) >= limits.CHANGES_WAITING:
            return False
        self._waiting.append(notice)
        self._news.set()
        return True

    def close(self) -> None:
        """Nothing more comes; what is there can still be taken."""
        self._closed = True
        self._news.set()

    async def take(self) -> Notice | None:
        """The next one; None when it is closed or silent for longer than a node ever is."""
        while not self._waiting:
            if self._closed:
                return None
            self._news.clear()
            try:
                async with asyncio.timeout(limits.WATCH_SILENCE_MS / 1000):
                    await self._news.wait()
            except TimeoutError:
                return None
        return self._waiting.popleft()


Open = Callable[[dict[str, Any], Inbox], Awaitable[Any]]
"""Asks for a watch whose notifications go into an inbox."""


class Changes(Generic[T_co]):
    """`async for change in changes`: each a change, or `Dropped`. It ends with the one run that was watched."""

    def __init__(self, shape: type[T_co], params: dict[str, Any], open_: Open, stop: Callable[[Inbox], None]) -> None:
        self._shape, self._params, self._open, self._stop = shape, params, open_, stop
        self._inbox = Inbox()
        self._items: deque[T_co | Dropped] = deque()
        self._over = False

    @property
    def cursor(self) -> str | None:
        """Where it stands; another watch can go on `after` it."""
        after: str | None = self._params.get("after")
        return after

    async def begin(self) -> Self:
        """Asks the node for it; of the client."""
        await self._open(self._params, self._inbox)
        return self

    def close(self) -> None:
        """Ends it."""
        self._over = True
        self._stop(self._inbox)
        self._inbox.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T_co | Dropped:
        while not self._items:
            if self._over:
                raise StopAsyncIteration
            notice = await self._inbox.take()
            if notice is None:
                await self._begin_again()
            elif notice.method == ENDED:
                self._end(notice.params)
            else:
                self._take(notice.params)
        return self._items.popleft()

    def _take(self, params: dict[str, Any]) -> None:
        dropped = int(params.get("dropped", 0))
        if dropped:
            self._items.append(Dropped(dropped))
        self._items.extend(read(self._shape, item) for item in params.get("items", []))
        self._params["after"] = params["cursor"]

    def _end(self, params: dict[str, Any]) -> None:
        if params.get("code") is None:
            self._over = True
            return
        error = api_error(params)
        if not isinstance(error, FailedError):
            raise error
        # Its node restarts or stops: begun again, perhaps at another.
        self._inbox.close()

    async def _begin_again(self) -> None:
        if self._over:
            return
        self._stop(self._inbox)
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.WATCH_PATIENCE_MS / 1000
        wait_ms: float = limits.REPEAT_MIN_MS
        while True:
            self._inbox = Inbox()
            try:
                await self._open(self._params, self._inbox)
            except (ConnectionLostError, FailedError, DeadlineError) as error:
                last: CampanileError = error
            else:
                return
            wait_sec = max(jittered_sec(wait_ms), getattr(last, "retry_after_sec", None) or 0)
            if loop.time() + wait_sec >= until:
                raise last
            await asyncio.sleep(wait_sec)
            wait_ms = min(wait_ms * 2, limits.REPEAT_MAX_MS)
