#!/usr/bin/env python3
"""Runs every part of `make test` and prints one summary.

The programs are built first, and everything in one directory, so that nothing is compiled twice. Most of the other parts wait more than
they compute, so each phase below runs several lanes side by side, and the parts of a lane one after the other. Each part writes
`target/test/NAME.log` and prints it when it has ended. The exit code is 1 when a part failed.

The Makefile sets CARGO, TESTED (arguments of cargo), NODE (the program with fault hooks) and the sizes of the short forms.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

LOGS = Path("target/test")
CHAOS_NODE = Path("target/chaos-node/campanile")
# As the Makefile names it.
SHIPPED = "target/shipped/campanile"
# Closing lines of test runners and verdicts of the checkers.
CLOSING = re.compile(
    r"^(test result: |error: test failed|test .* \.\.\. FAILED$|VERDICT: |(GREEN|RED|SKIPPED) |(FAILED|ERROR) .*\.py"
    r"|=+ .* in [0-9.]+s.* =+$|console: | *Tests  .*(passed|failed))"
)
# Lines after the first violation of each kind, so that a verdict can be understood where only the summary is kept.
STORY_LINES = 24
STORIES_AT_MOST = 150


class Part(NamedTuple):
    name: str
    command: str


Lane = list[Part]


def setting(name: str) -> str:
    return os.environ[name]


def phases() -> list[list[Lane]]:
    cargo, tested = setting("CARGO"), setting("TESTED")
    debian = shutil.which("apt-get") is not None
    schedules = Part("schedules of other systems", f"make foreign-schedules FOREIGN_CASES={setting('SHORT_FOREIGN_CASES')}")
    foreign = Part(
        "foreign RPC programs, parity (Python)",
        f"{cargo} test {tested} --test rpc --test interfaces -- --ignored foreign:: parity::",
    )
    kills = f"make kill9 KILLS={setting('SHORT_KILLS')} KILL_JOBS=4000 KILL_RATE=400"
    with_faults = f"CAMPANILE_BIN=$PWD/{CHAOS_NODE}"
    return [
        [
            [
                # What is beside it mostly waits, and has its turn first.
                Part("build of the tests", f"nice -n 10 {cargo} build {tested} --bins --tests"),
                Part("tests", f"python3 tests/side_by_side.py 3 {cargo} {tested}"),
            ],
            [Part("chaos (short form)", f"make chaos-short NODE={CHAOS_NODE}")],
            [
                Part("a program without fault hooks", f"CAMPANILE_BIN={SHIPPED} make test-shipped"),
                Part("Python client and executor", f"{with_faults} make test-python"),
                Part("HTTP API against its document", f"{with_faults} make test-api"),
                Part("client types generated from the document", f"{with_faults} make test-api-client"),
                Part("console in a browser", f"{with_faults} make test-console"),
                Part("metrics, rules and boards (Prometheus)", f"{with_faults} make test-prometheus"),
                Part("traces at a collector (OTLP)", f"{with_faults} make test-traces"),
                Part("backup and restore under load", "make restore RESTORE_JOBS=4000 RESTORE_RATE=400"),
            ],
        ],
        [
            # Its limits are seconds, which one lane beside it does not take.
            # What comes last fetches Debian's cron with apt-get.
            [Part("load (short forms, checked)", "make load"), foreign, *([schedules] if debian else [])],
            [
                Part("CQL store (Apache Cassandra)", "make test-cql"),
                Part(f"kill9 ({setting('SHORT_KILLS')} kills)", kills),
            ],
        ],
    ]


class Runner:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.times: list[tuple[str, float]] = []
        self.failed: list[str] = []
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def part(self, part: Part) -> bool:
        with self.lock:
            if self.stopped:
                return False
        begin = time.monotonic()
        log = LOGS / (re.sub(r"[^a-z0-9]+", "-", part.name.lower()).strip("-") + ".log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", part.command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with self.lock:
                self.running.add(process)
            code = process.wait()
        seconds = time.monotonic() - begin
        with self.lock:
            self.running.discard(process)
            self.times.append((part.name, seconds))
            if code != 0:
                self.failed.append(part.name)
            print(f"== {part.name}: {'passed' if code == 0 else f'FAILED ({code})'} after {seconds:.0f} s", flush=True)
            sys.stdout.buffer.write(log.read_bytes())
            sys.stdout.flush()
        return code == 0

    def lane(self, lane: Lane) -> None:
        for part in lane:
            self.part(part)

    def start(self, lane: Lane) -> threading.Thread:
        thread = threading.Thread(target=self.lane, args=(lane,))
        thread.start()
        return thread

    def stop(self, *_: object) -> None:
        """Ends what was started and nothing else: each part has a session of its own."""
        self.stopped = True
        for process in list(self.running):
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        raise SystemExit(130)


def summary(runner: Runner) -> None:
    print("== time")
    for name, seconds in runner.times:
        print(f"{name:<44} {seconds:5.0f} s")
    print("== closing lines")
    text = "\n".join(log.read_text(errors="replace") for log in sorted(LOGS.glob("*.log"), key=os.path.getmtime))
    lines = text.splitlines()
    print("\n".join(line for line in lines if CLOSING.match(line)))
    stories: list[str] = []
    for at, line in enumerate(lines):
        if re.match(r"RED [0-9]+ x ", line):
            stories += lines[at : at + STORY_LINES]
    print("\n".join(stories[:STORIES_AT_MOST]))
    for name in runner.failed:
        print(f"FAILED: {name}")


def main() -> int:
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    runner = Runner()
    signal.signal(signal.SIGTERM, runner.stop)
    signal.signal(signal.SIGINT, runner.stop)
    try:
        # Two parts need the server. It is fetched while the first parts compile.
        server = Part("Apache Cassandra", "deploy/cassandra/cassandra.sh prepare")
        fetched = runner.start([server])
        # The nodes of all tests have the console, as a release has.
        if not runner.part(Part("console", "make console")):
            return 1
        # Before the build, because it installs clippy where it is missing, and `.ci/run` compiles with it.
        runner.part(Part("format and clippy", "make lint"))
        build = Part("build", f"{setting('CARGO')} build {setting('TESTED')} --bins")
        built = runner.part(build)
        if built:
            runner.part(Part("build without fault hooks", "make shipped"))
            # The program with fault hooks again, which the build before has replaced.
            built = runner.part(build._replace(name="build again"))
        fetched.join()
        if not built or server.name in runner.failed:
            return 1
        CHAOS_NODE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(setting("NODE"), CHAOS_NODE)
        # Recipes need not ask cargo for the programs again.
        os.environ["CAMPANILE_BUILT"] = "1"
        for lanes in phases():
            for thread in [runner.start(lane) for lane in lanes]:
                thread.join()
    finally:
        summary(runner)
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
