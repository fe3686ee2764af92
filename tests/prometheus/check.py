#!/usr/bin/env python3
"""Metrics, rules, boards and runbooks, with a real Prometheus and a real node.

    tests/prometheus/check.py PROGRAM

1. A Prometheus reads a loaded node with the example of docs/operations.md and a token of the role `metrics` (`live.py`): the nine names of
   requirement R10, every recording rule and every query of a Grafana board give data.
2. `promtool test rules` tries each alert at its threshold (`thresholds.py`).
3. Boards, rules and runbooks keep their rules (`boards_lint.py`).

Needed: `prometheus` and `promtool` (Debian's package prometheus), and Python's standard library. All servers listen on free ports of
loopback and are ended again.
"""

import pathlib
import sys
import tempfile
import time

import boards_lint
import live
import thresholds
from support import Failed, ensure


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)

        def lint(rules):
            faults = boards_lint.check(rules)
            ensure(not faults, "\n  ".join(["boards, rules and runbooks:", *faults]))
            alerts = {rule["name"] for rule in rules if rule["type"] == "alerting"}
            print(f"{thresholds.check(alerts, home)} tests of promtool passed: {len(alerts)} alerts, firing and not firing")

        live.check(program, home, lint)
    print(f"1 passed, 0 failed, after {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        print(f"{failed}\n0 passed, 1 failed", file=sys.stderr)
        sys.exit(1)
