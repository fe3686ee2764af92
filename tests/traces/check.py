#!/usr/bin/env python3
"""Traces of a real program, as a collector sees them.

    tests/traces/check.py PROGRAM

Starts `PROGRAM dev` with `--traces` at a collector of this test (`receiver.py`), and an executor in Python beside the node's own. Jobs
are triggered over HTTP and over RPC with a caller's span. Then the spans of each run must be
the whole way from the caller's span to the run's end, over its retries, and what bodies saw must be the spans of their bodies; the
lines of the log must have the ids. A collector that refuses for a while must cost spans and nothing else.

Exit code 0: all of it holds.
"""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from receiver import Receiver

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "client/python/src"))
from campanile import Client, Context, Executor, Json, JobError  # noqa: E402

# What one step may take at most, seconds. It only ends a run that hangs: nothing is judged by it.
PATIENCE = 120
KEY = "x-collector-key"
SECRET = "s3cr3t-of-the-collector"


class Failed(Exception):
    """What does not hold, in a sentence."""


def ensure(holds, sentence):
    if not holds:
        raise Failed(sentence)


def eventually(what, look):
    """Polls until `look` gives something."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        ensure(time.monotonic() < deadline, f"not within {PATIENCE} s: {what}")
        time.sleep(0.05)


class Node:
    """`PROGRAM dev` with traces, and its log."""

    def __init__(self, program, folder, receiver):
        headers = folder / "headers"
        headers.write_text(f"# of the collector\n{KEY}: {SECRET}\n")
        self.log = folder / "log"
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "CAMPANILE_LOG__LEVEL": "info",
            "CAMPANILE_TRACES__HEADERS_FILE": str(headers),
        }
        arguments = ["--no-demo", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data", str(folder / "dev")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "dev", *arguments, "--traces", receiver.url, "--log-format", "json"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        said = dict(self.process.stdout.readline().decode().strip().split("=", 1) for _ in range(3))
        self.http, self.rpc, self.token = f"http://{said['http']}", said["rpc"], said["token"]

    def call(self, method, path, body=None, traceparent=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.http + path, data, method=method)
        request.add_header("content-type", "application/json")
        request.add_header("authorization", f"Bearer {self.token}")
        if traceparent:
            request.add_header("traceparent", traceparent)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def page(self, path):
        with urllib.request.urlopen(self.http + path) as answer:
            return answer.read().decode()

    def job(self, name, **more):
        retry = {"maxAttempts": 3, "backoff": "FIXED", "baseDelaySec": 0.05}
        spec = {"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": retry, **more}
        return self.call("POST", "/api/v1/jobs", spec)["jobId"]

    def ended(self, run):
        return eventually(f"run {run} ends", lambda: self.of(run)["endedAt"] and self.of(run))

    def of(self, run):
        return self.call("GET", f"/api/v1/runs/{run}?waitSec=10")

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)


def caller(number):
    """A caller's span, and the id of its trace."""
    trace = f"{number:032x}"
    return f"00-{trace}-{number:016x}-01", trace


def tree(spans, number):
    """Names with the names of their parents."""
    names = {span.id: span.name for span in spans} | {f"{number:016x}": "CALLER"}
    return sorted((span.name, names.get(span.parent, "unknown" if span.parent else "-")) for span in spans)


def retried(job, operation):
    """The whole way of a run whose first attempt fails."""
    run = f"run {job}"
    spans = [(operation, "CALLER"), (run, operation), ("append RunCreated", run), ("append RunEnded", run)]
    spans += [("append AttemptEnded", run)]
    for attempt in ("attempt 1", "attempt 2"):
        spans += [(attempt, run), ("wait", run)]
        spans += [(name, attempt) for name in ("append AttemptStarted", "dispatch", f"body {job}")]
    return sorted(spans)


def whole(receiver, trace, number, expected):
    eventually(f"{len(expected)} spans of {trace}", lambda: len(receiver.of(trace)) >= len(expected))
    spans = receiver.of(trace)
    ensure(tree(spans, number) == expected, f"the spans are\n{tree(spans, number)}\nand should be\n{expected}")
    ensure(len({span.id for span in spans}) == len(spans), "two spans have one id")
    return spans


def one(spans, name):
    found = [span for span in spans if span.name == name]
    ensure(len(found) == 1, f"{len(found)} spans are called {name}")
    return found[0]


