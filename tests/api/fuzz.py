"""The HTTP API against its own document: a real node, every operation, thousands of requests that fit the document and that do not.

What must never happen: a 5xx, an answer that the document does not name (status, type, schema, headers), a panic, a node that does not
stop in order. usage: fuzz.py NODE [--cases N] [--seed N] [--all-phases]
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

import jsonschema
import openapi_spec_validator

HERE = pathlib.Path(__file__).parent
# Rules about values that no schema can say (a cron expression, a name that is taken) are not what is judged here, nor is what is read
# in more forms than the document shows (enums in any case).
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
]


class Node:
    """A `campanile dev` on free ports of loopback, in a directory of its own."""

    def __init__(self, program: str, folder: pathlib.Path) -> None:
        self.errors = folder / "node.log"
        args = [program, "dev", "--no-demo", "--no-executor", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*args, "--data", str(folder / "data")], stdout=subprocess.PIPE, stderr=self.errors.open("w"), text=True
        )
        said = dict(self.process.stdout.readline().rstrip("\n").split("=", 1) for _ in range(3))
        self.url, self.token = f"http://{said['http']}", said["token"]

    def call(self, method: str, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def stop(self) -> list[str]:
        """What was wrong with it: nothing, if it ran and stopped as it should."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        wrong = [line for line in self.errors.read_text().splitlines() if "panicked" in line or "bug:" in line]
        return wrong if code == 0 else [*wrong, f"the node ended with {code}"]


def examples_fit(document: dict) -> list[str]:
    """Every example against its schema."""
    wrong = []

    def look(value: object, where: str) -> None:
        if isinstance(value, list):
            for n, item in enumerate(value):
                look(item, f"{where}/{n}")
        elif isinstance(value, dict):
            if "schema" in value:
                shown = [value["example"]] if "example" in value else []
                shown += [example["value"] for example in value.get("examples", {}).values()]
                schema = {**value["schema"], "components": document["components"]}
                for example in shown:
                    for error in jsonschema.Draft202012Validator(schema).iter_errors(example):
                        wrong.append(f"{where}: {error.message} at {error.json_path}")
            for key, item in value.items():
                if key not in ("schema", "example", "examples"):
                    look(item, f"{where}/{key}")

    look(document["paths"], "")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("node")
    parser.add_argument("--cases", type=int, default=300, help="at least so many requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all-phases", action="store_true", help="also every boundary of every parameter")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="campanile-api-") as folder:
        node = Node(args.node, pathlib.Path(folder))
        wrong = []
        try:
            document = node.call("GET", "/openapi.json")
            openapi_spec_validator.validate(document)
            wrong += examples_fit(document)
            operations = sum(len(methods) for methods in document["paths"].values())
            # Some things that are there: otherwise nearly every answer is a 404.
            spec = {"trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW"}
            jobs = [node.call("POST", "/api/v1/jobs", {"name": f"job-{n}", **spec})["jobId"] for n in range(3)]
            runs = [node.call("POST", f"/api/v1/jobs/{job}/trigger", {})["runId"] for job in jobs for _ in range(3)]
            node.call("POST", f"/api/v1/runs/{runs[0]}/cancel", {})
            gone = node.call("POST", "/api/v1/jobs", {"name": "gone", "trigger": {"type": "MANUAL"}})["jobId"]
            ended = node.call("POST", f"/api/v1/jobs/{gone}/trigger", {})["runId"]
            node.call("POST", f"/api/v1/runs/{ended}/cancel", {})
            node.call("DELETE", f"/api/v1/jobs/{gone}")
            phases = "examples,coverage,fuzzing" if args.all_phases else "examples,fuzzing"
            # The phase of boundaries breaks inside Python 3.11 now and then (SystemError in ast.parse) with several threads.
            workers = "1" if args.all_phases else "2"
            command = [
                str(pathlib.Path(sys.executable).parent / "schemathesis"), "run", node.url + "/openapi.json",
                "--header", f"Authorization: Bearer {node.token}", "--phases", phases, "--checks", ",".join(CHECKS),
                "--max-examples", str(-(-args.cases // operations)), "--seed", str(args.seed), "--workers", workers,
                "--request-timeout", "70", "--suppress-health-check", "all", "--no-color", "--continue-on-failure",
                "--warnings", "off",
            ]  # fmt: skip
            environment = {
                **os.environ,
                "SCHEMATHESIS_HOOKS": "hooks",
                "PYTHONPATH": str(HERE),
                "CAMPANILE_ENDED": str(ended),
                "CAMPANILE_IDS": json.dumps({"jobId": jobs, "runId": runs, "tenantId": ["default"]}),
            }
            done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print(done.stdout)
            if done.returncode != 0:
                wrong.append(f"schemathesis ended with {done.returncode}")
            made = sum(int(count) for count in re.findall(r"(\d[\d,]*) generated", done.stdout.replace(",", "")))
            if made < args.cases:
                wrong.append(f"only {made} cases of {args.cases}")
        finally:
            wrong += node.stop()
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"VERDICT: {'RED' if wrong else 'GREEN'}: {operations} operations, {made} cases, seed {args.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
