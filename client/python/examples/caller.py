"""Creates a job, triggers it, waits for its run: `python caller.py HOST:PORT TOKEN`. `executor.py` runs it."""

import asyncio
import sys

from campanile import CampanileError, Client, JobSpec, Manual, RetryPolicy, RunActiveError


async def main(address: str, token: str) -> None:
    """One job, one run."""
    async with Client.connect(address, token=token) as client:
        spec = JobSpec(
            "example_greeting", Manual(), params={"name": "nobody"}, retry_policy=RetryPolicy(max_attempts=2)
        )
        # With a key, starting this example again finds the job instead of failing.
        job = await client.job_create(spec, idempotency_key="example")
        try:
            run = await client.job_trigger(job.job_id, params={"name": "Ada"})
        except RunActiveError as error:
            print(f"a run is active already: {error.message}")
            return
        print(f"run {run.run_id} is {run.state}")
        run = await client.run_wait(run.run_id, timeout_sec=60)
        print(f"run {run.run_id} is {run.state}: {run.result or run.last_error}")
        print(await client.run_log_text(run.run_id), end="")


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:3]))
    except CampanileError as error:
        sys.exit(str(error))