def over_http(node, receiver):
    number = 0xC0FFEE
    span, trace = caller(number)
    script = 'echo "TRACEPARENT=$TRACEPARENT"; [ "$CAMPANILE_ATTEMPT" = 2 ]'
    job = node.job("shell", action={"kind": "COMMAND", "command": ["/bin/sh", "-c", script]})
    run = node.call("POST", f"/api/v1/jobs/{job}/trigger", {}, span)["runId"]
    view = node.ended(run)
    ensure(view["state"] == "SUCCESS" and view["traceId"] == trace, f"{view}")
    spans = whole(receiver, trace, number, retried("shell", "job.trigger"))
    call, first, of_run = one(spans, "job.trigger"), one(spans, "attempt 1"), one(spans, "run shell")
    ensure(call.kind == "SERVER" and of_run.kind == "INTERNAL" and first.kind == "CLIENT", f"{spans}")
    ensure(first.error is not None and "exit code 1" in first.error, f"{first}")
    ensure(one(spans, "attempt 2").error is None and of_run.error is None, f"{spans}")
    ensure(of_run.attributes["campanile.run.id"] == run, f"{of_run}")
    ensure(of_run.attributes["campanile.job.id"] == job, f"{of_run}")
    ensure(of_run.attributes["campanile.run.state"] == "SUCCESS", f"{of_run}")
    ensure(of_run.resource["service.name"] == "campanile", f"{of_run}")
    bodies = {span.id for span in spans if span.name == "body shell"}
    for attempt in (1, 2):
        text = node.call("GET", f"/api/v1/runs/{run}/log?attempt={attempt}&contains=traceparent=&tail=1")["text"]
        seen = re.fullmatch(r"TRACEPARENT=00-([0-9a-f]{32})-([0-9a-f]{16})-01\n", text)
        ensure(seen and seen[1] == trace and seen[2] in bodies, f"the command saw {text!r}")


def over_rpc(node, receiver):
    number = 0xBEEF
    span, trace = caller(number)
    job = node.job("handled")
    seen = []
    executor = Executor(node.rpc, token=node.token, slots=2)

    @executor.handler("handled")
    async def handled(ctx: Context, params: Json) -> Json:
        seen.append((ctx.traceparent, ctx.trace_id))
        if ctx.attempt == 1:
            raise JobError("no luck")
        return None

    async def session():
        async with executor.start() as handle, Client.connect(node.rpc, token=node.token) as client:
            await handle.ready()
            made = await client.in_trace(span).job_trigger(job)
            return await client.run_wait(made.run_id, timeout_sec=PATIENCE)

    run = asyncio.run(session())
    ensure(run.state == "SUCCESS" and run.trace_id == trace, f"{run}")
    # The Python executor records no spans: what a body does is a child of its attempt.
    expected = [pair for pair in retried("handled", "job.trigger") if not pair[0].startswith("body ")]
    spans = whole(receiver, trace, number, expected)
    attempts = {span.id for span in spans if span.name.startswith("attempt ")}
    ensure(len(seen) == 2, f"{seen}")
    for traceparent, trace_id in seen:
        ensure(trace_id == trace and traceparent.split("-")[2] in attempts, f"the handler saw {traceparent}")


def in_the_log(node):
    number = 0xFACE
    span, trace = caller(number)
    job = node.job("paused")
    node.call("POST", f"/api/v1/jobs/{job}/pause", {"reason": "a test"}, span)

    def audited():
        lines = [line for line in node.lines() if line["target"] == "audit" and line.get("operation") == "job.pause"]
        return lines and lines[0]

    line = eventually("the line about the pause", audited)
    ensure(line["span"]["trace_id"] == trace, f"the line has no trace: {line}")
    ensure(str(line["span"]["job"]) == str(job), f"the line has no job: {line}")


def without_a_collector(node, receiver):
    receiver.refuses = True
    job = node.job("alone", action={"kind": "COMMAND", "command": ["/bin/true"]})
    for number in range(1, 21):
        run = node.call("POST", f"/api/v1/jobs/{job}/trigger", {}, caller(0xD00D00 + number)[0])["runId"]
        ensure(node.ended(run)["state"] == "SUCCESS", f"run {run} suffers from the collector")
    failed = re.compile(r'^campanile_trace_spans_total\{outcome="failed"\} [1-9]', re.MULTILINE)
    eventually("spans that were not taken are counted", lambda: failed.search(node.page("/metrics")))
    receiver.refuses = False
    number = 0xABBA
    span, trace = caller(number)
    run = node.call("POST", f"/api/v1/jobs/{job}/trigger", {}, span)["runId"]
    node.ended(run)
    eventually("spans come again", lambda: [span for span in receiver.of(trace) if span.name == "run alone"])


def main(program):
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="campanile-traces-") as folder:
        node = Node(program, pathlib.Path(folder), receiver)
        try:
            over_http(node, receiver)
            over_rpc(node, receiver)
            in_the_log(node)
            without_a_collector(node, receiver)
            ensure(node.stop() == 0, "the node does not stop in good order")
        finally:
            if node.process.poll() is None:
                node.process.kill()
        ensure(not receiver.wrong, f"not as OTLP wants it: {receiver.wrong}")
        ensure(all(headers.get(KEY) == SECRET for headers in receiver.headers), "the collector's key is missing")
        ensure(SECRET not in node.log.read_text(), "the collector's key is in the log")
    receiver.close()
    print(f"traces: {len(receiver.spans)} spans of {len({span.trace for span in receiver.spans})} traces are as they should be")


if __name__ == "__main__":
    try:
        main(os.path.abspath(sys.argv[1]))
    except Failed as failed:
        sys.exit(f"FAILED: {failed}")
