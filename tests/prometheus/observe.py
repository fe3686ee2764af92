#!/usr/bin/env python3
"""Prometheus and Alertmanager beside a node with our rules: an executor is killed, and the alerts are shown until it is there again.

    tests/prometheus/observe.py PROGRAM [--stay SECONDS]

The rules are those of deploy/prometheus, with one change: an alert waits as many seconds as it would minutes. Alertmanager's configuration
is deploy/prometheus/alertmanager.yml, with shorter waits and a receiver of this program, which prints what it is sent. With --stay
everything runs on for so long afterwards, and the addresses can be opened in a browser. All servers listen on free ports of loopback, and
everything that was started is ended again.
"""

import argparse
import contextlib
import http.server
import json
import pathlib
import re
import sys
import tempfile
import threading
import time

from support import ROOT, RULES, Failed, Processes, Prometheus, ensure, eventually, free_port, get, node

LOST, EMPTY = "CampanileExecutorHeartbeatLost", "CampanilePoolWithoutExecutor"
BEGUN = time.monotonic()


def say(text):
    print(f"{time.monotonic() - BEGUN:5.1f} s  {text}", flush=True)


def replaced(pattern, by, text):
    text, count = re.subn(pattern, by, text, flags=re.M)
    ensure(count > 0, f"nothing in deploy/prometheus is like {pattern}")
    return text


class Receiver(http.server.BaseHTTPRequestHandler):
    """Prints the alerts that Alertmanager sends, and keeps their names with their states."""

    told: list[tuple[str, str]] = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        for alert in body["alerts"]:
            labels, notes = alert["labels"], alert["annotations"]
            name, state = labels["alertname"], alert["status"].upper()
            say(f"ALERT {state} {name} (priority {labels['priority']}): {notes['summary']}; see {notes['runbook']}")
            self.told.append((name, alert["status"]))

    def log_message(self, *_):
        pass


def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def alertmanager(processes, url):
    """Its address. The waits of the example are for people."""
    text = (ROOT / "deploy/prometheus/alertmanager.yml").read_text()
    text = replaced(r"url: http://.*$", f"url: {url}", text)
    text = replaced(r"group_(wait|interval): .*$", r"group_\1: 1s", text)
    config = processes.home / "alertmanager.yml"
    config.write_text(text)
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={config}", "--storage.path=alertmanager", f"--web.listen-address={address}", "--cluster.listen-address="]
    processes.start("prometheus-alertmanager", *flags)
    return address


def quick_rules(home):
    """The rules with seconds instead of minutes to wait."""
    quick = []
    for path in RULES:
        text = path.read_text()
        quick.append(home / path.name)
        quick[-1].write_text(replaced(r"^( +for: \d+)[mh]$", r"\1s", text) if " for: " in text else text)
    return quick


class Show:
    def __init__(self, program, processes, url):
        self.program, self.processes = program, processes
        _, self.node = node(
            processes, program, "dev", "--no-demo", "--no-executor", "--data", "dev", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"
        )
        self.executor = self.start_executor()
        self.manager = alertmanager(processes, url)
        scrape = f'scrape_configs:\n  - job_name: campanile\n    static_configs:\n      - targets: ["{self.node["http"]}"]\n'
        alerting = f'alerting:\n  alertmanagers:\n    - static_configs:\n        - targets: ["{self.manager}"]\n'
        self.prometheus = Prometheus(processes, scrape, quick_rules(processes.home), alerting)
        spec = {
            "name": "tick",
            "trigger": {"type": "FIXED_RATE", "everySec": 1},
            "action": {"kind": "COMMAND", "command": ["/bin/sleep", "3"]},
        }
        (processes.home / "job.json").write_text(json.dumps(spec))
        self.call("job", "create", "job.json")

    def call(self, *arguments):
        process = self.processes.start(self.program, *arguments, "--server", f"http://{self.node['http']}", "--token", self.token())
        ensure(process.wait(timeout=30) == 0, f"{' '.join(arguments)} failed: see its log in {self.processes.home}")

    def token(self):
        return json.loads((self.processes.home / "dev/dev.json").read_text())["token"]

    def start_executor(self):
        def token():
            # It is written when the node is ready.
            return (self.processes.home / "dev/dev.json").exists() and self.token()

        given = eventually("dev.json is there", token)
        return self.processes.start(
            self.program,
            "executor",
            "--rpc",
            self.node["rpc"],
            "--token",
            given,
            "--log",
            "warn",
            "--drain-sec",
            "1",
            "--stop-grace-sec",
            "1",
        )

    def firing(self):
        return {rule["name"] for rule in self.prometheus.rules() if rule.get("state") == "firing"}

    def at_manager(self):
        return {alert["labels"]["alertname"] for alert in get(f"http://{self.manager}/api/v2/alerts?active=true")}


def run(show, stay):
    say(f"node http://{show.node['http']}/, Prometheus http://{show.prometheus.address}/, Alertmanager http://{show.manager}/")
    eventually("Prometheus reads the node", show.prometheus.is_up)
    eventually(
        "a job runs each second",
        lambda: (show.prometheus.value("schedule_qps") or 0) > 0 and (show.prometheus.value("run_success_rate") or 0) > 0,
    )
    ensure(not show.firing(), f"alerts fire although nothing is broken: {show.firing()}")
    say(f"a job runs each second, no alert fires ({len([r for r in show.prometheus.rules() if r['type'] == 'alerting'])} alerts)")
    show.executor.kill()
    show.executor.wait()
    say("the executor was killed (SIGKILL): its lease ends after 10 s, and runs wait")
    wanted = {LOST, EMPTY}
    eventually(f"Prometheus has {wanted} firing", lambda: wanted <= show.firing())
    eventually("Alertmanager has them", lambda: wanted <= show.at_manager())
    eventually("they were sent", lambda: {(name, "firing") for name in wanted} <= set(Receiver.told))
    waiting = show.prometheus.value('campanile_pool_waiting{pool="default"}')
    say(f"{waiting:.0f} runs wait in the pool default")
    show.start_executor()
    say("an executor was started again")
    eventually("the pool's alert ends", lambda: EMPTY not in show.firing())
    eventually("its end was sent", lambda: (EMPTY, "resolved") in Receiver.told)
    say(f"{LOST} goes on for five minutes, the window of its rate")
    if stay:
        say(f"everything stays for {stay} s; Ctrl-C ends it sooner")
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(stay)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program")
    arguments.add_argument("--stay", type=int, default=0, metavar="SECONDS")
    given = arguments.parse_args()
    server, url = receiver()
    with tempfile.TemporaryDirectory() as directory, Processes(pathlib.Path(directory)) as processes:
        try:
            run(Show(str(pathlib.Path(given.program).resolve()), processes, url), given.stay)
        finally:
            server.shutdown()
    say("everything that was started is ended")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"FAILED: {failed}")
