"""Every call against a real node, and the errors that it answers with."""

import asyncio
import inspect
import re
from datetime import UTC, datetime, timedelta

import pytest
from nodes import ROOT, Node, eventually, unique

import campanile
import campanile.blocking
from campanile import (
    Client,
    Command,
    CommandLimits,
    ConcurrencyPolicy,
    Cron,
    Decision,
    Executor,
    FixedDelay,
    FixedRate,
    Handler,
    Http,
    JobSpec,
    JobStatus,
    LogLevel,
    Manual,
    MisfirePolicy,
    Once,
    Other,
    Outcome,
    Quota,
    RetryPolicy,
    RunState,
)
from campanile.errors import KNOWN_CODES


def methods_of_the_protocol() -> list[str]:
    """The operations of callers that the table of operations has for RPC."""
    areas = sorted((ROOT / "schema/src/operations/table").glob("*.rs"))
    table = "".join(area.read_text() for area in areas)
    own = (ROOT / "schema/src/operations/own.rs").read_text()
    rows = re.findall(r' = "([a-z]+\.\w+)" \{\n(.*?)\n    \}', own, re.DOTALL)
    callers = [name for name, row in rows if "rpc: Ok(())" in row and "Least::Tenant" in row]
    return re.findall(r'^    \w+ = "([a-z]+\.\w+)":', table, re.MULTILINE) + callers


def test_every_method_of_the_protocol_has_a_function() -> None:
    methods = methods_of_the_protocol()
    assert len(methods) >= 30
    # A watch is stopped by closing it: its number is the connection's own.
    for method in set(methods) - {"watch.stop"}:
        name = re.sub(r"([A-Z])", r"_\1", method.replace(".", "_")).lower()
        assert inspect.iscoroutinefunction(getattr(Client, name, None)), method
        assert getattr(campanile.blocking.Client, name).__doc__ == getattr(Client, name).__doc__, method


def test_every_code_of_the_node_has_its_class_and_advice() -> None:
    source = (ROOT / "schema/src/error.rs").read_text()
    codes = {f"{status}_{text}" for status, text in re.findall(r'= (\d{3}) "([A-Z_]+)" exit', source)}
    assert len(codes) >= 25
    assert codes == KNOWN_CODES


async def test_a_job_through_its_life(client: Client) -> None:
    spec = JobSpec(
        unique("life"),
        Cron(expr="0 2 * * *", timezone="Europe/Berlin", misfire_policy=MisfirePolicy.SKIP),
        concurrency_policy=ConcurrencyPolicy.QUEUE_ONE,
        retry_policy=RetryPolicy(max_attempts=5, base_delay_sec=0.5),
        action=Handler("bill"),
        params={"customer": 7, "größe": [1.5, None, True]},
        secret_params={"password": "s3cret"},
        labels={"team": "billing"},
        timeout_sec=60,
    )
    created = await client.job_create(spec)
    assert created.status is JobStatus.ENABLED
    assert created.next_fire_at is not None
    assert created.next_fire_at.tzinfo is UTC

    job = await client.job_get(created.job_id)
    assert (job.spec.name, job.spec.params, job.spec.action) == (spec.name, spec.params, Handler("bill"))
    assert isinstance(job.spec.trigger, Cron)
    assert (job.spec.trigger.dialect, job.spec.trigger.timezone) == ("UNIX", "Europe/Berlin")
    assert (job.spec.concurrency_policy, job.spec.retry_policy) == (ConcurrencyPolicy.QUEUE_ONE, spec.retry_policy)
    assert job.spec.secret_params == {"password": "***"}
    assert abs(job.created_at - datetime.now(UTC)) < timedelta(minutes=5)

    page = await client.job_list(labels="team=billing", text=spec.name, status=JobStatus.ENABLED)
    assert [found.job_id for found in page] == [job.job_id]
    assert (await client.job_pause(job.job_id, reason="a test")).status is JobStatus.PAUSED
    assert (await client.job_resume(job.job_id)).status is JobStatus.ENABLED
    changed = JobSpec(spec.name, FixedRate.every(timedelta(minutes=5)), params=[1, 2])
    current = await client.job_get(job.job_id)
    replaced = await client.job_replace(job.job_id, current.version, changed)
    assert (replaced.spec.trigger.every_sec, replaced.spec.params) == (300, [1, 2])  # type: ignore[union-attr]
    await client.job_delete(job.job_id, reason="done")
    deleted = await eventually(lambda: _deleted(client, job.job_id))
    assert deleted


