"""Every limit of the client and the executor with its unit, in one place. The names and values are the node's."""

from typing import Final

FRAME_BEFORE_HELLO_BYTES: Final = 1 << 20
"""Largest message before the hello, bytes."""
FRAME_BYTES: Final = 4 << 20
"""Largest message, bytes."""
FRAME_ITEMS: Final = 1 << 16
"""Longest array or map in a message from a node, items; the longest that a node sends has some 10,000."""
CONNECT_MS: Final = 5_000
"""Time for connecting and saying hello, milliseconds."""
CALL_MS: Final = 30_000
"""Deadline of a call when none is set, milliseconds."""
CALLS_IN_FLIGHT: Final = 1_024
"""Calls of one connection under way at once, count; more wait. A node stops reading above it."""
UNSENT_BYTES: Final = 1 << 20
"""Bytes that wait to be written before no more are taken from those who send."""
SILENCE_MS: Final = 30_000
"""A client whose calls wait this long without one byte from the node connects anew, milliseconds."""
RECONNECT_MIN_MS: Final = 50
"""First wait between attempts to connect, milliseconds."""
RECONNECT_MAX_MS: Final = 2_000
"""Longest wait between attempts to connect, milliseconds."""
REPEAT_MIN_MS: Final = 50
"""First wait before a call is sent again, milliseconds; it doubles."""
REPEAT_MAX_MS: Final = 2_000
"""Longest wait before a call is sent again, milliseconds, unless the node names a longer one."""
WAIT_QUESTION_MS: Final = 5_000
"""Longest that a node is asked to wait for the end of a run in one question, milliseconds."""
CHANGES_WAITING: Final = 64
"""Notifications of one watch that wait for their reader, count; over it the watch is begun again when there is room."""
WATCH_SILENCE_MS: Final = 35_000
"""A watch that hears nothing for so long has lost its node, milliseconds: it hears of each of its beats, every 15 s."""
WATCH_PATIENCE_MS: Final = 60_000
"""A watch that cannot be begun again for so long gives up, milliseconds."""

CREDIT_MS: Final = 2_000
"""Life of a credit on the executor's own clock, milliseconds."""
CREDIT_AGAIN_MS: Final = 500
"""Interval at which an executor gives its credit again, milliseconds; well below `CREDIT_MS`."""
HEARTBEAT_MS: Final = 2_000
"""Interval of heartbeats, milliseconds."""
HEARTBEAT_ANSWER_MS: Final = 5_000
"""A node that leaves a heartbeat unanswered this long is connected anew, milliseconds."""
LEASE_MS: Final = 10_000
"""Lease of an executor's session, milliseconds: silent this long, its attempts are lost."""
STOP_GRACE_MS: Final = 5_000
"""Default grace of a body that was told to stop, milliseconds; then it is canceled."""
STOP_GRACE_MAX_MS: Final = 6_000
"""Highest grace, milliseconds: bodies with onLostContact STOP must have ended before the lease has, and are not to be stopped while
a heartbeat's answer may still come."""
STOP_MARGIN_MS: Final = 500
"""Time between the end of the grace and the end of the lease, milliseconds."""
DRAIN_MS: Final = 30_000
"""Time for running bodies when an executor is told to end and no other is set, milliseconds."""
DRAIN_FLUSH_MS: Final = 2_000
"""Time for stopped bodies and last results after a drain's limit, beyond the grace, milliseconds."""
FINISH_AGAIN_MS: Final = 200
"""Wait before a result that a node did not take now is sent again, milliseconds."""
DEADLINES_SPARE: Final = 64
"""Deadlines that an executor keeps beyond two for each body that runs, count."""
TICK_MS: Final = 100
"""An executor looks at deadlines, heartbeats and credit this often, milliseconds."""
EXECUTOR_BATCH: Final = 4_096
"""Results or announced attempts in one message, count."""
EXECUTOR_NODES: Final = 256
"""Nodes that an executor is connected to, or tries to be, count."""
SAME_ADDRESS_MS: Final = 1_000
"""So long the address that led to a node last is waited for, before another one is tried, milliseconds."""
REHOME_MS: Final = 300
"""After so long without its connection, what came over it is told to another node of the cluster, milliseconds."""
REST_TURN_MS: Final = 500
"""For so long the slots that cannot be shared out evenly are one node's, milliseconds."""
MOVE_CREDIT_MS: Final = 50
"""Credit is moved between nodes at most this often, milliseconds."""
EXECUTOR_SLOTS_MAX: Final = 100_000
"""Most slots of one executor, count."""
FINISHES_IN_FLIGHT: Final = 64
"""`executor.finish` requests of one connection under way at once, count."""
LOGS_IN_FLIGHT: Final = 16
"""`executor.log` requests of one connection under way at once, count."""
RESULTS_WAITING: Final = 65_536
"""Results that no node has called durable, count; over it the executor gives no credit."""
NAME_CHARS: Final = 128
"""Longest executor id, characters."""
LOG_CHUNK_BYTES: Final = 32 << 10
"""Largest piece of log in one message, bytes."""
LOG_BYTES_PER_ATTEMPT: Final = 1 << 20
"""Log of one attempt that is kept, bytes."""
LOG_UNSENT_BYTES: Final = 256 << 10
"""Log of one attempt that waits to be sent, bytes; over it lines are dropped and counted."""
EXECUTOR_LOG_UNSENT_BYTES: Final = 16 << 20
"""Logs of all attempts that wait to be sent, bytes; over it lines are dropped and counted."""
PROGRESS_MS: Final = 1_000
"""Shortest interval of progress lines in a log, milliseconds."""
RESULT_BYTES: Final = 16 << 10
"""Largest result that is kept, bytes of JSON."""
ERROR_MESSAGE_BYTES: Final = 2 << 10
"""Longest error message of an attempt, bytes."""
ERROR_CODE_BYTES: Final = 128
"""Longest error code of an attempt, bytes."""
PAGE_SIZE_MAX: Final = 1_000
"""Items of one page, count."""


def lost_contact_ms(grace_ms: int) -> int:
    """Not heard by a node this long, an executor tells bodies with onLostContact STOP to stop, milliseconds."""
    return LEASE_MS - STOP_MARGIN_MS - grace_ms
