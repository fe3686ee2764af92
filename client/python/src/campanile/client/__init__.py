"""The asyncio client: typed calls, pipelined over one connection that comes back by itself."""

import asyncio
from collections.abc import AsyncIterator, Generator
from types import TracebackType
from typing import Any, Self, TypeVar

from campanile import limits
from campanile.client.calls import Calls, every_page
from campanile.client.changes import Changes, Inbox
from campanile.client.link import Link
from campanile.clock import jittered_sec
from campanile.enums import JobStatus, RunState
from campanile.errors import ConnectionLostError, DeadlineError, FailedError
from campanile.methods import METHODS
from campanile.tls import Tls, context_for
from campanile.views import DeadLetter, Job, JobChange, Run, RunChange, Welcome

T = TypeVar("T")


class Client(Calls):
    """A connected client; `Client.connect` makes it. All tasks of one event loop may share it; calls are pipelined."""

    def __init__(self, link: Link, timeout_sec: float, facts: dict[str, str] | None = None) -> None:
        self._link = link
        self._timeout_sec = timeout_sec
        self._facts = facts

    @classmethod
    def connect(
        cls, address: str, *, token: str, timeout_sec: float = limits.CALL_MS / 1000, tls: Tls | None = None
    ) -> "Connecting":
        """Connects: `async with Client.connect(...) as client`, or `client = await Client.connect(...)`.

        `address` is `host:port` of a node, or several with commas between: the next is tried when one does not answer.
        `tls://` in front of it is TLS, with the CAs that this machine trusts; `tls` says whom else to trust (True, a CA file,
        an `ssl.SSLContext`), and is TLS for addresses without a scheme too.
        `timeout_sec` is the deadline of each call, waiting for a connection and sending again included. An unknown token is
        told here (UnauthenticatedError), and so is a node that cannot be reached (ConnectionLostError).
        """
        return Connecting([part.strip() for part in address.split(",") if part.strip()], token, timeout_sec, tls)

    def with_timeout(self, timeout_sec: float) -> "Client":
        """The same connection with another deadline for each call."""
        return Client(self._link, timeout_sec, self._facts)

    def in_trace(self, traceparent: str) -> "Client":
        """The same connection for calls that are made in a span, given as W3C Trace Context writes it.

        It becomes the parent of what they do, of the runs that they make among it. Nodes of releases before traces refuse it.
        """
        return Client(self._link, self._timeout_sec, {"traceparent": traceparent})

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
        known = METHODS.get(method)
        has_key = known is not None and known.key is not None and given.get(known.key) is not None
        repeatable = has_key or (known is not None and not known.changes)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout_sec if timeout_sec is None else timeout_sec)
        wait_ms: float = limits.REPEAT_MIN_MS
        last: ConnectionLostError | FailedError | None = None
        while True:
            try:
                return await self._link.ask(method, given, deadline, facts=self._facts)
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

        No polling: the node answers when there is something to say.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_sec
        # Asked at first without waiting: a person may be needed already.
        wait_ms = 0
        while True:
            run = await self.run_get(run_id, wait_ms=wait_ms)
            if run.state.is_final or run.state == "NEEDS_CONFIRMATION":
                return run
            if loop.time() >= deadline:
                advice = "wait longer, or see wait_reason"
                waits = f" ({run.wait_reason})" if run.wait_reason else ""
                failed = f"; its last error: {run.last_error}" if run.last_error else ""
                message = f"run {run_id} is still {run.state}{waits}{failed}"
                error = DeadlineError("DEADLINE_EXCEEDED", message, advice=advice)
                error.last_error = run.last_error
                raise error
            left_ms = max(int((deadline - loop.time()) * 1000), 1)
            wait_ms = min(limits.WAIT_QUESTION_MS, left_ms, max(int(self._timeout_sec * 500), 1))

    async def run_watch(
        self,
        *,
        run_id: int | None = None,
        job_id: int | None = None,
        tenant_id: str | None = None,
        labels: str | None = None,
        state: RunState | None = None,
        after: str | None = None,
    ) -> Changes[RunChange]:
        """Runs as they change: `async for change in await client.run_watch(job_id=...)`. What is left out does not narrow.

        That of one run begins with its state and ends after its end. `after` goes on behind the cursor of another watch. What
        was lost, because nobody listened for too long, comes as `Dropped`.
        """
        wanted = {"runId": run_id, "jobId": job_id, "tenantId": tenant_id, "labels": labels, "after": after}
        return await self._watch("run.watch", RunChange, {**wanted, "state": None if state is None else state.value})

    async def job_watch(
        self,
        *,
        job_id: int | None = None,
        tenant_id: str | None = None,
        labels: str | None = None,
        after: str | None = None,
    ) -> Changes[JobChange]:
        """Definitions of jobs as they change; see `run_watch`."""
        wanted = {"jobId": job_id, "tenantId": tenant_id, "labels": labels, "after": after}
        return await self._watch("job.watch", JobChange, wanted)

    async def _watch(self, method: str, shape: type[T], wanted: dict[str, Any]) -> Changes[T]:
        async def opened(params: dict[str, Any], inbox: Inbox) -> Any:
            deadline = asyncio.get_running_loop().time() + self._timeout_sec
            return await self._link.ask(method, params, deadline, inbox)

        given = {name: value for name, value in wanted.items() if value is not None}
        return await Changes(shape, given, opened, self._link.stop).begin()

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

    def __init__(self, addresses: list[str], token: str, timeout_sec: float, tls: Tls | None) -> None:
        self._given = (addresses, token, timeout_sec, tls)
        self._client: Client | None = None

    async def _connected(self) -> Client:
        addresses, token, timeout_sec, tls = self._given
        link = Link(addresses, token, context_for(addresses, tls))
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
