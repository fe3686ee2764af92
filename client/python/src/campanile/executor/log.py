"""What a body writes to its log, until it is sent: bounded per attempt; what does not fit is counted and said. Thread-safe."""

import threading
from collections.abc import Callable

from campanile import limits


class LogBudget:
    """Bytes that the logs of all attempts of an executor may hold together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unsent_bytes = 0

    def reserve(self, count: int) -> bool:
        """Takes bytes, if there are so many."""
        with self._lock:
            if self._unsent_bytes + count > limits.EXECUTOR_LOG_UNSENT_BYTES:
                return False
            self._unsent_bytes += count
            return True

    def release(self, count: int) -> None:
        """Gives them back."""
        with self._lock:
            self._unsent_bytes -= count


class AttemptLog:
    """The log of one attempt. `tell` is called, from any thread, when there is something to send."""

    def __init__(self, budget: LogBudget, tell: Callable[[], None]) -> None:
        self._budget = budget
        self._tell = tell
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._total_bytes = 0
        self._dropped_bytes = 0
        self._told = False

    def write(self, text: bytes) -> None:
        """Takes all of it or nothing; never waits."""
        with self._lock:
            full = (
                len(self._unsent) + len(text) > limits.LOG_UNSENT_BYTES
                or self._total_bytes + len(text) > limits.LOG_BYTES_PER_ATTEMPT
            )
            if full or not self._budget.reserve(len(text)):
                self._dropped_bytes += len(text)
                return
            self._unsent += text
            self._total_bytes += len(text)
            told, self._told = self._told, True
        if not told:
            self._tell()

    def take(self, *, last: bool) -> bytes:
        """The next piece to send, empty when there is none. `last`: the attempt is over, so what was dropped is said."""
        with self._lock:
            self._told = False
            note = b""
            if last and self._dropped_bytes:
                note = f"\n[{self._dropped_bytes} bytes of log dropped]\n".encode()
                self._dropped_bytes = 0
            room = limits.LOG_CHUNK_BYTES
            self._unsent += note
            piece = bytes(self._unsent[:room])
            del self._unsent[:room]
            self._budget.release(len(piece) - len(note))
        return piece
