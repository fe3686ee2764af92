#!/usr/bin/env python3
"""A real Prometheus reads a node with the example of docs/operations.md, a token of the role `metrics`, and the rules of deploy/prometheus.

    tests/prometheus/scrape.py PROGRAM

Only the targets, the place of the token and the interval of the example are replaced. `make test` leaves it out, because Debian's
package brings a service and 150 MB of programs. Needed: `prometheus` and `promtool`.
"""

import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/campanile.rules.yml"
# What one step may take at most, seconds. It only ends a run that hangs.
PATIENCE = 60


def replaced(pattern, by, text):
    text, count = re.subn(pattern, lambda _: by, text, flags=re.M)
    assert count == 1, f"the example of docs/operations.md has {count} times {pattern}"
    return text


def configuration(node, token):
    """The example of the page with this node's address and token."""
    page = (ROOT / "docs/operations.md").read_text()
    example = re.search(r"```yaml\n(scrape_configs:\n.*?)```", page, re.S).group(1)
    example = replaced(r"targets: \[.*\]$", f'targets: ["{node}"]', example)
    example = replaced(r"credentials_file: .*$", f"credentials_file: {token}", example)
    example = replaced(r"scrape_interval: 15s$", "scrape_interval: 1s", example)
    return f"global: {{evaluation_interval: 1s}}\nrule_files: [{RULES}]\n{example}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, look):
    until = time.monotonic() + PATIENCE
    while True:
        try:
            if found := look():
                return found
        except OSError as error:
            found = error
        assert time.monotonic() < until, f"not within {PATIENCE} s: {what} (last: {found})"
        time.sleep(0.2)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    processes = []
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)

        def start(*command, **more):
            processes.append(subprocess.Popen(command, cwd=home, stderr=(home / f"{len(processes)}.log").open("w"), **more))
            return processes[-1]

        def token(*more):
            command = [program, "token", "new", *more, "--append", "tokens"]
            return subprocess.run(command, cwd=home, check=True, capture_output=True, text=True).stdout

        try:
            token("--name", "me", "--role", "operator")
            (home / "scraper.token").write_text(token("--name", "prometheus", "--role", "metrics"))
            ports = ["--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"]
            node = start(program, "server", *ports, "--data", "data", "--token-file", "tokens", stdout=subprocess.PIPE, text=True)
            address = node.stdout.readline().strip().removeprefix("http=")
            config = home / "prometheus.yml"
            config.write_text(configuration(address, home / "scraper.token"))
            subprocess.run(["promtool", "check", "config", config], check=True)

            web = f"127.0.0.1:{free_port()}"
            start("prometheus", f"--config.file={config}", "--storage.tsdb.path=tsdb", f"--web.listen-address={web}")

            def asked(path, **query):
                with urllib.request.urlopen(f"http://{web}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
                    return json.load(answer)["data"]

            def value(query):
                found = asked("query", query=query)["result"]
                return float(found[0]["value"][1]) if found else None

            eventually("the target is up", lambda: value("up") == 1)
            assert value("campanile_token_file_in_force") == 1
            count = value('count({job="campanile"})')
            print(f"Prometheus has {count:.0f} series of {address}")
            groups = eventually(
                "all rules were evaluated",
                lambda: [
                    group
                    for groups in [asked("rules")["groups"]]
                    for group in groups
                    if groups and all(rule["health"] != "unknown" for g in groups for rule in g["rules"])
                ],
            )
            wrong = [rule for group in groups for rule in group["rules"] if rule["health"] != "ok"]
            assert not wrong, wrong
            firing = [rule["name"] for group in groups for rule in group["rules"] if rule.get("state") == "firing"]
            assert not firing, f"alerts of a node that has nothing: {firing}"
            print(f"{sum(len(group['rules']) for group in groups)} rules were evaluated, none fires")

            # The token is for this page only, and ends with its line.
            tokens = home / "tokens"
            tokens.write_text("".join(line for line in tokens.read_text().splitlines(True) if not line.startswith("prometheus ")))
            eventually("a revoked token is refused", lambda: value("up") == 0)
            [target] = asked("targets")["activeTargets"]
            assert "401" in target["lastError"], target
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(timeout=PATIENCE)
    print("Prometheus reads a node as docs/operations.md says")


if __name__ == "__main__":
    main()
