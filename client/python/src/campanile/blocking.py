"""The same client for programs without asyncio: each call blocks its thread. Threads may share one client."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from campanile import client as _asyncio
from campanile import limits
from campanile.client.changes import Changes, Dropped
from campanile.errors import ClosedError
from campanile.tls import Tls
from campanile.views import Welcome

P = ParamSpec("P")
T = TypeVar("T")


class Client:
    """Connects when it is made; `with Client("127.0.0.1:7701", token=...) as client`. See `campanile.Client` for each call."""

    def __init__(
        self, address: str, *, token: str, timeout_sec: float = limits.CALL_MS / 1000, tls: Tls | None = None
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="campanile-client", daemon=True)
        self._thread.start()
        try:
            self._client = self._wait(_connect(address, token, timeout_sec, tls))
        except BaseException:
            self._end_loop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; calls of other threads raise ClosedError."""
        if not self._loop.is_closed():
            self._wait(self._client.close())
            self._end_loop()

    def in_trace(self, traceparent: str) -> "Client":
        """The same connection for calls that are made in a span; see `campanile.Client.in_trace`. Closing either closes both."""
        other = object.__new__(Client)
        other._loop, other._thread, other._client = self._loop, self._thread, self._client.in_trace(traceparent)
        return other

    @property
    def welcome(self) -> Welcome:
        """What the node said at the latest hello."""
        return self._client.welcome

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            call.close()
            raise ClosedError("CLIENT_CLOSED", "this client was closed", advice="connect a new one")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            # A thread that is interrupted while it waits does not want the answer any more.
            future.cancel()
            raise

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @staticmethod
    def _blocking(
        call: Callable[Concatenate[_asyncio.Client, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate["Client", P], T]:
        def blocking(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._wait(call(self._client, *args, **kwargs))

        blocking.__doc__, blocking.__name__ = call.__doc__, call.__name__
        return blocking

    @staticmethod
    def _iterating(
        call: Callable[Concatenate[_asyncio.Client, P], AsyncIterator[T]],
    ) -> Callable[Concatenate["Client", P], Iterator[T]]:
        def iterating(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            items = call(self._client, *args, **kwargs)
            while True:
                # Not StopAsyncIteration: a future cannot carry it.
                found, item = self._wait(_next(items))
                if not found:
                    return
                yield item[0]

        iterating.__doc__, iterating.__name__ = call.__doc__, call.__name__
        return iterating

    @staticmethod
    def _watching(
        call: Callable[Concatenate[_asyncio.Client, P], Coroutine[Any, Any, Changes[T]]],
    ) -> Callable[Concatenate["Client", P], Iterator[T | Dropped]]:
        def watching(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T | Dropped]:
            # At once: what happens between this call and the first look is told too.
            return self._changes(self._wait(call(self._client, *args, **kwargs)))

        watching.__doc__, watching.__name__ = call.__doc__, call.__name__
        return watching

    def _changes(self, changes: Changes[T]) -> Iterator[T | Dropped]:
        try:
            while True:
                found, item = self._wait(_next(changes))
                if not found:
                    return
                yield item[0]
        finally:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(changes.close)

    call = _blocking(_asyncio.Client.call)
    job_create = _blocking(_asyncio.Client.job_create)
    job_create_many = _blocking(_asyncio.Client.job_create_many)
    job_plan = _blocking(_asyncio.Client.job_plan)
    job_apply = _blocking(_asyncio.Client.job_apply)
    job_get = _blocking(_asyncio.Client.job_get)
    job_find = _blocking(_asyncio.Client.job_find)
    job_list = _blocking(_asyncio.Client.job_list)
    job_replace = _blocking(_asyncio.Client.job_replace)
    job_delete = _blocking(_asyncio.Client.job_delete)
    job_pause = _blocking(_asyncio.Client.job_pause)
    job_resume = _blocking(_asyncio.Client.job_resume)
    job_trigger = _blocking(_asyncio.Client.job_trigger)
    job_runs = _blocking(_asyncio.Client.job_runs)
    job_ledger = _blocking(_asyncio.Client.job_ledger)
    job_explain = _blocking(_asyncio.Client.job_explain)
    job_statistics = _blocking(_asyncio.Client.job_statistics)
    job_versions = _blocking(_asyncio.Client.job_versions)
    job_rollback = _blocking(_asyncio.Client.job_rollback)
    job_backfill = _blocking(_asyncio.Client.job_backfill)
    job_replay = _blocking(_asyncio.Client.job_replay)
    job_backfill_get = _blocking(_asyncio.Client.job_backfill_get)
    backfill_get = _blocking(_asyncio.Client.backfill_get)
    backfill_cancel = _blocking(_asyncio.Client.backfill_cancel)
    backfill_pause = _blocking(_asyncio.Client.backfill_pause)
    backfill_resume = _blocking(_asyncio.Client.backfill_resume)
    bulk_create = _blocking(_asyncio.Client.bulk_create)
    bulk_list = _blocking(_asyncio.Client.bulk_list)
    bulk_get = _blocking(_asyncio.Client.bulk_get)
    bulk_abort = _blocking(_asyncio.Client.bulk_abort)
    bulk_undo = _blocking(_asyncio.Client.bulk_undo)
    run_get = _blocking(_asyncio.Client.run_get)
    run_list = _blocking(_asyncio.Client.run_list)
    run_explain = _blocking(_asyncio.Client.run_explain)
    run_failed = _blocking(_asyncio.Client.run_failed)
    run_cancel = _blocking(_asyncio.Client.run_cancel)
    run_retry = _blocking(_asyncio.Client.run_retry)
    run_confirm = _blocking(_asyncio.Client.run_confirm)
    run_priority = _blocking(_asyncio.Client.run_priority)
    dag_create = _blocking(_asyncio.Client.dag_create)
    dag_nodes = _blocking(_asyncio.Client.dag_nodes)
    dag_retry = _blocking(_asyncio.Client.dag_retry)
    dag_mark = _blocking(_asyncio.Client.dag_mark)
    dag_pause = _blocking(_asyncio.Client.dag_pause)
    dag_resume = _blocking(_asyncio.Client.dag_resume)
    run_log = _blocking(_asyncio.Client.run_log)
    run_log_text = _blocking(_asyncio.Client.run_log_text)
    run_wait = _blocking(_asyncio.Client.run_wait)
    audit_list = _blocking(_asyncio.Client.audit_list)
    dlq_list = _blocking(_asyncio.Client.dlq_list)
    dlq_causes = _blocking(_asyncio.Client.dlq_causes)
    dlq_redrive = _blocking(_asyncio.Client.dlq_redrive)
    dlq_discard = _blocking(_asyncio.Client.dlq_discard)
    outbox_list = _blocking(_asyncio.Client.outbox_list)
    outbox_resend = _blocking(_asyncio.Client.outbox_resend)
    outbox_discard = _blocking(_asyncio.Client.outbox_discard)
    schedule_load = _blocking(_asyncio.Client.schedule_load)
    schedule_preview = _blocking(_asyncio.Client.schedule_preview)
    tenant_get = _blocking(_asyncio.Client.tenant_get)
    tenant_list = _blocking(_asyncio.Client.tenant_list)
    tenant_set = _blocking(_asyncio.Client.tenant_set)
    tenant_delete = _blocking(_asyncio.Client.tenant_delete)
    tenant_pause = _blocking(_asyncio.Client.tenant_pause)
    tenant_resume = _blocking(_asyncio.Client.tenant_resume)
    target_list = _blocking(_asyncio.Client.target_list)
    target_get = _blocking(_asyncio.Client.target_get)
    target_set = _blocking(_asyncio.Client.target_set)
    target_delete = _blocking(_asyncio.Client.target_delete)
    calendar_list = _blocking(_asyncio.Client.calendar_list)
    calendar_get = _blocking(_asyncio.Client.calendar_get)
    calendar_set = _blocking(_asyncio.Client.calendar_set)
    calendar_delete = _blocking(_asyncio.Client.calendar_delete)
    calendar_preview = _blocking(_asyncio.Client.calendar_preview)
    system_pause = _blocking(_asyncio.Client.system_pause)
    system_resume = _blocking(_asyncio.Client.system_resume)
    clock_accept = _blocking(_asyncio.Client.clock_accept)
    system_info = _blocking(_asyncio.Client.system_info)
    executor_list = _blocking(_asyncio.Client.executor_list)
    pool_list = _blocking(_asyncio.Client.pool_list)
    cluster_members = _blocking(_asyncio.Client.cluster_members)
    cluster_shards = _blocking(_asyncio.Client.cluster_shards)
    cluster_plan = _blocking(_asyncio.Client.cluster_plan)
    cluster_events = _blocking(_asyncio.Client.cluster_events)
    cluster_cordon = _blocking(_asyncio.Client.cluster_cordon)
    cluster_uncordon = _blocking(_asyncio.Client.cluster_uncordon)
    run_watch = _watching(_asyncio.Client.run_watch)
    job_watch = _watching(_asyncio.Client.job_watch)
    jobs = _iterating(_asyncio.Client.jobs)
    runs = _iterating(_asyncio.Client.runs)
    dead_letters = _iterating(_asyncio.Client.dead_letters)


async def _connect(address: str, token: str, timeout_sec: float, tls: Tls | None) -> _asyncio.Client:
    return await _asyncio.Client.connect(address, token=token, timeout_sec=timeout_sec, tls=tls)


async def _next(items: AsyncIterator[T]) -> tuple[bool, list[T]]:
    try:
        return True, [await anext(items)]
    except StopAsyncIteration:
        return False, []