async def _deleted(client: Client, job_id: int) -> bool:
    try:
        return (await client.job_get(job_id)).status is JobStatus.DELETED
    except campanile.NotFoundError:
        return True


async def test_each_trigger_is_taken_and_read_back(client: Client) -> None:
    at = datetime(2099, 5, 1, 12, 30, 15, 250_000, UTC)
    for trigger in (
        Cron.of("*/5 * * * *"),
        FixedRate(every_sec=30, anchor_at=at),
        FixedDelay.after(30),
        Once(at=at),
        Once.after(86_400),
        Manual(),
    ):
        created = await client.job_create(JobSpec(unique("trigger"), trigger))
        read = (await client.job_get(created.job_id)).spec.trigger
        assert type(read) is type(trigger)
        if isinstance(read, Once) and isinstance(trigger, Once) and trigger.at:
            assert read.at == at
            assert created.next_fire_at == at
        if isinstance(read, FixedRate):
            assert read.anchor_at == at


async def test_a_local_time_is_read_back_as_its_instant(client: Client) -> None:
    local = datetime(2099, 1, 15, 10, 0)  # noqa: DTZ001 - its zone is the field beside it
    created = await client.job_create(JobSpec(unique("local"), Once(at=local, timezone="Asia/Shanghai")))
    read = (await client.job_get(created.job_id)).spec.trigger
    assert isinstance(read, Once)
    assert (read.at, read.timezone) == (datetime(2099, 1, 15, 2, 0, tzinfo=UTC), None)
    with pytest.raises(campanile.CampanileError, match="UNKNOWN_TIMEZONE"):
        await client.job_create(JobSpec(unique("local"), Once(at=local, timezone="Asia/Shangai")))


async def test_other_words_for_once_are_read_back_as_once(client: Client) -> None:
    for trigger in (
        Other({"type": "DELAY", "delayMs": 86_400_500}),
        Other({"type": "DELAY", "delaySec": 86_400}),
        Other({"type": "IMMEDIATE"}),
        Once.after(86_400.5),
        Once.immediately(),
    ):
        created = await client.job_create(JobSpec(unique("word"), trigger, executor_selector="nobody"))
        read = (await client.job_get(created.job_id)).spec.trigger
        assert isinstance(read, Once)
        assert (read.delay_sec, read.delay_ms) == (None, None)
        assert read.at is not None


async def test_the_same_key_makes_one_job_and_one_run(client: Client) -> None:
    spec = JobSpec(unique("keyed"), Manual(), executor_selector="nobody")
    key = unique("key")
    first = await client.job_create(spec, idempotency_key=key)
    again = await client.job_create(spec, idempotency_key=key)
    assert first == again
    with pytest.raises(campanile.IdempotencyKeyReusedError):
        await client.job_create(JobSpec(unique("other"), Manual()), idempotency_key=key)
    runs = [await client.job_trigger(first.job_id, manual_run_id="m-1", reason="test") for _ in range(2)]
    assert runs[0].run_id == runs[1].run_id
    assert (runs[0].key, runs[0].source, runs[0].reason) == ("m-1", "MANUAL", "test")
    canceled = await client.run_cancel(runs[0].run_id, reason="enough")
    assert canceled.state is RunState.CANCELED
    with pytest.raises(campanile.IllegalStateError):
        await client.run_cancel(runs[0].run_id)


async def test_many_jobs_in_one_message(client: Client) -> None:
    label = unique("many")
    specs = [JobSpec(unique("many"), Manual(), labels={"batch": label}) for _ in range(30)]
    answers = await client.job_create_many([*specs, specs[0], JobSpec("no such name!", Manual())])
    made = [answer for answer in answers if isinstance(answer, campanile.Created)]
    assert len(made) == 30
    taken, invalid = answers[30:]
    assert isinstance(taken, campanile.DuplicateNameError)
    assert isinstance(invalid, campanile.InvalidArgumentError)
    page = await client.job_list(labels=f"batch={label}", page_size=20)
    assert len(page.items) == 20
    assert page.next_page_token is not None
    listed = {job.job_id async for job in client.jobs(labels=f"batch={label}")}
    assert listed == {answer.job_id for answer in made}
    second = await client.job_list(labels=f"batch={label}", page_size=20, page_token=page.next_page_token)
    assert {job.job_id for job in (*page, *second)} == listed


