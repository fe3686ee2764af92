#!/usr/bin/env python3
"""Runs all test programs of the workspace, some at once, because most of them wait more than they compute.

Usage: side_by_side.py AT_ONCE CARGO TEST_ARGUMENTS...  Each program's output is printed in one piece when it has ended. The exit code is 1
when one of them failed. Documentation tests come last, because cargo builds them while it runs them.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    name: str
    executable: str
    package: Path


def build(cargo: str, arguments: list[str]) -> list[Program]:
    """The test programs that cargo has built, by its own words."""
    command = [cargo, "test", *arguments, "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    programs = []
    for line in built.stdout.splitlines():
        told = json.loads(line)
        if told.get("reason") == "compiler-artifact" and told["profile"]["test"] and told.get("executable"):
            source = os.path.relpath(told["target"]["src_path"])
            programs.append(Program(source, told["executable"], Path(told["manifest_path"]).parent))
    # The largest programs have the most tests, so that the longest ones begin first.
    return sorted(programs, key=lambda program: -os.path.getsize(program.executable))


def run(program: Program) -> tuple[Program, int, float, str]:
    """As cargo runs it: in its package's directory."""
    began = time.monotonic()
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(program.package)}
    ended = subprocess.run(
        [program.executable], cwd=program.package, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    return program, ended.returncode, time.monotonic() - began, ended.stdout


def main() -> int:
    at_once, cargo, *arguments = sys.argv[1:]
    programs = build(cargo, arguments)
    if not programs:
        print("there are no test programs", file=sys.stderr)
        return 1
    failed = []
    with ThreadPoolExecutor(int(at_once)) as pool:
        for ended in as_completed(pool.submit(run, program) for program in programs):
            program, code, seconds, output = ended.result()
            print(f"     Running {program.name} ({seconds:.0f} s)\n{output}", flush=True)
            if code != 0:
                failed.append(program.name)
    if subprocess.run([cargo, "test", *arguments, "--doc"], stderr=subprocess.STDOUT).returncode != 0:
        failed.append("documentation tests")
    for name in failed:
        print(f"error: test failed: {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
