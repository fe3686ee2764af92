"""Without asyncio: the next instants of a schedule, and a job that counts: `python blocking_caller.py HOST:PORT TOKEN`."""

import sys

from campanile import Cron, JobSpec, Manual
from campanile.blocking import Client


def main(address: str, token: str) -> None:
    """Each call blocks."""
    with Client(address, token=token) as client:
        preview = client.schedule_preview(Cron.of("30 2 * * MON-FRI", timezone="Europe/Berlin"), count=3)
        print(preview.description)
        for instant in preview.next:
            print(f"  {instant:%a %Y-%m-%d %H:%M} UTC")
        job = client.job_create(JobSpec("example_count", Manual(), params={"to": 20}), idempotency_key="example-count")
        run = client.run_wait(client.job_trigger(job.job_id).run_id, timeout_sec=60)
        print(f"counted to {run.result}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