async def test_runs_logs_and_the_ledger_of_a_command(client: Client) -> None:
    command = Command(["/bin/sh", "-c", "echo to the log; exit $CODE"], env={"CODE": "0"})
    created = await client.job_create(JobSpec(unique("command"), Once.after(0), action=command))

    async def ran() -> list[campanile.Run]:
        return [run for run in await client.job_runs(created.job_id) if run.state.is_final]

    [run] = await eventually(ran)
    assert (run.state, run.attempt_count, run.source) == (RunState.SUCCESS, 1, "SCHEDULE")
    assert (await client.run_log_text(run.run_id)) == "to the log\n"
    piece = await client.run_log(run.run_id, attempt=1, offset=3)
    assert (piece.text, piece.end) == ("the log\n", True)
    assert (await client.run_get(run.run_id)).attempts[0].executor_id == "dev"

    async def told() -> campanile.Ledger | None:
        ledger = await client.job_ledger(created.job_id)
        return ledger if ledger.items else None

    ledger = await eventually(told)
    assert ledger is not None
    [entry] = ledger.items
    assert (entry.count, entry.run_id) == (1, run.run_id)
    assert entry.outcome in (Outcome.FIRED, Outcome.FIRED_LATE)
    assert ledger.start < entry.logical_time <= ledger.to
    # Both ends are included.
    same = await client.job_ledger(created.job_id, start=entry.logical_time, to=entry.logical_time)
    assert [item.run_id for item in same.items] == [run.run_id]
    after = entry.logical_time + timedelta(milliseconds=1)
    later = await client.job_ledger(created.job_id, start=after, to=datetime.now(UTC), page_size=10)
    assert later.items == []


async def test_requests_and_limits_are_actions(client: Client) -> None:
    url = "http://127.0.0.1:9/{{runId}}"
    request = Http(url=url, method="PUT", headers={"X-Team": "pay"}, body={"n": ["{{params.n}}"]})
    spec = JobSpec(unique("request"), Manual(), action=request, retry_policy=RetryPolicy(max_attempts=1))
    job_id = (await client.job_create(spec)).job_id
    assert (await client.job_get(job_id)).spec.action == request
    run = await client.run_wait((await client.job_trigger(job_id, params={"n": 1})).run_id)
    # Loopback is not public, and the node's executor was not told to allow it.
    assert (run.state, run.attempts[0].error_code) == (RunState.FAILED, "HTTP_ADDRESS_REFUSED")
    limited = Command(["/bin/sh", "-c", "ulimit -n; nice"], limits=CommandLimits(open_files=64), nice=1)
    job_id = (await client.job_create(JobSpec(unique("limited"), Manual(), action=limited))).job_id
    assert (await client.job_get(job_id)).spec.action == limited
    run = await client.run_wait((await client.job_trigger(job_id)).run_id)
    assert (await client.run_log_text(run.run_id)).splitlines()[0] == "64"


async def test_a_search_finds_lines_of_a_log(client: Client) -> None:
    script = "echo 'INFO one'; echo 'WARN two'; echo three; echo 'INFO four'"
    spec = JobSpec(unique("searched"), Manual(), action=Command(["/bin/sh", "-c", script]))
    job_id = (await client.job_create(spec)).job_id
    run = await client.run_wait((await client.job_trigger(job_id)).run_id)

    async def whole() -> bool:
        return (await client.run_log_text(run.run_id)).endswith("four\n")

    await eventually(whole)
    found = await client.run_log(run.run_id, level=LogLevel.WARN)
    assert (found.text, found.lines, found.end) == ("WARN two\nthree\n", [2, 3], True)
    found = await client.run_log(run.run_id, contains="INFO", tail=1)
    assert (found.text, found.lines) == ("INFO four\n", [4])
    assert (await client.run_log(run.run_id)).lines is None


