"""The first examples of README.md as they are written, and what a terminal and an error show of a failure."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from nodes import PATIENCE_SEC, Node, unique

from campanile import Backoff, Client, DeadlineError, Handler, JobSpec, Manual, RetryPolicy, RunChange, RunState

README = Path(__file__).parents[1] / "README.md"


def first_examples() -> tuple[str, str]:
    """The caller and the executor of the section "The first job"."""
    section = README.read_text().split("\n## The first job\n")[1].split("\n## ")[0]
    caller, executor = [block.split("```")[0] for block in section.split("```python\n")[1:]]
    return caller, executor


async def test_the_first_examples_work_as_they_are_written(shared_node: Node) -> None:
    caller, executor = first_examples()
    assert 'action=Handler("bill")' in caller
    assert "params: Bill" in executor
    settings = f"token = {shared_node.token!r}\n"
    main = f"import asyncio\nasync def main():\n{textwrap.indent(caller, '    ')}\nasyncio.run(main())\n"

    def program(text: str) -> list[str]:
        return [sys.executable, "-c", settings + text.replace("127.0.0.1:7701", shared_node.rpc)]

    serving = subprocess.Popen(program(executor))
    try:
        run = subprocess.run
        told = await asyncio.to_thread(
            run, program(main), check=True, capture_output=True, text=True, timeout=PATIENCE_SEC
        )
        assert "SUCCESS {'invoices': 3}" in told.stdout
        assert "billing 8 as " in told.stdout
        serving.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(serving.wait, PATIENCE_SEC) == 0
    finally:
        serving.kill()
        serving.wait()


FAILS = """
import sys
from campanile import Context, Executor, Json

executor = Executor(sys.argv[1], token=sys.argv[2], pools=[sys.argv[3]], slots=1)

@executor.handler("fails")
def fails(ctx: Context, params: Json) -> None:
    raise KeyError("no such customer")

executor.serve()
"""


async def test_a_failure_is_on_the_terminal_and_in_the_error_of_who_waits(client: Client, shared_node: Node) -> None:
    """Without any configuration of logging, as a new user has it."""
    pool = unique("pool")
    command = [sys.executable, "-c", FAILS, shared_node.rpc, shared_node.token, pool]
    serving = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        # It fails, and the next attempt is far away: whoever waits gives up before.
        retry = RetryPolicy(max_attempts=2, backoff=Backoff.FIXED, base_delay_sec=3600, max_delay_sec=3600)
        spec = JobSpec(unique("job"), Manual(), action=Handler("fails"), executor_selector=pool, retry_policy=retry)
        run = await client.job_trigger((await client.job_create(spec)).job_id)
        async with await client.run_watch(run_id=run.run_id) as changes:
            async for change in changes:
                if isinstance(change, RunChange) and change.state is RunState.RETRY_WAIT:
                    break
        with pytest.raises(DeadlineError, match="WAITING_FOR_RETRY.*its last error: .*no such customer") as late:
            await client.run_wait(run.run_id, timeout_sec=0.1)
        assert "no such customer" in (late.value.last_error or "")
        serving.send_signal(signal.SIGTERM)
        _, terminal = await asyncio.to_thread(serving.communicate, timeout=PATIENCE_SEC)
    finally:
        serving.kill()
        serving.wait()
    assert f"run {run.run_id} of job {spec.name}, attempt 1, failed" in terminal
    assert "KeyError: 'no such customer'" in terminal
    assert "Traceback" in terminal
