"""An executor as a process of its own, to be killed: `executor_program.py ADDRESS TOKEN POOL FILE`.

`work` notes in FILE that it begins, waits until a file beside it lets it go on, and notes that it ends.
"""

import sys
import time
from pathlib import Path

from campanile import Context, Executor, Json

address, token, pool, notes = sys.argv[1:]
executor = Executor(address, token=token, pools=[pool], slots=4)
go = Path(notes + ".go")


def note(text: str) -> None:
    with Path(notes).open("a") as file:
        file.write(text + "\n")


@executor.handler("work")
def work(ctx: Context, params: Json) -> str:
    note(f"begin {ctx.attempt}")
    while not go.exists():
        if ctx.wait_canceled(0.02):
            note(f"stop {ctx.attempt}")
            raise RuntimeError(f"told to stop: {ctx.stop_reason}")
    note(f"end {ctx.attempt}")
    return "done"


@executor.handler("sleep")
def sleep(ctx: Context, params: Json) -> None:
    note("asleep")
    time.sleep(params["sec"])


# Longer than any test waits: only bodies that end, or a second signal, end it.
status = executor.serve(drain_sec=float(600))
note(f"drained {status.running} {status.unacknowledged}")