async def test_a_run_belongs_to_the_trace_of_its_caller(client: Client, shared_node: Node) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    span = f"00-{trace}-b7ad6b7169203331-01"
    action = Command(["/bin/sh", "-c", "echo $TRACEPARENT"])
    allow = ConcurrencyPolicy.ALLOW
    job_id = (
        await client.job_create(JobSpec(unique("traced"), Manual(), concurrency_policy=allow, action=action))
    ).job_id
    run = await client.run_wait((await client.in_trace(span).job_trigger(job_id)).run_id)
    assert run.trace_id == trace
    assert (await client.run_log_text(run.run_id)) == f"{span}\n", "the node records nothing"
    assert (await client.job_trigger(job_id)).trace_id is None

    def called() -> str | None:
        with campanile.blocking.Client(shared_node.rpc, token=shared_node.token) as blocking:
            return blocking.in_trace(span).job_trigger(job_id).trace_id

    assert await asyncio.to_thread(called) == trace


async def test_the_audit_trail_tells_who_changed_what_and_a_run_who_triggered_it(client: Client) -> None:
    job_id = (await client.job_create(JobSpec(unique("audited"), Manual()))).job_id
    run = await client.job_trigger(job_id)
    assert run.triggered_by is not None
    assert (run.triggered_by.address, run.triggered_by.request_id is None) == ("127.0.0.1", False)
    await client.job_pause(job_id, reason="too loud")
    first = await client.audit_list(job_id=job_id, page_size=1)
    rest = await client.audit_list(job_id=job_id, page_token=first.next_page_token)
    assert [(r.operation, r.outcome, r.reason) for r in first.items] == [("job.pause", "DONE", "too loud")]
    assert [(r.operation, r.who) for r in rest.items] == [("job.create", run.triggered_by.who)]
    since = await client.audit_list(job_id=job_id, start=first.items[0].at, operation="job.create")
    assert since.items == []


async def test_dead_letters_are_redriven_and_discarded(client: Client) -> None:
    broken = Command(["/bin/sh", "-c", "exit 3"])
    spec = JobSpec(unique("dead"), Manual(), action=broken, retry_policy=RetryPolicy(max_attempts=1))
    job_id = (await client.job_create(spec)).job_id
    run = await client.run_wait((await client.job_trigger(job_id)).run_id)
    assert (run.state, run.dead_letter) == (RunState.FAILED, True)

    async def letters() -> list[campanile.DeadLetter]:
        return [letter async for letter in client.dead_letters(tenant_id="default") if letter.run_id == run.run_id]

    [letter] = await eventually(letters)
    assert (letter.job_name, letter.attempt_count) == (spec.name, 1)
    redriven = await client.dlq_redrive(run.run_id, reason="again")
    assert (redriven.run_id, redriven.generation) == (run.run_id, 2)
    assert (await client.run_wait(run.run_id)).state is RunState.FAILED
    await eventually(letters)
    await client.dlq_discard(run.run_id, reason="known")

    async def gone() -> bool:
        return not await letters()

    await eventually(gone)
    retried = await client.run_retry(run.run_id, reason="by hand")
    assert retried.generation == 3
    assert (await client.run_wait(run.run_id)).attempt_count == 3


async def test_a_run_that_was_undone_goes_on_only_with_force(client: Client) -> None:
    undo = JobSpec(unique("undo"), Manual(), action=Command(["/bin/true"]))
    await client.job_create(undo)
    hooks = campanile.Hooks(on_failure=[campanile.Hook(undo.name, compensation=True)])
    once = RetryPolicy(max_attempts=1)
    spec = JobSpec(unique("undone"), Manual(), action=Command(["/bin/false"]), retry_policy=once, hooks=hooks)
    job_id = (await client.job_create(spec)).job_id
    run = await client.run_wait((await client.job_trigger(job_id)).run_id)
    assert run.compensated
    with pytest.raises(campanile.ConflictError) as refused:
        await client.run_retry(run.run_id)
    assert refused.value.code == "409_COMPENSATED"
    assert (await client.run_retry(run.run_id, force=True)).generation == 2


