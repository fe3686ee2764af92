"""The outside of a running executor."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from campanile import limits
from campanile.executor.config import Config, Status
from campanile.executor.session import Session


class ExecutorHandle:
    """A running executor, for the event loop on which it was started. Entered, it drains at the end of the block."""

    def __init__(self, config: Config) -> None:
        self._loop = config.bodies_loop
        self._status = Status()
        self._changed = asyncio.Event()
        self._ended: asyncio.Future[Status] = self._loop.create_future()
        # Nobody is bound to look at how it ended.
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self._session_loop = asyncio.new_event_loop()
        self._session: Session | None = None
        self._task: asyncio.Task[Status] | None = None
        self._made = threading.Event()
        threading.Thread(target=self._run, args=(config,), name="campanile-executor", daemon=True).start()
        self._made.wait()

    def _run(self, config: Config) -> None:
        with asyncio.Runner(loop_factory=lambda: self._session_loop) as runner:
            try:
                status = runner.run(self._serve(config))
            except asyncio.CancelledError:
                self._tell(self._end, self._status, None)
            except BaseException as error:
                self._tell(self._end, self._status, error)
                raise
            else:
                self._tell(self._end, status, None)
            finally:
                self._made.set()

    async def _serve(self, config: Config) -> Status:
        self._session = Session(config, lambda status: self._tell(self._take, status))
        self._task = asyncio.current_task()
        self._made.set()
        return await self._session.run()

    def _tell(self, method: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(method, *args)

    def _take(self, status: Status) -> None:
        self._status = status
        self._changed.set()

    def _end(self, status: Status, error: BaseException | None) -> None:
        self._take(status)
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(status)
        else:
            self._ended.set_exception(error)

    @property
    def status(self) -> Status:
        """What it is doing now."""
        return self._status

    async def wait_until(self, wanted: Callable[[Status], bool]) -> Status:
        """Waits until `wanted` holds, or the executor has ended; the status then."""
        while not wanted(self._status) and not self._ended.done():
            self._changed.clear()
            changed = asyncio.ensure_future(self._changed.wait())
            either: list[asyncio.Future[Any]] = [changed, self._ended]
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
        return self._status

    async def ready(self) -> Status:
        """Waits until at least one node has registered it."""
        return await self.wait_until(lambda status: status.registered > 0)

    async def ended(self) -> Status:
        """Waits until it has ended; the last status. What is left in it was not handed in."""
        return await asyncio.shield(self._ended)

    def begin_drain(self, limit_sec: float = limits.DRAIN_MS / 1000) -> None:
        """Takes no more runs, lets those that run finish, hands in their results, and ends; does not wait for it.

        After `limit_sec` bodies are told to stop and their attempts fail with `EXECUTOR_SHUTDOWN`, which the retry policy
        follows.
        """
        if self._session is not None and not self._session_loop.is_closed():
            self._session_loop.call_soon_threadsafe(self._session.drain, limit_sec)

    async def drain(self, limit_sec: float = limits.DRAIN_MS / 1000) -> Status:
        """`begin_drain`, and waits for the end. What is left in the answer was not handed in."""
        self.begin_drain(limit_sec)
        return await self.ended()

    async def kill(self) -> Status:
        """Stops everything at once, as a crash would: nothing is handed in."""
        if self._task is not None and not self._session_loop.is_closed():
            self._session_loop.call_soon_threadsafe(self._task.cancel)
        return await self.ended()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()
