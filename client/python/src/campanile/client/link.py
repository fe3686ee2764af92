"""A client's connection: sends calls, hands answers to those who wait, connects anew when it breaks.

Calls that were written when a connection broke fail, since nobody knows whether they were carried out; those that still wait
are sent over the next connection.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from typing import Any

from campanile import limits
from campanile.client.changes import NOTICES, Inbox
from campanile.clock import jittered_sec
from campanile.errors import (
    ApiError,
    CampanileError,
    ClosedError,
    ConnectionLostError,
    DeadlineError,
    ProtocolError,
    api_error,
    connection_lost,
    protocol_error,
)
from campanile.views import Welcome
from campanile.wire import ID_MAX, Answer, Connection, Message, open_connection, request


class Link:
    """See the module's text. All of it lives on one event loop."""

    def __init__(self, addresses: Sequence[str], token: str, tls: ssl.SSLContext | None = None) -> None:
        if not addresses:
            raise ValueError("no address to connect to")
        self.welcome: Welcome | None = None
        self._addresses = list(addresses)
        self._next = 0
        self._token = token
        self._tls = tls
        self._connection: Connection | None = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._opening: dict[int, Inbox] = {}
        self._watches: dict[int, Inbox] = {}
        self._last_id = 0
        self._in_flight = asyncio.Semaphore(limits.CALLS_IN_FLIGHT)
        self._waiting: set[asyncio.Future[None]] = set()
        self._last_error: CampanileError | None = None
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """The first connection; its failure is the caller's to know."""
        self._take(*await self._open_any())
        self._keeper = asyncio.create_task(self._keep())

    def said(self) -> Welcome:
        """What the node said at the latest hello."""
        if self.welcome is None:
            raise ClosedError("NOT_CONNECTED", "this client was never connected", advice="await Client.connect(...)")
        return self.welcome

    async def close(self) -> None:
        """Ends the connection; calls under way fail."""
        self._closed = True
        error = ClosedError("CLIENT_CLOSED", "this client was closed", advice="connect a new one")
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if self._connection is not None:
            self._connection.close(error)
        self._wake(error)

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        deadline: float,
        inbox: Inbox | None = None,
        facts: dict[str, str] | None = None,
    ) -> Any:
        """One call, sent once; `deadline` on the loop's clock. Into the inbox goes what the watch tells that it opens."""
        ident = 0
        try:
            async with asyncio.timeout_at(deadline), self._in_flight:
                connection = await self._up()
                ident = self._next_id()
                frame = request(ident, method, params, facts)
                if self.welcome is not None and len(frame) > self.welcome.max_frame_bytes:
                    raise _too_large(len(frame), self.welcome.max_frame_bytes)
                if inbox is not None:
                    self._opening[ident] = inbox
                answer = self._pending[ident] = asyncio.get_running_loop().create_future()
                if len(self._pending) == 1:
                    connection.heard_at = asyncio.get_running_loop().time()
                connection.send(frame)
                return await answer
        except TimeoutError:
            raise self._late(method, sent=ident in self._pending) from self._last_error
        finally:
            self._pending.pop(ident, None)

    def stop(self, inbox: Inbox) -> None:
        """Ends the watch that tells into this inbox, wherever it is."""
        for watch_id in [watch_id for watch_id, known in self._watches.items() if known is inbox]:
            self._stop(watch_id)

    def _stop(self, watch_id: int) -> None:
        """Nobody waits for the answer: a watch that is not there any more is as good as stopped."""
        inbox = self._watches.pop(watch_id, None)
        if inbox is not None:
            inbox.close()
        if self._connection is not None:
            self._connection.send(request(self._next_id(), "watch.stop", {"watchId": watch_id}))

    async def _up(self) -> Connection:
        """The connection, with room to write; waits for one, and raises when a node refuses us."""
        while True:
            if self._closed:
                raise ClosedError("CLIENT_CLOSED", "this client was closed", advice="connect a new one")
            connection = self._connection
            if connection is not None:
                await connection.room()
                if connection is self._connection:
                    return connection
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % ID_MAX + 1
            if self._last_id not in self._pending:
                return self._last_id

    def _late(self, method: str, *, sent: bool) -> DeadlineError:
        what = "no answer" if sent else f"not sent ({self._last_error.message})" if self._last_error else "not sent"
        advice = (
            "read what became of it before you repeat it, or use a key that makes repeating safe"
            if sent
            else "check that the node runs and is not overloaded, then ask again"
        )
        error = DeadlineError("DEADLINE_EXCEEDED", f"{method}: {what} within the deadline", advice=advice)
        error.outcome_unknown = sent
        return error

    def _take(self, connection: Connection, welcome: Welcome) -> None:
        self._connection, self.welcome, self._last_error = connection, welcome, None
        self._lost.clear()
        connection.listen(self._heard, self._broken)
        self._wake(None)

    def _wake(self, error: CampanileError | None) -> None:
        for waiter in self._waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def _heard(self, message: Message) -> None:
        if not isinstance(message, Answer):
            inbox = self._watches.get(message.params.get("watchId", 0)) if message.method in NOTICES else None
            if inbox is not None and not inbox.put(message):
                # Its owner does not keep up, or is gone. It goes on where it was, from the node's memory.
                self._stop(message.params["watchId"])
            return
        opened = self._opening.pop(message.ident, None)
        if opened is not None and message.error is None:
            # Before its answer: changes may follow at once.
            self._watches[message.result["watchId"]] = opened
        answer = self._pending.pop(message.ident, None)
        if answer is None or answer.done():
            return
        if message.error is None:
            answer.set_result(message.result)
        else:
            answer.set_exception(api_error(message.error))

    def _broken(self, error: CampanileError) -> None:
        self._connection, self._last_error = None, error
        pending, self._pending = self._pending, {}
        watches, self._watches, self._opening = self._watches, {}, {}
        for inbox in watches.values():
            inbox.close()
        for answer in pending.values():
            if not answer.done():
                # Whatever the reason is: these calls may or may not have been carried out.
                answer.set_exception(_as_lost(error))
        self._lost.set()

    async def _keep(self) -> None:
        """Connects anew for as long as the client lives."""
        wait_ms: float = limits.RECONNECT_MIN_MS
        while not self._closed:
            if self._connection is not None:
                wait_ms = limits.RECONNECT_MIN_MS
                with contextlib.suppress(TimeoutError):
                    # Not wait_for: before Python 3.12 it can swallow a cancellation.
                    async with asyncio.timeout(limits.SILENCE_MS / 4_000):
                        await self._lost.wait()
                self._end_silence()
                continue
            try:
                self._take(*await self._open_any())
            except CampanileError as error:
                self._last_error = error
                if isinstance(error, ApiError | ProtocolError):
                    self._wake(error)
                await asyncio.sleep(jittered_sec(wait_ms))
                wait_ms = min(wait_ms * 2, limits.RECONNECT_MAX_MS)

    def _end_silence(self) -> None:
        connection = self._connection
        if connection is None or not self._pending:
            return
        if asyncio.get_running_loop().time() - connection.heard_at > limits.SILENCE_MS / 1000:
            connection.close(connection_lost(connection.address, "silent while calls wait"))

    async def _open_any(self) -> tuple[Connection, Welcome]:
        """Tries each address once, from the present one on."""
        last: CampanileError | None = None
        for _ in self._addresses:
            try:
                return await open_connection(self._addresses[self._next], self._token, "CALLER", self._tls)
            except CampanileError as error:
                last = error
                self._next = (self._next + 1) % len(self._addresses)
        raise last or protocol_error("no address to connect to")


def _as_lost(error: CampanileError) -> CampanileError:
    """Each call gets an error of its own: a shared one would gather the tracebacks of all."""
    lost = ClosedError if isinstance(error, ClosedError) else ConnectionLostError
    code = error.code if isinstance(error, ClosedError | ConnectionLostError) else "CONNECTION_LOST"
    copy = lost(code, error.message, advice=error.advice)
    copy.__cause__ = error
    return copy


def _too_large(frame_bytes: int, most: int) -> ApiError:
    return api_error({"code": "413_BODY_TOO_LARGE", "message": f"the message has {frame_bytes} bytes; at most {most}"})
