"""Why a call has no answer, and what that says of its effect.

Three kinds, as in the node: *rejected* (`RejectedError`: the caller's doing, nothing changed), *failed* (`FailedError`: try again
later), *bug* (`NodeBugError`: please report). Besides them the errors of the way there: `ConnectionLostError`, `DeadlineError`,
`ProtocolError`.
"""

from collections.abc import Mapping
from typing import Any


class CampanileError(Exception):
    """Base of every error of a call.

    `code` is stable, e.g. `423_JOB_PAUSED` from a node, or `CONNECTION_LOST` from this client; `reason` is the code without
    its number, `status` that number (0 for errors of this client). `message` is one sentence for people, `advice` what to do.
    `detail` is what else the node said, `retry_after_sec` when asking again makes sense. `outcome_unknown`: the call may or
    may not have been carried out.
    """

    outcome_unknown: bool = False

    def __init__(
        self, code: str, message: str, *, advice: str = "", detail: Any = None, retry_after_sec: float | None = None
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.advice = advice
        self.detail = detail
        self.retry_after_sec = retry_after_sec

    @property
    def status(self) -> int:
        """HTTP's status, or 0."""
        number, _, _ = self.code.partition("_")
        return int(number) if number.isdecimal() else 0

    @property
    def reason(self) -> str:
        """The code without the status, e.g. `JOB_PAUSED`."""
        return self.code.partition("_")[2] if self.status else self.code

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" (advice: {self.advice})" if self.advice else "")


class ApiError(CampanileError):
    """The node answered that it will not, or cannot."""


class RejectedError(ApiError):
    """The caller's doing; nothing changed, and the same call will be refused again until something else changes."""


class InvalidArgumentError(RejectedError):
    """A field has a wrong value, type or name, or the body is none."""


class InvalidScheduleError(InvalidArgumentError):
    """A schedule that cannot be read, never fires, or names an unknown time zone."""


class TooLargeError(InvalidArgumentError):
    """The message is larger than a node takes."""


class AccessError(RejectedError):
    """No token, a wrong one, or one that may not do this."""


class UnauthenticatedError(AccessError):
    """The token is not known."""


class ForbiddenError(AccessError):
    """The token may not do this."""


class NotFoundError(RejectedError):
    """There is no such thing, or it belongs to another tenant."""


class ConflictError(RejectedError):
    """The present state does not allow it."""


class DuplicateNameError(ConflictError):
    """The tenant has a job of this name."""


class IdempotencyKeyReusedError(ConflictError):
    """The key of this create came with another job before."""


class StaleVersionError(ConflictError):
    """The version is not the current one."""


class IllegalStateError(ConflictError):
    """The state of the job or run does not allow it."""


class RunActiveError(ConflictError):
    """The concurrency policy allows no second run now."""


class JobPausedError(ConflictError):
    """The job is paused."""


class QuotaError(RejectedError):
    """A limit of the tenant or job is reached."""


class FailedError(ApiError):
    """Not the caller's doing; the same call can succeed later."""


class UnavailableError(FailedError):
    """The node is starting, stopping, overloaded, or cannot write. Nothing changed unless the message says so."""


class NodeTimeoutError(FailedError):
    """The node had no answer in time."""

    outcome_unknown = True


class NodeBugError(ApiError):
    """A bug of the node; the message has the id to report."""

    outcome_unknown = True


class ConnectionLostError(CampanileError):
    """The connection broke before the answer, or could not be made."""

    outcome_unknown = True


class DeadlineError(CampanileError):
    """No answer within the call's deadline. `last_error`: of a run that was waited for, why its latest attempt failed."""

    outcome_unknown = True
    last_error: str | None = None


class ProtocolError(CampanileError):
    """The peer does not speak this protocol, or not this version of it."""

    outcome_unknown = True


class ClosedError(CampanileError):
    """This client was closed."""


