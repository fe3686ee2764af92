#!/usr/bin/env python3
"""How long the newest 20 runs of a job take over HTTP, on a directory that a run of the workload `history` left.

    loadtest/newest_runs.py target/release/campanile target/runs/load-full/history/data

Starts a node on the directory (it stays there, changed by what is due meanwhile), pauses the system so that nothing runs beside, and asks for
jobs one after the other. As root the kernel's page cache is emptied before each round. Prints milliseconds.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import time


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("program", help="the node's program, a release build")
    args.add_argument("data", help="the directory")
    args.add_argument("--jobs", type=int, default=3000, help="asked for in a round (3000)")
    args.add_argument("--rounds", type=int, default=3, help="(3)")
    args.add_argument("--settle", type=float, default=20, help="seconds between the pause and the first round (20)")
    args = args.parse_args()
    if not os.path.isdir(os.path.join(args.data, "node")):
        sys.exit(f"{args.data}: no node's directory is in it; run the workload `history` first and name its `data`")
    command = [args.program, "dev", "--data", args.data, "--no-demo", "--no-executor"]
    command += ["--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        measure(args, node)
    finally:
        node.terminate()
        node.wait()


def measure(args: argparse.Namespace, node: subprocess.Popen) -> None:
    said: dict[str, str] = {}
    while not {"http", "token"} <= said.keys():
        line = node.stdout.readline()
        if not line:
            sys.exit("the node ended before it was ready; what it said stands above")
        name, _, value = line.strip().partition("=")
        said[name] = value
    # What it fires is said there too: nobody reads it, and it must not wait for us.
    subprocess.Popen(["cat"], stdin=node.stdout, stdout=subprocess.DEVNULL)
    caller = http.client.HTTPConnection(said["http"])

    def ask(path: str) -> dict:
        headers = {"Authorization": f"Bearer {said['token']}"}
        caller.request("GET", path, headers=headers)
        answer = caller.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"GET {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    server = ["--server", f"http://{said['http']}", "--token", said["token"]]
    subprocess.run([args.program, "system", "pause", "--reason", "measuring", *server], check=True)
    jobs: list[int] = []
    page = ask("/api/v1/jobs?pageSize=1000")
    while True:
        jobs += [job["jobId"] for job in page["items"]]
        if not page.get("nextPageToken") or len(jobs) >= 20_000:
            break
        page = ask(f"/api/v1/jobs?pageSize=1000&pageToken={page['nextPageToken']}")
    time.sleep(args.settle)
    for number in range(1, args.rounds + 1):
        cold = os.geteuid() == 0
        if cold:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w") as caches:
                caches.write("3")
        took, runs = [], 0
        for job in random.Random(number).sample(jobs, min(args.jobs, len(jobs))):
            begin = time.perf_counter()
            answer = ask(f"/api/v1/jobs/{job}/runs?pageSize=20")
            took.append((time.perf_counter() - begin) * 1000)
            runs += len(answer["items"])
        took.sort()
        p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
        cache = "page cache emptied" if cold else "page cache as it was"
        print(f"round {number}, {cache}: {len(took)} jobs, {runs / len(took):.1f} runs each, "
              f"p50 {p50:.2f}, p99 {p99:.2f}, longest {took[-1]:.2f} ms", flush=True)


main()
