"""What an executor decides by time about one node: given times, so that no busy machine changes the result."""

import pytest

from campanile import limits
from campanile.executor.upstream import Asked, Stage, Upstream, What
from campanile.wire import Connection


async def registered(now_ms: int) -> tuple[Upstream, Connection]:
    """Its first request is answered; the next one is the second."""
    upstream, connection = Upstream(), Connection("nowhere")
    upstream.up(connection, now_ms)
    upstream.request("executor.register", {}, Asked(What.REGISTER))
    assert upstream.answered(1) is not None
    upstream.stage = Stage.READY
    return upstream, connection


@pytest.mark.parametrize("grace_ms", [0, 50, limits.STOP_GRACE_MS, limits.STOP_GRACE_MAX_MS])
async def test_bodies_are_told_to_stop_when_their_grace_still_fits_into_the_lease(grace_ms: int) -> None:
    upstream, _ = await registered(1_000)
    last_ms = 1_000 + limits.LEASE_MS - limits.STOP_MARGIN_MS - grace_ms
    assert not upstream.is_out_of_contact(grace_ms, last_ms), "not before it must be"
    assert upstream.is_out_of_contact(grace_ms, last_ms + 1)
    assert last_ms + 1 + grace_ms < 1_000 + limits.LEASE_MS, "a body has ended before its lease has"
    # A heartbeat proves contact when it is answered, and from when it was sent: nobody knows when it arrived.
    upstream.tick(1, 5_000)
    assert upstream.is_out_of_contact(grace_ms, last_ms + 1), "it was not answered"
    assert upstream.answered(2) is not None
    assert not upstream.is_out_of_contact(grace_ms, last_ms + 4_000)
    assert upstream.is_out_of_contact(grace_ms, last_ms + 4_001)
    upstream.down()
    assert upstream.is_out_of_contact(grace_ms, last_ms + 4_001), "also without a connection"
    assert not Upstream().is_out_of_contact(grace_ms, 1 << 40), "no lease has begun"


async def test_credit_is_given_again_well_before_it_is_void() -> None:
    upstream, _ = await registered(1_000)
    upstream.credit(4, 0.0, 2_000)
    assert not upstream.credit_is_due(2_000)
    assert upstream.credit_is_due(2_000 + limits.CREDIT_MS // 2)
    upstream.down()
    assert not upstream.credit_is_due(1 << 40), "nobody is there to take it"


async def test_a_node_is_left_when_it_has_not_answered_for_long() -> None:
    upstream, connection = await registered(0)
    for beat in range(1, 31):
        upstream.tick(0, beat * limits.HEARTBEAT_MS)
        assert upstream.answered(1 + beat) is not None
    sent_ms = 31 * limits.HEARTBEAT_MS
    for now_ms in (sent_ms, sent_ms + limits.HEARTBEAT_ANSWER_MS):
        upstream.tick(0, now_ms)
        assert connection.is_open, "it has answered all the time until now"
    upstream.tick(0, sent_ms + limits.HEARTBEAT_ANSWER_MS + 1)
    assert not connection.is_open
