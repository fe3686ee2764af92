"""Real nodes as processes of their own, and waiting for conditions."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("CAMPANILE_BIN") or ROOT / "target/debug/campanile")
PATIENCE_SEC = 60.0
"""Far above what anything here takes; reached only when something hangs."""
_names = itertools.count(1)


def unique(what: str) -> str:
    """A name that no other test uses."""
    return f"{what}-{os.getpid()}-{next(_names)}"


async def eventually(look: Callable[[], Awaitable[T]], *, within_sec: float = PATIENCE_SEC) -> T:
    """Polls until `look` gives something true."""
    until = time.monotonic() + within_sec
    while True:
        found = await look()
        if found:
            return found
        assert time.monotonic() < until, f"still {found!r} after {within_sec} s"
        await asyncio.sleep(0.02)


def free_port() -> int:
    """One that nobody listens on now; a node that is started again needs the same one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Node:
    """`campanile dev` on a directory: no demo jobs, no executor of its own unless wanted."""

    def __init__(self, data: Path, *, executor: bool = False, environment: Mapping[str, str] | None = None) -> None:
        assert BINARY.exists(), f"{BINARY} is missing: cargo build --bin campanile, or set CAMPANILE_BIN"
        self.data = data
        self.rpc = f"127.0.0.1:{free_port()}"
        self.token = ""
        self._own_executor = executor
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Until it says where it is. It ends when this process does."""
        command = [
            str(BINARY),
            "dev",
            "--no-demo",
            "--http",
            "127.0.0.1:0",
            "--rpc",
            self.rpc,
            "--data",
            str(self.data),
        ]
        command += [] if self._own_executor else ["--no-executor"]
        command += ["--with-parent", str(os.getpid())]
        log = (self.data.parent / f"{self.data.name}.log").open("a")
        with log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **self._environment}
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, _, value = line.strip().partition("=")
            if name == "token":
                self.token = value
                return
        raise AssertionError(f"the node ended without saying where it is: {self._process.wait()}")

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            # Its threads stop one by one; until the last has, it may still answer.
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def kill(self) -> None:
        """As `kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def stop(self) -> None:
        """The end of a test. A node that was made to stand still is made to go first."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self.kill()