_KNOWN: dict[str, tuple[type[ApiError], str]] = {
    "400_INVALID_ARGUMENT": (InvalidArgumentError, "correct the field that the message names"),
    "400_MALFORMED_BODY": (InvalidArgumentError, "send params that are JSON, in UTF-8"),
    "400_INVALID_SCHEDULE": (
        InvalidScheduleError,
        "try the schedule with schedule_preview until it shows the instants you mean",
    ),
    "400_SCHEDULE_NEVER_FIRES": (InvalidScheduleError, "give the schedule at least one instant in the future"),
    "400_UNKNOWN_TIMEZONE": (InvalidScheduleError, "use a name of the time zone database, such as Europe/Berlin"),
    "400_NO_SECRET_KEY": (
        InvalidArgumentError,
        "have the node's operator set [secrets] key_file, or leave secret_params out",
    ),
    "401_UNAUTHENTICATED": (
        UnauthenticatedError,
        "use a token of the node's token file; `campanile token new` makes one",
    ),
    "403_FORBIDDEN": (ForbiddenError, "use a credential of the role, tenant and pools that this needs"),
    "404_NOT_FOUND": (NotFoundError, "check the id, and that the token's tenant owns it"),
    "404_UNKNOWN_METHOD": (NotFoundError, "check the method's name, and that the node is not older than this client"),
    "405_METHOD_NOT_ALLOWED": (InvalidArgumentError, "use the HTTP method that the API document names"),
    "409_DUPLICATE_NAME": (
        DuplicateNameError,
        "choose another name, replace the job, or create with an idempotency_key",
    ),
    "409_IDEMPOTENCY_KEY_REUSED": (IdempotencyKeyReusedError, "use a new key for a different request"),
    "409_STALE_VERSION": (StaleVersionError, "read the job again and replace it with the version that it has then"),
    "409_ILLEGAL_STATE": (IllegalStateError, "read it again; its state decides what can be done"),
    "409_RUN_ACTIVE": (RunActiveError, "wait for the active run or cancel it, or set concurrency_policy to ALLOW"),
    "409_STALE_TOKEN": (ConflictError, "forget this result; a newer attempt counts"),
    "409_NO_INSTANTS": (ConflictError, "backfill a job with a CRON or FIXED_RATE trigger; trigger another one by hand"),
    "409_COMPENSATED": (ConflictError, "trigger the job anew, or retry with force=True if it may go on all the same"),
    "409_BACKFILL_ACTIVE": (ConflictError, "wait for the job's backfill or cancel it (backfill_cancel)"),
    "409_DAG_CYCLE_DETECTED": (ConflictError, "take one of the edges of the cycle out"),
    "410_HISTORY_GONE": (ConflictError, "trigger the DAG again, or the job of the node by itself"),
    "413_BODY_TOO_LARGE": (TooLargeError, "send less at once, and keep large data outside of params"),
    "413_TOO_MANY_INSTANTS": (TooLargeError, "end the interval at the instant that the message names"),
    "415_UNSUPPORTED_MEDIA_TYPE": (InvalidArgumentError, "declare the body as application/json"),
    "423_JOB_PAUSED": (JobPausedError, "resume the job (job_resume), its tenant or the system first"),
    "429_TENANT_QUOTA_EXCEEDED": (
        QuotaError,
        "ask for less, wait, or have an operator raise the tenant's limits (tenant_set)",
    ),
    "429_JOB_QUEUE_FULL": (QuotaError, "wait until the job's open runs have ended"),
    "429_RATE_LIMITED": (QuotaError, "call less often, or send many jobs in one call (job_create_many)"),
    "500_INTERNAL": (NodeBugError, "report it with the id in the message, and read before you ask again"),
    "503_DISPATCHER_OVERLOADED": (UnavailableError, "ask again later, and send fewer calls at once"),
    "503_NOT_READY": (UnavailableError, "ask again later; the node's /readyz says what it waits for"),
    "503_UPGRADE_UNDER_WAY": (UnavailableError, "ask again when all nodes of the cluster run the new release"),
    "504_TIMEOUT": (NodeTimeoutError, "read what became of it before you ask again"),
}
KNOWN_CODES = frozenset(_KNOWN)

_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ConflictError,
    413: TooLargeError,
    423: JobPausedError,
    429: QuotaError,
    503: UnavailableError,
    504: NodeTimeoutError,
}


def _class_of(code: str) -> type[ApiError]:
    """The class of a code that a newer node may have made up: by its status."""
    number = code.partition("_")[0]
    status = int(number) if number.isdecimal() else 500
    return _BY_STATUS.get(status) or (RejectedError if 400 <= status < 500 else NodeBugError)


def api_error(said: object) -> ApiError:
    """The typed error of a node's `{code, message, detail?, retryAfterSec?}`."""
    fields: Mapping[str, Any] = said if isinstance(said, Mapping) else {"message": str(said)}
    code = str(fields.get("code") or "500_INTERNAL")
    known, advice = _KNOWN.get(code) or (_class_of(code), "")
    wait = fields.get("retryAfterSec")
    return known(
        code,
        str(fields.get("message") or "the node gave no reason"),
        advice=advice,
        detail=fields.get("detail"),
        retry_after_sec=float(wait) if isinstance(wait, int | float) else None,
    )


def connection_lost(address: str, why: object) -> ConnectionLostError:
    """The connection broke; `why` is an exception or a text."""
    text = str(why) or type(why).__name__
    advice = (
        "check that a node listens there; if the call changes something, read what became of it before you repeat it"
    )
    return ConnectionLostError("CONNECTION_LOST", f"connection to {address}: {text}", advice=advice)


def protocol_error(message: str) -> ProtocolError:
    """Bytes or answers that are not this protocol."""
    advice = "check that the address is the node's RPC address, and that node and client fit together"
    return ProtocolError("PROTOCOL", message, advice=advice)
