"""A caller that is not ours: pynvim's msgpack-rpc session, made for Neovim, against a node.

usage: pynvim_caller.py HOST:PORT TOKEN
"""
import json
import sys
import time

from pynvim.msgpack_rpc import tcp_session


class RpcError(Exception):
    pass


def main(address, token):
    host, port = address.rsplit(":", 1)
    # It sends `nvim_set_client_info` as a notification before anything else: the node must not mind.
    session = tcp_session(host, int(port))
    session.error_wrapper = lambda error: RpcError(error)

    def call(method, **params):
        return session.request(method, params)

    try:
        call("job.list")
        raise AssertionError("a call before the hello was answered")
    except RpcError as refused:
        assert refused.args[0]["code"] == "401_UNAUTHENTICATED", refused

    welcome = call("session.hello", protocol=1, token=token, role="CALLER", client="pynvim")
    assert welcome["protocol"] == 1, welcome
    name = f"foreign-{time.time_ns()}"
    created = call(
        "job.create",
        name=name,
        trigger={"type": "MANUAL"},
        executorSelector="python",
        action={"kind": "HANDLER", "name": "greet"},
        # Native maps are taken as well as JSON in a binary.
        params={"name": "nobody"},
    )
    try:
        call("job.create", name=name, trigger={"type": "MANUAL"})
        raise AssertionError("a name was taken twice")
    except RpcError as refused:
        assert refused.args[0]["code"] == "409_DUPLICATE_NAME", refused

    key = {"jobId": created["jobId"], "manualRunId": "m-1", "reason": "a foreign caller"}
    run = call("job.trigger", params=json.dumps({"name": "Ada"}).encode(), **key)
    again = call("job.trigger", params=json.dumps({"name": "Ada"}).encode(), **key)
    assert again["runId"] == run["runId"], "the same key made two runs"
    until = time.monotonic() + 20
    while run["state"] != "SUCCESS":
        assert time.monotonic() < until, run
        time.sleep(0.02)
        run = call("run.get", runId=run["runId"])
    assert json.loads(run["result"]) == {"hello": "Ada"}, run
    log = call("run.log", runId=run["runId"])
    assert log["text"] == "greeting Ada\n", log
    assert [item["runId"] for item in call("job.runs", jobId=created["jobId"])["items"]] == [run["runId"]]
    session.close()
    print("ok", run["runId"])


if __name__ == "__main__":
    main(*sys.argv[1:])
