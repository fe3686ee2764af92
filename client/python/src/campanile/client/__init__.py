"""The asyncio client: typed calls, pipelined over one connection that comes back by itself."""

import asyncio
from collections.abc import AsyncIterator, Generator
from types import TracebackType
from typing import Any, Self

from campanile import limits
from campanile.client.calls import KEYS, READS, Calls, every_page
from campanile.client.link import Link
from campanile.clock import jittered_sec
from campanile.enums import JobStatus
from campanile.errors import ConnectionLostError, DeadlineError, FailedError
from campanile.views import DeadLetter, Job, Run, Welcome


class Client(Calls):
    """A connected client; `Client.connect` makes it. All tasks of one event loop may share it; calls are pipelined."""

    def __init__(self, link: Link, timeout_sec: float) -> None:
        self._link = link
        self._timeout_sec = timeout_sec

    @classmethod
    def connect(cls, address: str, *, token: str, timeout_sec: float = limits.CALL_MS / 1000) -> "Connecting":
        """Connects: `async with Client.connect(...) as client`, or `client = await Client.connect(...)`.

        `address` is `host:port` of a node, or several with commas between: the next is tried when one does not answer.
        `timeout_sec` is the deadline of each call, waiting for a connection and sending again included. An unknown token is
        told here (UnauthenticatedError), and so is a node that cannot be reached (ConnectionLostError).
        """
        return Connecting([part.strip() for part in address.split(",") if part.strip()], token, timeout_sec)

    def with_timeout(self, timeout_sec: float) -> "Client":
        """The same connection with another deadline for each call."""
        return Client(self._link, timeout_sec)

    @property
    def welcome(self) -> Welcome:
        """What the node said at the latest hello."""
        return self._link.said()

    async def close(self) -> None:
        """Ends the connection; calls under way raise ClosedError."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call(self, method: str, params: dict[str, Any] | None = None, *, timeout_sec: float | None = None) -> Any:
        """Any method by name with its map as the wire has it; the answer likewise.

        Reads, and creates and triggers with a key, are sent again within the deadline when the connection breaks or the node
        is not ready; all others are sent once.
        """
        given = params or {}
        key = KEYS.get(method)
        repeatable = method in READS or (key is not None and given.get(key) is not None)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout_sec if timeout_sec is None else timeout_sec)
        wait_ms: float = limits.REPEAT_MIN_MS
        last: ConnectionLostError | FailedError | None = None
        while True:
            try:
                return await self._link.ask(method, given, deadline)
            except (ConnectionLostError, FailedError) as error:
                wait_sec = max(jittered_sec(wait_ms), getattr(error, "retry_after_sec", None) or 0)
                if not repeatable or loop.time() + wait_sec >= deadline:
                    raise
                last = error
            except DeadlineError as error:
                raise error from last
            await asyncio.sleep(wait_sec)
            wait_ms = min(wait_ms * 2, limits.REPEAT_MAX_MS)

    async def jobs(
        self,
        *,
        tenant_id: str | None = None,
        status: JobStatus | None = None,
        labels: str | None = None,
        text: str | None = None,
    ) -> AsyncIterator[Job]:
        """All jobs, page by page; see `job_list`."""
        pages = every_page(
            lambda token: self.job_list(
                tenant_id=tenant_id,
                status=status,
                labels=labels,
                text=text,
                page_token=token,
                page_size=limits.PAGE_SIZE_MAX,
            )
        )
        async for job in pages:
            yield job

    async def runs(self, job_id: int) -> AsyncIterator[Run]:
        """All runs of a job, newest first, page by page."""
        pages = every_page(lambda token: self.job_runs(job_id, page_token=token, page_size=limits.PAGE_SIZE_MAX))
        async for run in pages:
            yield run

    async def dead_letters(self, *, tenant_id: str | None = None) -> AsyncIterator[DeadLetter]:
        """All dead letters, page by page."""
        pages = every_page(
            lambda token: self.dlq_list(tenant_id=tenant_id, page_token=token, page_size=limits.PAGE_SIZE_MAX)
        )
        async for letter in pages:
            yield letter

    async def run_wait(self, run_id: int, *, timeout_sec: float = 3600.0) -> Run:
        """Waits until the run is final, or needs a person (NEEDS_CONFIRMATION); DeadlineError after `timeout_sec`.

        It asks again and again, at first often, then once a second.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_sec
        wait_ms: float = limits.WAIT_POLL_MIN_MS
        while True:
            run = await self.run_get(run_id)
            if run.state.is_final or run.state == "NEEDS_CONFIRMATION":
                return run
            if loop.time() >= deadline:
                advice = "wait longer, or see wait_reason"
                waits = f" ({run.wait_reason})" if run.wait_reason else ""
                raise DeadlineError("DEADLINE_EXCEEDED", f"run {run_id} is still {run.state}{waits}", advice=advice)
            await asyncio.sleep(min(jittered_sec(wait_ms), max(deadline - loop.time(), 0)))
            wait_ms = min(wait_ms * 2, limits.WAIT_POLL_MAX_MS)

    async def run_log_text(self, run_id: int, *, attempt: int | None = None) -> str:
        """All of an attempt's log that there is now."""
        text, offset = "", 0
        while True:
            piece = await self.run_log(run_id, attempt=attempt, offset=offset)
            text += piece.text
            if piece.end or piece.next_offset == offset:
                return text
            attempt, offset = piece.attempt, piece.next_offset


class Connecting:
    """A client that is being connected: to be awaited, or entered."""

    def __init__(self, addresses: list[str], token: str, timeout_sec: float) -> None:
        self._given = (addresses, token, timeout_sec)
        self._client: Client | None = None

    async def _connected(self) -> Client:
        addresses, token, timeout_sec = self._given
        link = Link(addresses, token)
        await link.open()
        self._client = Client(link, timeout_sec)
        return self._client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connected().__await__()

    async def __aenter__(self) -> Client:
        return await self._connected()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
