"""Bytes and shapes against the golden files that the node is tested with."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgpack
import pytest
from nodes import ROOT

from campanile import Created, Job, JobSpec, Once, Other, Run, RunState, Welcome, spec
from campanile.enums import DeadlineOf, JobStatus, OnLostContact, Source
from campanile.executor import assignment as wire
from campanile.executor.assignment import Assignment, Held
from campanile.shapes import from_ms, read, to_ms, to_payload, write
from campanile.wire import notification, request


def golden(name: str) -> bytes:
    text = (ROOT / f"schema/golden/rpc/{name}.txt").read_text()
    return bytes.fromhex(text.split("\n\n", 1)[1])


def unpacked(data: bytes) -> Any:
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def test_the_hello() -> None:
    hello = {"protocol": 1, "token": "secret", "role": "CALLER", "client": "example/1"}
    assert request(1, "session.hello", hello) == golden("hello_request")
    welcome = read(Welcome, unpacked(golden("hello_answer"))[3])
    assert (welcome.node, welcome.cluster_id, welcome.lease_ms) == ("node-1", 77, 10_000)


def test_a_create_is_what_the_node_expects() -> None:
    job = JobSpec("daily_billing", Once(at=from_ms(1_772_000_000_000)), tenant_id="finance", params={"customer": 7})
    expected = unpacked(golden("job_create_request"))[3][0]
    assert {"idempotencyKey": "key-1", **write(job)} == {**expected, "secretParams": {}}
    answer = read(Created, unpacked(golden("job_create_answer"))[3])
    assert answer == Created(8193, JobStatus.ENABLED, from_ms(1_772_000_000_000))


def test_a_job_and_a_run_are_read() -> None:
    job = read(Job, unpacked(golden("job_get_answer"))[3])
    assert job.job_id == 8193
    assert isinstance(job.spec, JobSpec)
    run = read(Run, unpacked(golden("run_answer"))[3])
    assert run.run_id == 4194305
    assert isinstance(run.state, RunState)
    assert run.attempts[0].attempt == 1


def test_an_assignment_is_read() -> None:
    [item] = unpacked(golden("assign"))[2][0]["items"]
    read_item = Assignment.read(item)
    assert (read_item.run_id, read_item.job_id, read_item.token, read_item.epoch) == (4194305, 8193, 1, 3)
    assert (read_item.params, read_item.source) == ({"customer": 7}, Source.SCHEDULE)
    assert read_item.logical_time == from_ms(1_772_000_000_000)
    assert read_item.on_lost_contact is OnLostContact.CONTINUE
    [command] = unpacked(golden("assign_command"))[2][0]["items"]
    assert Assignment.read(command).on_lost_contact is OnLostContact.STOP
    for broken in ({**item, "r": -1}, {**item, "o": 99}, {**item, "p": b"{"}, {**item, "a": 7}, {}, 7):
        with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
            Assignment.read(broken)


def test_executors_messages_are_what_the_node_expects() -> None:
    held = Held(4194305, 8193, 1)
    items = [
        wire.result(held, wire.SUCCESS, payload=to_payload(42)),
        wire.result(Held(4194305, 8193, 2), wire.FAILED, code="DISK_FULL", message="no space left"),
    ]
    assert unpacked(golden("finish_request"))[3][0]["items"] == items
    permanent = wire.result(
        Held(4194305, 8193, 2), wire.FAILED, code="NO_CUSTOMER", message="there is no customer 7", permanent=True
    )
    assert unpacked(golden("finish_permanent_request"))[3][0]["items"] == [permanent]
    stop = unpacked(golden("stop"))[2][0]["items"]
    assert [Held.read(item).write() for item in stop] == stop
    drain = notification("executor.drain", {})
    assert drain == golden("drain")
    assert set(unpacked(golden("credit"))[2][0]) == {"stampMs", "slots", "received", "load"}


def test_instants_keep_their_milliseconds() -> None:
    for ms in (0, 1, -1, 1_772_000_000_123, 253_402_300_799_999, -62_135_596_800_000):
        assert to_ms(from_ms(ms)) == ms
    there = datetime(2026, 2, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert to_ms(there) == to_ms(datetime(2026, 2, 1, 0, tzinfo=UTC))
    with pytest.raises(ValueError, match="time zone"):
        to_ms(datetime(2026, 2, 1))  # noqa: DTZ001 - what is refused


def test_payloads_are_json() -> None:
    assert to_payload({"a": [1, None, "ü"]}) == '{"a":[1,null,"ü"]}'.encode()
    for value in (float("nan"), {1, 2}, b"raw"):
        with pytest.raises((TypeError, ValueError)):
            to_payload(value)


def test_a_variant_of_a_newer_node_goes_through() -> None:
    event = {"type": "EVENT", "filter": {"a": 1}}
    job = read(JobSpec, {"name": "a", "trigger": event, "action": {"kind": "SSH", "host": "h"}})
    assert job.trigger == Other(event)
    assert write(job)["trigger"] == event
    assert write(job)["action"] == {"kind": "SSH", "host": "h"}


def test_schedules_count_whole_seconds() -> None:
    assert spec.FixedRate.every(timedelta(minutes=1)).every_sec == 60
    for wrong in (0.5, -1, timedelta(milliseconds=1)):
        with pytest.raises(ValueError, match="whole seconds"):
            spec.FixedRate.every(wrong)


def test_a_value_of_another_class_is_named_with_its_field() -> None:
    job = JobSpec("a", Once(at=from_ms(0)))
    for wrong, told in [
        ({"type": "MANUAL"}, r"^trigger must be .*Cron.*, not dict$"),
        (Once, r"^trigger must be .*Cron.*, not type$"),
        ("daily", r"^trigger must be .*FixedRate.*, not str$"),
    ]:
        given: Any = wrong
        with pytest.raises(TypeError, match=told):
            write(replace(job, trigger=given))
    policy: Any = {"maxAttempts": 3}
    with pytest.raises(TypeError, match=r"^retry_policy must be RetryPolicy, not dict$"):
        write(replace(job, retry_policy=policy))


def test_hooks_that_are_not_given_are_left_out() -> None:
    plain = spec.Hooks(on_failure=[spec.Hook("refund")])
    assert write(plain) == {"onFailure": [{"job": "refund", "params": b"{}"}]}, "as nodes of before take it"
    every = spec.Hooks([spec.Hook("refund", {"a": 1}, compensation=True)], on_dead_letter=[spec.Hook("tell")])
    refund = {"job": "refund", "params": b'{"a":1}', "compensation": True}
    written = {"onFailure": [refund], "onDeadLetter": [{"job": "tell", "params": b"{}"}]}
    assert write(every) == written
    assert read(spec.Hooks, written) == every


def test_a_webhook_and_a_callback_are_written_and_a_secret_is_not_shown() -> None:
    hook = spec.Webhook("https://example.org/hook")
    assert write(hook) == {"kind": "WEBHOOK", "url": "https://example.org/hook", "timeoutSec": 15}
    callback = spec.Callback("https://example.org/done/token-7", secret="0123456789abcdef")
    assert write(callback) == {"url": "https://example.org/done/token-7", "secret": "0123456789abcdef"}
    assert repr(callback) == "Callback()"


def test_a_deadline_is_written_as_it_was_given() -> None:
    job = spec.JobSpec("nightly", spec.Manual(), deadline=spec.Deadline(by="04:00", timezone="Europe/Berlin"))
    written = write(job)
    assert written["deadline"] == {"by": "04:00", "timezone": "Europe/Berlin"}
    assert read(spec.JobSpec, written) == job
    within = spec.Deadline(within_sec=900, of=DeadlineOf.START)
    assert write(within) == {"withinSec": 900, "of": "START"}
