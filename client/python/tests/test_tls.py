"""TLS with a real node: who is let in, and how the rest is told why. Certificates are those that the program itself makes."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes import BINARY, Node, unique

from campanile import (
    Client,
    ConnectionLostError,
    Context,
    Executor,
    Handler,
    InvalidArgumentError,
    JobSpec,
    Json,
    Manual,
    RunState,
    blocking,
)


def keys(directory: Path, name: str = "localhost") -> Path:
    """A CA and a certificate of it for this host; the CA's name has the host's in it."""
    made = [str(BINARY), "cluster", "new-keys", str(directory), "--name", name]
    subprocess.run(made, check=True, capture_output=True)
    return directory


class SecureNode(Node):
    """Both of its ports speak TLS."""

    def __init__(self, data: Path, keys: Path) -> None:
        files = {"CAMPANILE_TLS__CERT_FILE": keys / "node.pem", "CAMPANILE_TLS__KEY_FILE": keys / "node-key.pem"}
        super().__init__(data, environment={name: str(file) for name, file in files.items()})
        self.ca = keys / "ca.pem"

    @property
    def by_name(self) -> str:
        """As its certificate names it."""
        return self.rpc.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    directory = tmp_path_factory.mktemp("tls")
    node = SecureNode(directory / "data", keys(directory / "keys"))
    try:
        node.start()
        yield node
    finally:
        node.stop()


async def test_a_job_runs_over_tls(secure: SecureNode) -> None:
    executor = Executor(f"tls://{secure.by_name}", token=secure.token, pools=["far"], slots=2, tls=secure.ca)

    @executor.handler("work")
    async def work(_: Context, params: Json) -> Json:
        return params

    handle = executor.start()
    await handle.ready()
    context = ssl.create_default_context(cafile=str(secure.ca))
    async with Client.connect(secure.by_name, token=secure.token, tls=context) as client:
        spec = JobSpec(unique("job"), Manual(), executor_selector="far", action=Handler("work"))
        job = await client.job_create(spec)
        # More than one record of TLS, both ways.
        large = "x" * 15_000
        for n in range(3):
            run = await client.job_trigger(job.job_id, params={"n": n, "text": large})
            ended = await client.run_wait(run.run_id, timeout_sec=40)
            assert (ended.state, ended.result) == (RunState.SUCCESS, {"n": n, "text": large})
    await handle.drain(10)


def test_threads_have_it_too(secure: SecureNode) -> None:
    with blocking.Client(secure.by_name, token=secure.token, tls=str(secure.ca)) as client:
        assert client.system_info().version


async def test_a_node_must_show_a_certificate_of_the_ca_for_its_name(secure: SecureNode, tmp_path: Path) -> None:
    other = keys(tmp_path / "other", "other") / "ca.pem"
    anew = keys(tmp_path / "anew") / "ca.pem"
    for ca in (other, anew):
        with pytest.raises(ConnectionLostError, match="not of a CA that this client trusts"):
            await Client.connect(secure.by_name, token=secure.token, tls=ca)
    with pytest.raises(ConnectionLostError, match="does not name 127.0.0.1"):
        await Client.connect(secure.rpc, token=secure.token, tls=secure.ca)
    # The machine's own CAs did not make it.
    with pytest.raises(ConnectionLostError, match="not of a CA that this client trusts"):
        await Client.connect(f"tls://{secure.by_name}", token=secure.token)
    executor = Executor(secure.by_name, token=secure.token, tls=other)
    executor.any_handler(lambda _ctx, _params: None)
    handle = executor.start()
    status = await handle.wait_until(lambda status: status.last_error is not None)
    assert status.registered == 0
    assert "not of a CA that this client trusts" in str(status.last_error)
    await handle.kill()


async def test_both_sides_must_speak_tls(secure: SecureNode, shared_node: Node) -> None:
    with pytest.raises(InvalidArgumentError, match="this port speaks TLS"):
        await Client.connect(secure.rpc, token=secure.token)
    with pytest.raises(ConnectionLostError, match="does not speak TLS"):
        await Client.connect(f"tls://{shared_node.rpc}", token=shared_node.token, tls=secure.ca)
    # An address that says so is in clear.
    async with Client.connect(f"tcp://{shared_node.rpc}", token=shared_node.token, tls=secure.ca) as client:
        assert client.welcome.node


def test_what_cannot_be_meant_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    with pytest.raises(ValueError, match="CA file .*ca.pem: .*No such file"):
        Executor("127.0.0.1:1", token="t", tls=missing)
    missing.write_text("nothing")
    with pytest.raises(ValueError, match="CA file .*ca.pem: "):
        Executor("127.0.0.1:1", token="t", tls=missing)
    with pytest.raises(ValueError, match="is not HOST:PORT or tls://HOST:PORT"):
        blocking.Client("https://127.0.0.1:1", token="t")
