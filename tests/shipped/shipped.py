#!/usr/bin/env python3
"""Runs the program as it is shipped, and as an operator runs it: by docs/operations.md and docs/guides/tls.md.

    tests/shipped/shipped.py PROGRAM

All other tests run a build with the feature `faults` in the dev profile. This one starts PROGRAM with a configuration file, TLS on both
ports, a token for each caller, a key file and a data directory. An executor in a process of its own runs commands. The node is killed
with SIGKILL while bodies run, started again, killed once more, checked with `campanile store check`, started again and stopped. Then
every due instant must have exactly one outcome, and every run that the ledger names must have run its body exactly once.

Only Python's standard library and `openssl` are needed. Exit code 0: all of it holds.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime

# What one step may take at most, seconds. It only ends a run that hangs: nothing is judged by it.
PATIENCE = 120
SECRET = "s3cr3t-of-the-shipped-build"
# The ledger's job is due each second.
PERIOD_MS = 1000
# A build with the feature `faults` would end itself at its first write.
FAULT = {"CAMPANILE_FAULT": "point:after_append=kill:1"}


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


def certificates(directory):
    """A CA and the node's certificate, by the lines of docs/guides/tls.md."""
    lines = """
    umask 077
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=Campanile CA" -keyout ca-key.pem -out ca.pem
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=campanile" -keyout key.pem -out node.csr
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' > names
    openssl x509 -req -in node.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 90 -extfile names -out cert.pem
    """
    subprocess.run(["sh", "-e", "-c", lines], cwd=directory, check=True, capture_output=True)


class Installation:
    """A directory with all files of a node, and the processes that use them."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.node = self.executor = self.http = self.rpc = None
        self.processes = []

    def path(self, name):
        return str(self.directory / name)

    def environment(self, **more):
        return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TZ": "UTC", **more}

    def call(self, *arguments, code=0, **more):
        """One command of the program; its output."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.directory,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        said = f"`campanile {' '.join(arguments)}` ended with {done.returncode}: {done.stdout}{done.stderr}"
        ensure(done.returncode == code, said)
        return done.stdout

    def api(self, *arguments, code=0):
        """One command against the node, with the operator's token, over TLS."""
        server = {"CAMPANILE_SERVER": f"https://localhost:{self.http}", "CAMPANILE_API_TOKEN": self.operator}
        return self.call(*arguments, code=code, CAMPANILE_TLS_CA=self.path("ca.pem"), **server)

    def json(self, *arguments):
        return json.loads(self.api(*arguments, "-o", "json"))

    def configure(self):
        certificates(self.directory)
        settings = {
            "data_dir": "data",
            "token_file": "tokens",
            "cert_file": "cert.pem",
            "key_file": "key.pem",
        }
        text = self.call("config", "default")
        for name, value in settings.items():
            # The first one of each name: `key_file` stands in [tls], and later in [secrets], which a flag names below.
            text, count = re.subn(rf'^{name} = ".*"$', f'{name} = "{self.path(value)}"', text, count=1, flags=re.M)
            ensure(count == 1, f"the default configuration has no line for {name}")
        (self.directory / "campanile.toml").write_text(text)
        self.operator = self.call("token", "new", "--name", "me", "--role", "operator", "--append", "tokens").strip()
        pools = ["--role", "executor", "--pools", "default"]
        self.executors_token = self.call("token", "new", "--name", "build-1", *pools, "--append", "tokens").strip()
        (self.directory / "secrets.key").write_text(self.call("secrets", "new-key"))
        os.chmod(self.directory / "secrets.key", 0o600)
        self.call("config", "check", "campanile.toml")

    def begin(self, log, *arguments, **more):
        errors = open(self.directory / log, "a", encoding="utf-8")
        process = subprocess.Popen(
            [self.program, *arguments],
            cwd=self.directory,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        errors.close()
        self.processes.append(process)
        return process

    def start_node(self):
        ports = [f"127.0.0.1:{self.http or 0}", f"127.0.0.1:{self.rpc or 0}"]
        files = ["--config", "campanile.toml", "--key-file", self.path("secrets.key")]
        self.node = self.begin("node.log", "server", *files, "--http", ports[0], "--rpc", ports[1], **FAULT)
        told = {}
        while not {"http", "rpc"} <= told.keys():
            line = self.node.stdout.readline()
            ensure(line, f"the node ended before it named its ports: {self.log()}")
            name, _, value = line.strip().partition("=")
            told[name] = value.rpartition(":")[2]
        # Executors look for it where it was.
        self.http, self.rpc = told["http"], told["rpc"]

    def start_executor(self):
        address = ["--rpc", f"tls://localhost:{self.rpc}", "--tls-ca", self.path("ca.pem")]
        token = {"CAMPANILE_API_TOKEN": self.executors_token}
        self.executor = self.begin("executor.log", "executor", *address, "--pool", "default", "--slots", "4", **token)
        line = self.executor.stdout.readline()
        ensure(line.startswith("ready: pool default"), f"the executor did not become ready: {line!r}")

    def kill_node(self):
        self.node.send_signal(signal.SIGKILL)
        self.node.wait(PATIENCE)
        self.node.stdout.close()

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
        ensure(code == 0, f"a process ended with {code} after SIGTERM: {self.log()}")

    def log(self):
        return (self.directory / "node.log").read_text()[-4000:]

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)

    def effects(self):
        """What bodies did: the number of each run, as often as its body ran."""
        path = self.directory / "effects"
        return path.read_text().split() if path.exists() else []

    def successes(self, job):
        return [run for run in self.json("job", "runs", job)["items"] if run["state"] == "SUCCESS"]