async def test_schedules_are_previewed(client: Client) -> None:
    after = datetime(2026, 10, 24, tzinfo=UTC)
    preview = await client.schedule_preview(Cron.of("30 2 * * *", timezone="Europe/Berlin"), after=after, count=3)
    assert len(preview.next) == 3
    assert preview.next[0] == datetime(2026, 10, 24, 0, 30, tzinfo=UTC)
    assert preview.description
    assert isinstance(preview.trigger, Cron)
    assert preview.trigger.dialect == "UNIX"
    assert preview.hazards, "02:30 comes twice on 25 October"


async def test_tenants_have_limits_and_pauses(client: Client) -> None:
    tenant = unique("tenant")
    made = await client.tenant_set(tenant, Quota(max_jobs=1, max_triggers_per_sec=50.0))
    assert (made.tenant_id, made.quota.max_jobs, made.quota.max_triggers_per_sec) == (tenant, 1, 50.0)
    job_id = (await client.job_create(JobSpec("only", Manual(), tenant_id=tenant))).job_id
    with pytest.raises(campanile.QuotaError) as refused:
        await client.job_create(JobSpec("second", Manual(), tenant_id=tenant))
    assert refused.value.reason == "TENANT_QUOTA_EXCEEDED"
    assert await client.tenant_pause(tenant, reason="a test") == []
    assert (await client.tenant_get(tenant)).paused
    with pytest.raises(campanile.JobPausedError):
        await client.job_trigger(job_id)
    await client.tenant_resume(tenant)
    assert not (await client.tenant_get(tenant)).paused
    assert tenant in {known.tenant_id for known in await client.tenant_list()}
    with pytest.raises(campanile.ConflictError) as kept:
        await client.tenant_delete(tenant)
    assert kept.value.detail == {"jobs": 1, "openRuns": 0}
    await client.job_delete(job_id)
    await client.tenant_delete(tenant, reason="a test")
    with pytest.raises(campanile.NotFoundError):
        await client.tenant_delete(tenant)


async def test_facts_of_node_executors_and_pools(client: Client) -> None:
    info = await client.system_info()
    assert info.ready
    assert info.cluster_id == client.welcome.cluster_id
    assert abs(info.now - datetime.now(UTC)) < timedelta(minutes=1)

    async def own() -> list[campanile.ExecutorInfo]:
        return [executor for executor in await client.executor_list() if executor.executor_id == "dev"]

    [executor] = await eventually(own)
    assert executor.pools == ["default"]
    assert any(pool.name == "default" and pool.executors >= 1 for pool in await client.pool_list())


async def test_the_system_is_paused_and_resumed(own_node: Node) -> None:
    async with Client.connect(own_node.rpc, token=own_node.token) as client:
        job_id = (await client.job_create(JobSpec("paused", Manual()))).job_id
        assert await client.system_pause(reason="a test") == []
        with pytest.raises(campanile.JobPausedError):
            await client.job_trigger(job_id)
        await client.system_resume(reason="over")
        assert (await client.job_trigger(job_id)).state is not RunState.SUCCESS


async def test_a_person_decides_about_a_run_whose_executor_was_lost(own_node: Node) -> None:
    """With a lease of 10 s the loss itself takes that long."""
    async with Client.connect(own_node.rpc, token=own_node.token) as client:
        begun = asyncio.Event()
        executor = Executor(own_node.rpc, token=own_node.token, executor_id="lost")

        @executor.handler("work")
        async def work(ctx: campanile.Context, params: campanile.Json) -> None:
            begun.set()
            await ctx.canceled()

        handle = executor.start()
        spec = JobSpec("careful", Manual(), action=Handler("work"), idempotent=False)
        run_id = (await client.job_trigger((await client.job_create(spec)).job_id)).run_id
        await begun.wait()
        await handle.kill()
        run = await client.run_wait(run_id)
        assert run.state is RunState.NEEDS_CONFIRMATION
        confirmed = await client.run_confirm(run_id, Decision.SUCCEEDED, reason="looked")
        assert confirmed.state is RunState.SUCCESS


