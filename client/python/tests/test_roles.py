"""Who may do what: tokens of a token file, at a node that is started by its configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes import BINARY, eventually, free_port

import campanile
from campanile import Client, Context, Executor, Handler, JobSpec, Json, Manual, RunState

TOKENS = {
    "operator": ["--role", "operator"],
    "tenant": ["--role", "tenant", "--tenant", "fin"],
    "executor": ["--role", "executor", "--pools", "billing"],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Its RPC address, and a token of each role."""
    tokens = {}
    for name, options in TOKENS.items():
        command = [str(BINARY), "token", "new", "--name", name, *options, "--append", str(tmp_path / "tokens")]
        tokens[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    rpc = f"127.0.0.1:{free_port()}"
    addresses = ["--http", f"127.0.0.1:{free_port()}", "--rpc", rpc]
    files = ["--data", str(tmp_path / "data"), "--token-file", str(tmp_path / "tokens")]
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen([str(BINARY), "server", *addresses, *files], stdout=log, stderr=log)
    try:
        yield rpc, tokens
    finally:
        node.kill()
        node.wait()


async def connect(rpc: str, token: str) -> Client:
    """As soon as the node listens."""

    async def connected() -> Client | None:
        try:
            return await Client.connect(rpc, token=token)
        except campanile.ConnectionLostError:
            return None

    client = await eventually(connected)
    assert client is not None
    return client


async def test_a_token_does_what_its_role_may(server: tuple[str, dict[str, str]]) -> None:
    rpc, tokens = server
    async with await connect(rpc, tokens["tenant"]) as client:
        job = JobSpec("bill", Manual(), tenant_id="fin", executor_selector="billing", action=Handler("bill"))
        job_id = (await client.job_create(job)).job_id
        with pytest.raises(campanile.ForbiddenError) as refused:
            await client.job_create(JobSpec("bill", Manual(), tenant_id="other"))
        assert refused.value.advice
        with pytest.raises(campanile.ForbiddenError):
            await client.system_pause()

        executor = Executor(rpc, token=tokens["executor"], pools=["billing"])

        @executor.handler("bill")
        async def bill(ctx: Context, params: Json) -> str:
            return ctx.tenant

        async with executor.start():
            run = await client.run_wait((await client.job_trigger(job_id)).run_id)
            assert (run.state, run.result) == (RunState.SUCCESS, "fin")


async def test_an_executor_is_told_why_it_is_not_taken(server: tuple[str, dict[str, str]]) -> None:
    rpc, tokens = server
    async with await connect(rpc, tokens["operator"]):
        for token, pool, why in (
            (tokens["executor"], "other", "403_FORBIDDEN"),
            (tokens["tenant"], "billing", "403_FORBIDDEN"),
            ("wrong", "billing", "401_UNAUTHENTICATED"),
        ):
            executor = Executor(rpc, token=token, pools=[pool])
            executor.handler("x")(print)
            handle = executor.start()
            status = await handle.wait_until(lambda status, why=why: why in str(status.last_error))  # type: ignore[misc]
            assert status.registered == 0
            await handle.kill()
