"""What the programs of this folder share: processes that are ended again, free ports, and questions to Prometheus."""

import json
import pathlib
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = [ROOT / "deploy/prometheus/campanile.recording.yml", ROOT / "deploy/prometheus/campanile.rules.yml"]
DASHBOARDS = ROOT / "deploy/grafana/dashboards"
RUNBOOKS = ROOT / "docs/runbooks"
# What one step may take at most, seconds. It only ends a run that hangs.
PATIENCE = 60


class Failed(Exception):
    """What does not hold, in a sentence."""


def ensure(holds, sentence):
    if not holds:
        raise Failed(sentence)


def eventually(what, look, patience=PATIENCE):
    """Polls until `look` gives something."""
    until = time.monotonic() + patience
    while True:
        try:
            if found := look():
                return found
        except OSError as error:
            found = error
        ensure(time.monotonic() < until, f"not within {patience} s: {what} (last: {found})")
        time.sleep(0.2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


class Processes:
    """Processes in a directory, each with its log there. Leaving the block ends those that still run."""

    def __init__(self, home):
        self.home, self.all = home, []

    def start(self, *command, **more):
        log = self.home / f"{len(self.all)}-{pathlib.Path(command[0]).name}.log"
        with log.open("w") as errors:
            # At a lower priority: others on the machine measure times.
            command = ["nice", "-n", "5", *map(str, command)]
            process = subprocess.Popen(command, cwd=self.home, stdin=subprocess.DEVNULL, stderr=errors, **{"stdout": errors, **more})
        self.all.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.all:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.all:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Prometheus:
    """A Prometheus with our rules, on a free port. `configuration` gets the lines of the scrape configuration."""

    def __init__(self, processes, scrape, rules=RULES, alerting=""):
        home = processes.home
        config = home / "prometheus.yml"
        names = ", ".join(map(str, rules))
        config.write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{names}]\n{alerting}{scrape}")
        checked = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True)
        ensure(checked.returncode == 0, f"promtool: {checked.stdout}{checked.stderr}")
        self.address = f"127.0.0.1:{free_port()}"
        processes.start("prometheus", f"--config.file={config}", "--storage.tsdb.path=tsdb", f"--web.listen-address={self.address}")

    def ask(self, path, **query):
        return get(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}")["data"]

    def samples(self, query):
        """Labels and value of each sample that a query gives."""
        return [(sample["metric"], float(sample["value"][1])) for sample in self.ask("query", query=query)["result"]]

    def value(self, query):
        """The value of the only sample; None: there is none."""
        found = self.samples(query)
        ensure(len(found) < 2, f"{query} has {len(found)} samples")
        return found[0][1] if found else None

    def rules(self):
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def is_up(self):
        return all(value == 1 for _, value in self.samples("up")) and self.samples("up")


def node(processes, program, *arguments):
    """Starts a node, and gives the process and the facts of its first lines."""
    process = processes.start(program, *arguments, stdout=subprocess.PIPE, text=True)
    facts = {}
    while "rpc" not in facts:
        line = process.stdout.readline()
        ensure(line, f"{program} {arguments[0]} ended: see its log in {processes.home}")
        key, _, value = line.strip().partition("=")
        facts[key] = value
    return process, facts