def has_no_fault_hooks(program):
    ensure(b"CAMPANILE_FAULT" not in pathlib.Path(program).read_bytes(), "the program has fault hooks")


def ms(instant):
    return round(datetime.fromisoformat(instant.replace("Z", "+00:00")).timestamp() * 1000)


def judge_ledger(place):
    """Each instant of `tick` once and without a gap, and each run that is named there ran its body once."""
    entries = place.json("job", "ledger", "tick", "--from", "1970-01-01T00:00:00Z", "--page-size", "1000")
    ensure(not entries["truncated"], "the ledger is longer than this test reads")
    expected, runs = None, []
    for entry in entries["items"]:
        first = ms(entry["logicalTime"])
        ensure(expected in (None, first), f"an instant is missing or twice at {entry['logicalTime']}: {entries}")
        expected = first + entry["count"] * PERIOD_MS
        if entry.get("runId"):
            runs.append(str(entry["runId"]))
        else:
            ensure(entry["outcome"] != "FIRED" and entry.get("reason"), f"an instant without run and reason: {entry}")
    effects = place.effects()
    ensure(sorted(runs) == sorted(effects), f"the ledger names the runs {sorted(runs)}, bodies ran of {sorted(effects)}")
    for run in runs:
        told = place.json("run", "get", run)
        whole = told["state"] == "SUCCESS" and len(told["attempts"]) == 1
        ensure(whole, f"run {run} did not succeed in one attempt: {told}")
    return len(entries["items"]), len(runs)


def store_is_whole(place):
    said = place.call("store", "check", "data")
    ensure(said.endswith("whole\n"), f"store check: {said}")


def comes_to_rest(place, job):
    """The job is paused and none of its runs is open. A pause holds a run that waits for an executor, which is let go on here."""
    place.api("job", "pause", job)
    states = {run["state"] for run in place.json("job", "runs", job)["items"]}
    if states & {"PENDING", "QUEUED", "RETRY_WAIT"}:
        place.api("job", "resume", job)
    return states <= {"SUCCESS", "FAILED", "TIMEOUT", "CANCELED", "SKIPPED"}


def story(place):
    place.configure()
    place.start_node()
    place.start_executor()
    every_second = ["--every", "1", "--concurrency", "allow", "--misfire", "fire_all_missed", "--max-attempts", "1"]
    body = f"echo $CAMPANILE_RUN_ID >> {place.path('effects')}; sleep 1.5"
    place.api("job", "create", "--name", "tick", *every_second, "--sh", body)
    spec = {
        "name": "sealed",
        "trigger": {"type": "MANUAL"},
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", "echo the secret is $CAMPANILE_SECRET_word"]},
        "secretParams": {"word": SECRET},
    }
    (place.directory / "sealed.json").write_text(json.dumps(spec))
    place.api("job", "create", "sealed.json")
    place.api("job", "trigger", "sealed", "--wait", "--params", '{"n": 1}')
    run = str(place.json("job", "runs", "sealed")["items"][0]["runId"])
    said = eventually("the log of the sealed job", lambda: place.api("run", "log", run))
    ensure("the secret is" in said and SECRET not in said, f"the secret is not masked in the log: {said}")

    for kill in (1, 2):
        there = len(place.successes("tick"))
        eventually(f"two more runs before kill {kill}", lambda: len(place.successes("tick")) >= there + 2)
        # A body takes longer than the period, so that one is under way now.
        place.kill_node()
        if kill == 2:
            store_is_whole(place)
        place.start_node()
    there = len(place.successes("tick"))
    eventually("two more runs after the kills", lambda: len(place.successes("tick")) >= there + 2)

    eventually("no run is open", lambda: comes_to_rest(place, "tick"))
    entries, runs = judge_ledger(place)
    # The secret still opens with the key file after two kills.
    place.api("job", "trigger", "sealed", "--wait")
    place.stop(place.executor)
    place.stop(place.node)
    store_is_whole(place)
    return f"{entries} ledger entries, {runs} runs, two kills"


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="campanile-shipped-") as directory:
        place = Installation(program, pathlib.Path(directory))
        try:
            has_no_fault_hooks(program)
            print(f"GREEN shipped program: {story(place)}")
        except Failed as failed:
            print(f"RED shipped program: {failed}\nits log ends with:\n{place.log() if place.node else ''}")
            return 1
        finally:
            place.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
