"""Runs the job of `caller.py` until Ctrl-C or SIGTERM: `python executor.py HOST:PORT TOKEN`."""

import asyncio
import sys
import time

from campanile import Context, Executor, Json, PermanentError

executor = Executor(sys.argv[1], token=sys.argv[2], slots=8)


@executor.handler("example_greeting")
async def greet(ctx: Context, params: Json) -> Json:
    """A coroutine function: runs on the event loop."""
    if not params.get("name"):
        raise PermanentError("params need a name", code="NO_NAME")
    ctx.log(f"attempt {ctx.attempt} of {ctx.idempotency_key}")
    await asyncio.sleep(0.1)
    return {"greeting": f"hello, {params['name']}"}


@executor.handler("example_count")
def count(ctx: Context, params: Json) -> Json:
    """Any other function: runs in a thread, and looks by itself whether it shall stop."""
    done = 0
    for done in range(1, params["to"] + 1):
        if ctx.is_canceled:
            raise RuntimeError(f"stopped at {done}: {ctx.stop_reason}")
        time.sleep(0.01)
        ctx.progress(done / params["to"])
    return done


if __name__ == "__main__":
    print("Ctrl-C to end")
    left = executor.serve(drain_sec=30)
    print(f"{left.ended} bodies ran; {left.unacknowledged} results were not handed in")
