"""Generates types of a real node's /openapi.json with a public tool, and compiles a small program with them.

usage: check.py NODE FOLDER    FOLDER has package.json, its installed packages and main.ts
"""

import pathlib
import signal
import subprocess
import sys
import tempfile
import urllib.request


def document(program: str, data: str) -> bytes:
    args = [program, "dev", "--no-demo", "--no-executor", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data", data]
    node = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        said = dict(node.stdout.readline().rstrip("\n").split("=", 1) for _ in range(3))
        with urllib.request.urlopen(f"http://{said['http']}/openapi.json", timeout=30) as answer:
            return answer.read()
    finally:
        node.send_signal(signal.SIGTERM)
        node.wait(timeout=60)


def main() -> int:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as data:
        (folder / "openapi.json").write_bytes(document(program, data))
    tools = folder / "node_modules/.bin"
    subprocess.run([tools / "openapi-typescript", "openapi.json", "-o", "api.d.ts"], cwd=folder, check=True)
    options = ["--strict", "--noEmit", "--skipLibCheck", "false", "--module", "esnext", "--moduleResolution", "bundler"]
    return subprocess.run([tools / "tsc", *options, "main.ts"], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
