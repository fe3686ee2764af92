"""Runs bodies: coroutine functions as tasks of the author's event loop, other functions each in a thread of its own.

Neither is the thread of the executor's session, so a handler that blocks does not stop heartbeats. Every end is told, once, and
only when the body is really gone: a slot is never given away while its body runs.
"""

import asyncio
import inspect
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol, cast

from campanile import limits
from campanile.executor import failure
from campanile.executor.context import Context
from campanile.executor.failure import JobError, PermanentError
from campanile.executor.params import Convert
from campanile.shapes import Json, to_payload

HandlerFunction = Callable[[Context, Any], Json] | Callable[[Context, Any], Awaitable[Json]]
"""Takes the attempt and its params, returns the result: JSON, or None for none."""


_log = logging.getLogger("campanile.executor")


@dataclass(frozen=True, slots=True)
class Handling:
    """A handler, and what makes of the params what it takes."""

    function: HandlerFunction
    convert: Convert


@dataclass(frozen=True, slots=True)
class Report:
    """How a body ended: with a result's JSON text, with an error, or neither: it was canceled."""

    payload: bytes | None = None
    error: JobError | None = None
    aborted: bool = False


class Body(Protocol):
    """A body that runs."""

    def abort(self) -> None:
        """Makes it end where it waits, if it can be made to."""


def start(handling: Handling, ctx: Context, loop: asyncio.AbstractEventLoop, ended: Callable[[Report], None]) -> Body:
    """Starts the body; `ended` is called from its thread. RuntimeError when the loop is closed."""
    handler, convert = handling.function, handling.convert
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
        return _TaskBody(cast(Callable[[Context, Any], Awaitable[Json]], handler), convert, ctx, loop, ended)
    return _ThreadBody(cast(Callable[[Context, Any], Json], handler), convert, ctx, ended)


class _TaskBody:
    def __init__(
        self,
        handler: Callable[[Context, Any], Awaitable[Json]],
        convert: Convert,
        ctx: Context,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[Report], None],
    ) -> None:
        self._handler, self._convert = handler, convert
        self._ctx, self._loop, self._ended = ctx, loop, ended
        self._task: asyncio.Task[None] | None = None
        self._aborted = False
        loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._aborted:
            self._ended(Report(aborted=True))
            return
        self._task = self._loop.create_task(self._run(), name=f"campanile-run-{self._ctx.run_id}")

    async def _run(self) -> None:
        report = Report(aborted=True)
        try:
            report = _finished(self._ctx, await self._handler(self._ctx, self._convert(self._ctx.assignment.params)))
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            report = _failed(self._ctx, error)
        finally:
            self._ended(report)

    def abort(self) -> None:
        self._aborted = True
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class _ThreadBody:
    """A thread cannot be made to end: a function that does not look at `ctx` keeps its slot until it returns."""

    def __init__(
        self, handler: Callable[[Context, Any], Json], convert: Convert, ctx: Context, ended: Callable[[Report], None]
    ) -> None:
        self._handler, self._convert, self._ctx, self._ended = handler, convert, ctx, ended
        context = copy_context()
        # A daemon, so that a function that never returns cannot keep the program from ending.
        thread = threading.Thread(target=context.run, args=(self._run,), name=f"run-{ctx.run_id}", daemon=True)
        thread.start()

    def _run(self) -> None:
        try:
            report = _finished(self._ctx, self._handler(self._ctx, self._convert(self._ctx.assignment.params)))
        except BaseException as error:
            report = _failed(self._ctx, error)
        self._ended(report)

    def abort(self) -> None:
        pass


def _finished(ctx: Context, result: Json) -> Report:
    if result is None:
        return Report()
    try:
        payload = to_payload(result)
    except (TypeError, ValueError, RecursionError) as error:
        return Report(error=JobError(f"the result is not JSON: {error}", code=failure.INVALID_RESULT))
    if len(payload) > limits.RESULT_BYTES:
        ctx.log(f"[the result of {len(payload)} bytes is not kept; at most {limits.RESULT_BYTES} are]")
    return Report(payload=payload)


def _failed(ctx: Context, error: BaseException) -> Report:
    stopped = f" after it was told to stop ({ctx.stop_reason})" if ctx.is_canceled else ""
    what = ("run %s of job %s, attempt %s, failed%s: %s: %s", ctx.run_id, ctx.job_name, ctx.attempt, stopped)
    if isinstance(error, JobError):
        _log.warning(*what, error.code, error.message)
    else:
        _log.error(*what, type(error).__name__, error, exc_info=error)
    if isinstance(error, PermanentError):
        return Report(error=PermanentError(error.message, code=error.code))
    if isinstance(error, JobError):
        return Report(error=JobError(error.message, code=error.code))
    # What a person needs to find the fault; the message alone seldom says where.
    ctx.log("".join(traceback.format_exception(error)).rstrip())
    code = failure.HANDLER_ERROR if isinstance(error, Exception) else failure.HANDLER_PANIC
    return Report(error=JobError(f"{type(error).__name__}: {error}", code=code))
