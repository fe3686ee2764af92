"""The clock of credit and leases, and the jitter of waits."""

import random
import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    """Milliseconds of the clock that goes on while the machine sleeps (where the system has one)."""
    return time.clock_gettime_ns(_BOOT) // 1_000_000


def jittered_sec(wait_ms: float) -> float:
    """A random wait between half of `wait_ms` and all of it, in seconds: callers that failed together return apart."""
    return wait_ms / 2_000 * (1 + random.random())
