#!/usr/bin/env python3
"""Compiles the boards of deploy/grafana with the types that Grafana publishes for them (npm: @grafana/schema).

    tests/prometheus/grafana_types.py FOLDER

FOLDER has the packages of tests/prometheus/grafana (`make test-prometheus` puts them there). A board with an option, a variable or a link
that Grafana does not know does not compile.
"""

import json
import pathlib
import subprocess
import sys

from support import DASHBOARDS

OPTIONS = ["--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "node", "--module", "esnext", "--target", "es2020"]


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    names = []
    for path in sorted(DASHBOARDS.glob("*.json")):
        board = json.loads(path.read_text())
        source = folder / f"{path.stem}.ts"
        source.write_text(
            f"import type {{ Dashboard }} from '@grafana/schema';\nexport const board: Dashboard = {json.dumps(board, indent=1)};\n"
        )
        names.append(source.name)
    compiled = subprocess.run(["nice", "-n", "5", "node_modules/.bin/tsc", *OPTIONS, *names], cwd=folder)
    if compiled.returncode or not names:
        sys.exit("boards are not what Grafana's types allow")
    print(f"{len(names)} boards compile with Grafana's types")


if __name__ == "__main__":
    main()