@pytest.mark.parametrize(
    ("spec", "kind", "reason", "names"),
    [
        (JobSpec("a b", Manual()), campanile.InvalidArgumentError, "INVALID_ARGUMENT", "name"),
        (JobSpec("cron", Cron.of("61 * * * *")), campanile.InvalidScheduleError, "INVALID_SCHEDULE", "61"),
        (
            JobSpec("zone", Cron.of("0 2 * * *", "Mars/Base")),
            campanile.InvalidScheduleError,
            "UNKNOWN_TIMEZONE",
            "Mars",
        ),
        (JobSpec("never", Cron.of("0 0 31 2 *")), campanile.InvalidScheduleError, "SCHEDULE_NEVER_FIRES", ""),
    ],
)
async def test_a_refused_job_says_why_and_what_to_do(
    client: Client, spec: JobSpec, kind: type[campanile.ApiError], reason: str, names: str
) -> None:
    with pytest.raises(kind) as refused:
        await client.job_create(spec)
    error = refused.value
    assert type(error) is kind
    assert (error.status, error.reason, error.code) == (400, reason, f"400_{reason}")
    assert names in error.message
    assert error.advice
    assert error.advice in str(error)
    assert not error.outcome_unknown


async def test_errors_have_types(client: Client) -> None:
    job_id = (await client.job_create(JobSpec(unique("errors"), Manual(), executor_selector="nobody"))).job_id
    job = await client.job_get(job_id)
    with pytest.raises(campanile.NotFoundError):
        await client.job_get(1)
    with pytest.raises(campanile.DuplicateNameError):
        await client.job_create(job.spec)
    with pytest.raises(campanile.StaleVersionError):
        await client.job_replace(job_id, job.version + 1, job.spec)
    await client.job_trigger(job_id)
    with pytest.raises(campanile.RunActiveError):
        await client.job_trigger(job_id)
    await client.job_pause(job_id)
    with pytest.raises(campanile.JobPausedError):
        await client.job_trigger(job_id)
    with pytest.raises(campanile.InvalidArgumentError, match="unknown field `lables`.*did you mean"):
        await client.call("job.list", {"lables": "a=b"})
    with pytest.raises(campanile.NotFoundError, match=r"did you mean job.get\?"):
        await client.call("job.gett")
    with pytest.raises(campanile.TooLargeError):
        await client.call("job.get", {"jobId": b"x" * (4 << 20)})
    with pytest.raises(campanile.DeadlineError, match="no executor|QUEUED"):
        await client.run_wait((await client.job_runs(job_id)).items[0].run_id, timeout_sec=0.1)
    with pytest.raises(ValueError, match="no time zone"):
        await client.job_create(JobSpec("naive", Once(at=datetime(2099, 1, 1))))  # noqa: DTZ001 - what is refused
    with pytest.raises(campanile.UnauthenticatedError, match="token"):
        await Client.connect(_address(client), token="wrong")


def _address(client: Client) -> str:
    connection = client._link._connection
    assert connection is not None
    return connection.address


async def test_a_thousand_calls_over_one_connection(client: Client) -> None:
    """The answers find their calls, whatever order they come in."""
    prefix = unique("thousand")
    specs = [JobSpec(f"{prefix}/{n}", Manual()) for n in range(1000)]
    created = await asyncio.gather(*(client.job_create(spec) for spec in specs))
    jobs = await asyncio.gather(*(client.job_get(made.job_id) for made in created))
    assert [job.spec.name for job in jobs] == [spec.name for spec in specs]


def test_the_blocking_client_does_the_same(shared_node: Node) -> None:
    with campanile.blocking.Client(shared_node.rpc, token=shared_node.token) as client:
        spec = JobSpec(unique("blocking"), Manual(), action=Command(["/bin/echo", "hello"]))
        job_id = client.job_create(spec).job_id
        run = client.run_wait(client.job_trigger(job_id, manual_run_id="m").run_id, timeout_sec=30)
        assert run.state is RunState.SUCCESS
        assert client.run_log_text(run.run_id) == "hello\n"
        assert [found.run_id for found in client.runs(job_id)] == [run.run_id]
        assert job_id in {job.job_id for job in client.jobs(text=spec.name)}
        assert client.welcome.protocol == 1
        with pytest.raises(campanile.NotFoundError):
            client.job_get(1)
    with pytest.raises(campanile.ClosedError):
        client.job_get(job_id)
    with pytest.raises(campanile.UnauthenticatedError):
        campanile.blocking.Client(shared_node.rpc, token="wrong")
