"""The executor: a program with handlers that runs attempts of jobs.

What it holds to, so that the node's promises hold: it starts no assignment whose credit is older than two seconds on its own
clock, whose epoch is below the highest seen of that shard, or whose token is not above the highest seen of that run; it names
everything it holds after each reconnect; it sends a result until a node calls it durable or refused; it never runs more bodies
than it has slots.
"""

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from campanile import limits
from campanile.executor.bodies import HandlerFunction, Handling
from campanile.executor.config import Config, Status
from campanile.executor.handle import ExecutorHandle
from campanile.executor.params import converter
from campanile.tls import Tls, context_for

H = TypeVar("H", bound=HandlerFunction)


class Executor:
    """Handlers and how to reach the nodes. `serve()` runs it as a program; `start()` inside a program that has a loop.

    `address` is `host:port` of a node, or several with commas between; `token` one of role EXECUTOR, whose pools `pools` are.
    `slots` bodies run at once at most. `executor_id` is a stable name, shown to people (default: host and process id).
    `resources` is what the machine has for bodies: cores, MiB, MiB; 0 = not limited. `grace_sec` (5 by default, at most 6) is
    the time of a body that was told to stop; with onLostContact STOP it is told early enough to have ended before the lease
    has. `tls://` in front of an address is TLS, with the CAs that this machine trusts; `tls` says whom else to trust (True, a
    CA file, an `ssl.SSLContext`), and is TLS for addresses without a scheme too. A node of a cluster tells it of the others, to
    which it connects as well, unless `follow` is False.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str,
        pools: Sequence[str] = ("default",),
        slots: int = 1,
        executor_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        resources: tuple[float, int, int] = (0.0, 0, 0),
        grace_sec: float = limits.STOP_GRACE_MS / 1000,
        tls: Tls | None = None,
        follow: bool = True,
    ) -> None:
        self._addresses = [part.strip() for part in address.split(",") if part.strip()]
        self._token = token
        self._tls = context_for(self._addresses, tls)
        self._id = executor_id if executor_id is not None else f"{socket.gethostname()}-{os.getpid()}"
        self._pools = [pools] if isinstance(pools, str) else list(pools)
        self._slots = slots
        self._labels = dict(labels or {})
        self._resources = resources
        self._follow = follow
        self._grace_ms = int(grace_sec * 1000)
        self._handlers: dict[str, Handling] = {}
        self._any: Handling | None = None
        if not self._addresses:
            raise ValueError("no node to connect to")
        if not 1 <= slots <= limits.EXECUTOR_SLOTS_MAX:
            raise ValueError(f"slots must be 1..{limits.EXECUTOR_SLOTS_MAX}, not {slots}")
        if not 0 <= self._grace_ms <= limits.STOP_GRACE_MAX_MS:
            most, lease = limits.STOP_GRACE_MAX_MS / 1000, limits.LEASE_MS / 1000
            raise ValueError(
                f"grace_sec must be 0..{most:g}, not {grace_sec:g}, so that a stopped body has ended before the executor's lease "
                f"of {lease:g} s has"
            )
        if not 1 <= len(self._id) <= limits.NAME_CHARS:
            raise ValueError(f"an executor id has 1..{limits.NAME_CHARS} characters")
        if not self._pools:
            raise ValueError("an executor serves at least one pool")

    def handler(self, name: str) -> Callable[[H], H]:
        """Registers a function for the action `{"kind": "HANDLER", "name": name}`; by default that is the job's name.

        The function takes a Context and the params, and returns the result: JSON of up to 16 KiB, or None. Params come as they
        are (JSON as Python values), or, when the second parameter is annotated with a dataclass, as one of these: a field that
        is missing or of another type fails the run for good, with the code INVALID_PARAMS; names that the dataclass does not
        have are passed over. An annotation that cannot be made from JSON is refused here, with a TypeError. A coroutine
        function runs on the event loop; any other function in a thread of its own. Raising fails the attempt: see JobError and
        PermanentError.
        """

        def register(function: H) -> H:
            if name in self._handlers:
                raise ValueError(f"there is a handler {name!r} already")
            self._handlers[name] = Handling(function, converter(name, function))
            return function

        return register

    def any_handler(self, function: H) -> H:
        """Registers a function for every name that has none of its own; the name is in `ctx.assignment.action`."""
        self._any = Handling(function, converter("any", function))
        return function

    def start(self) -> ExecutorHandle:
        """Starts it; coroutine functions run on the present event loop. It connects, and connects anew, until it is drained."""
        if not self._handlers and self._any is None:
            raise ValueError("no handler: there is nothing it could run")
        cpu, memory_mb, storage_mb = self._resources
        register = {
            "executorId": self._id,
            # Below 2^53, as it is shown in JSON; kept over reconnects, new for each start.
            "session": random.getrandbits(53),
            "pools": self._pools,
            "slots": self._slots,
            "handlers": sorted(self._handlers),
            "anyHandler": self._any is not None,
            "commands": False,
            "labels": self._labels,
            "cpu": float(cpu),
            "memoryMb": memory_mb,
            "storageMb": storage_mb,
            "stopGraceSec": self._grace_ms / 1000,
        }
        return ExecutorHandle(
            Config(
                addresses=self._addresses,
                token=self._token,
                tls=self._tls,
                register=register,
                handlers=dict(self._handlers),
                any_handler=self._any,
                grace_ms=self._grace_ms,
                follow=self._follow,
                bodies_loop=asyncio.get_running_loop(),
            )
        )

    async def run(self, *, drain_sec: float = limits.DRAIN_MS / 1000) -> Status:
        """Runs until SIGTERM or SIGINT, then drains: see `ExecutorHandle.drain`. A second signal ends the drain's patience."""
        handle = self.start()
        loop = asyncio.get_running_loop()
        limits_sec = iter((drain_sec,))

        def told_to_end() -> None:
            handle.begin_drain(next(limits_sec, 0.0))

        signals = (signal.SIGTERM, signal.SIGINT)
        # Only the main thread may take signals.
        with contextlib.suppress(RuntimeError, ValueError):
            for number in signals:
                loop.add_signal_handler(number, told_to_end)
        try:
            return await handle.ended()
        except asyncio.CancelledError:
            await handle.kill()
            raise
        finally:
            with contextlib.suppress(RuntimeError, ValueError):
                for number in signals:
                    loop.remove_signal_handler(number)

    def serve(self, *, drain_sec: float = limits.DRAIN_MS / 1000) -> Status:
        """`run()` for a program without an event loop; the last status."""
        return asyncio.run(self.run(drain_sec=drain_sec))
