"""How a body says that it failed, and the codes that the executor itself reports."""

from typing import Final

HANDLER_ERROR: Final = "HANDLER_ERROR"
"""The handler raised an exception."""
HANDLER_PANIC: Final = "HANDLER_PANIC"
"""The handler raised what ends programs: SystemExit, KeyboardInterrupt and the like."""
NO_HANDLER: Final = "NO_HANDLER"
INVALID_PARAMS: Final = "INVALID_PARAMS"
INVALID_RESULT: Final = "INVALID_RESULT"
RESULT_TOO_LARGE: Final = "RESULT_TOO_LARGE"
BODY_ABORTED: Final = "BODY_ABORTED"
CANCELED: Final = "CANCELED"
TIMEOUT: Final = "TIMEOUT"
LOST_CONTACT: Final = "LOST_CONTACT"
EXECUTOR_SHUTDOWN: Final = "EXECUTOR_SHUTDOWN"
# Refused before the body began.
CREDIT_VOID: Final = "CREDIT_VOID"
OLD_EPOCH: Final = "OLD_EPOCH"
OLD_TOKEN: Final = "OLD_TOKEN"  # noqa: S105 - a code, no secret
NO_SLOT: Final = "NO_SLOT"
DRAINING: Final = "DRAINING"
UNKNOWN_ASSIGNMENT: Final = "UNKNOWN_ASSIGNMENT"


class JobError(Exception):
    """Raised by a handler: the attempt failed; the job's retry policy decides whether there is another.

    `code` is short and stable (up to 128 bytes), `message` a sentence (up to 2 KiB). Any other exception fails the attempt too,
    with the code `HANDLER_ERROR`.
    """

    def __init__(self, message: str, *, code: str = HANDLER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class PermanentError(JobError):
    """Raised by a handler: trying again would be in vain.

    The run ends as FAILED now, however many attempts its retry policy has left. A retry by hand or a redrive runs it again.
    """
