"""A real Prometheus reads a loaded node as docs/operations.md says; every rule and every query of a board gives data there."""

import json
import re
import signal
import subprocess
import time

from support import DASHBOARDS, ROOT, Failed, Processes, Prometheus, ensure, eventually, node

# More than a node names one by one (LABEL_VALUES in schema/src/limits.rs).
TENANTS = 25
NAMED = 20

# Names of requirement R10, and what a node under this load shows: a test of the value.
R10 = {
    "trigger_delay_ms_p95": lambda value: 0 < value < 60_000,
    "misfire_count": lambda value: value == 0,
    "schedule_qps": lambda value: value > 0,
    "run_success_rate": lambda value: 0 < value < 1,
    "run_timeout_rate": lambda value: 0 < value < 1,
    "executor_heartbeat_lost": lambda value: value == 0,
    "dispatch_queue_lag": lambda value: value > 0,
    "retry_queue_depth": lambda value: value > 0,
    "dlq_growth_rate": lambda value: value > 0,
}


def replaced(pattern, by, text):
    text, count = re.subn(pattern, lambda _: by, text, flags=re.M)
    ensure(count == 1, f"the example of docs/operations.md has {count} times {pattern}")
    return text


def scrape_example(address, token):
    """The example of the page with this node's address and token."""
    page = (ROOT / "docs/operations.md").read_text()
    example = re.search(r"```yaml\n(scrape_configs:\n.*?)```", page, re.S).group(1)
    example = replaced(r"targets: \[.*\]$", f'targets: ["{address}"]', example)
    example = replaced(r"credentials_file: .*$", f"credentials_file: {token}", example)
    return replaced(r"scrape_interval: 15s$", "scrape_interval: 1s", example)


def job(name, tenant, every, command, **more):
    spec = {"name": name, "tenantId": tenant, "trigger": {"type": "FIXED_RATE", "everySec": every}}
    return {**spec, "action": {"kind": "COMMAND", "command": command}, **more}


def load():
    """Jobs of which some succeed, and others fail, time out, are retried, find no executor, or are skipped."""
    once = {"retryPolicy": {"maxAttempts": 1}}
    yield job("succeeds", "acme", 1, ["/bin/true"])
    yield job("fails", "acme", 1, ["/bin/false"], **once)
    yield job("times-out", "acme", 2, ["/bin/sleep", "60"], timeoutSec=1, concurrencyPolicy="FORBID", **once)
    yield job("retries", "globex", 2, ["/bin/false"], retryPolicy={"maxAttempts": 3, "baseDelaySec": 300})
    yield job("waits", "globex", 2, ["/bin/true"], executorSelector="nobody")
    yield job("paused", "globex", 1, ["/bin/true"])
    for number in range(TENANTS):
        yield job("quiet", f"tenant-{number:02}", 10, ["/bin/true"])


class Site:
    """A node with tokens, an executor and load, and a Prometheus that reads it."""

    def __init__(self, program, processes):
        self.program, self.home = program, processes.home
        self.token("me", "operator", "operator.token")
        self.token("prometheus", "metrics", "scraper.token")
        self.token("executor", "executor", "executor.token", "--pools", "default")
        self.node, facts = node(
            processes, program, "server", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data", "data", "--token-file", "tokens"
        )
        self.address = facts["http"]
        processes.start(
            program,
            "executor",
            "--rpc",
            facts["rpc"],
            "--token-file",
            "executor.token",
            "--slots",
            "16",
            "--log",
            "warn",
            "--drain-sec",
            "1",
            "--stop-grace-sec",
            "1",
        )
        specs = self.home / "jobs.jsonl"
        specs.write_text("".join(json.dumps(spec) + "\n" for spec in load()))
        self.call("tenant", "set", "acme", "--max-concurrent-runs", "50", "--max-queued-runs", "5000", "--max-jobs", "100")
        self.call("job", "create", "--bulk", specs)
        self.call("job", "pause", "paused", "--tenant", "globex")
        self.prometheus = Prometheus(processes, scrape_example(self.address, self.home / "scraper.token"))

    def token(self, name, role, file, *more):
        command = [self.program, "token", "new", "--name", name, "--role", role, *more, "--append", "tokens"]
        token = subprocess.run(command, cwd=self.home, check=True, capture_output=True, text=True).stdout
        (self.home / file).write_text(token)
        (self.home / file).chmod(0o600)

    def call(self, *arguments):
        command = [self.program, *map(str, arguments), "--server", f"http://{self.address}", "--token-file", "operator.token", "-o", "json"]
        ran = subprocess.run(command, cwd=self.home, capture_output=True, text=True)
        ensure(ran.returncode == 0, f"{' '.join(map(str, arguments))}: {ran.stdout}{ran.stderr}")
        return ran.stdout


def filled(expression):
    """A board's query with its variables chosen."""
    for name, value in {"__rate_interval": "10s", "job": "campanile", "instance": ".*", "tenant": ".*", "pool": ".*"}.items():
        expression = expression.replace(f"${name}", value)
    return expression


def board_queries():
    """Each query of each board, and each query by which a variable gets its values, with where it is."""
    for path in sorted(DASHBOARDS.glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield f"{path.name}: {panel['title']}", filled(target["expr"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
                selector = filled(metric) if "{" in metric else metric + '{job="campanile"}'
                yield f"{path.name}: variable {variable['name']}", f'count by ({label}) ({selector[:-1]}, {label}!=""}})'


def rule_queries(rules):
    """What rules ask for: an alert's series without their comparison, because it gives nothing while it does not fire."""
    for rule in rules:
        if rule["type"] == "recording":
            yield f"rule {rule['name']}", rule["name"]


def gives_data(prometheus, query):
    """Whether it gives a sample with a number."""
    return any(value == value for _, value in prometheus.samples(query))


def check_queries(prometheus, queries):
    """Each gives data; those that do not are asked again for a while, because some rates need a few scrapes."""
    lacking = dict.fromkeys(queries)

    def look():
        for asked in list(lacking):
            if gives_data(prometheus, asked[1]):
                del lacking[asked]
        return not lacking

    try:
        eventually("all queries give data", look, patience=30)
    except Failed as failed:
        told = "\n".join(f"  {where}: {query}" for where, query in lacking)
        raise Failed(f"{len(lacking)} of {len(queries)} queries give no data:\n{told}") from failed


def check_r10(prometheus):
    def wrong():
        values = {name: prometheus.value(name) for name in R10}
        return [f"{name} is {value}" for name, value in values.items() if value is None or not R10[name](value)]

    try:
        eventually("names of R10 have their values", lambda: not wrong())
    except Failed as failed:
        raise Failed(f"{failed}; under this load {', '.join(wrong())}") from failed
    print("names of R10: " + ", ".join(f"{name} {prometheus.value(name):.4g}" for name in R10))


def check_labels(prometheus):
    """Tenants have a bounded number of names, and the parts are the whole."""
    # Tenants with jobs, `other` besides.
    named = prometheus.value("count(campanile_tenant_jobs)")
    ensure(named == NAMED + 1, f"{named} tenants are named")
    others = prometheus.value('campanile_tenant_jobs{tenant="other"}')
    ensure(others >= TENANTS + 2 - NAMED, f"the others have {others} jobs")
    parts, whole = prometheus.value("sum(campanile_tenant_jobs)"), prometheus.value("campanile_jobs")
    ensure(parts == whole, f"tenants have {parts} jobs together, and the node {whole}")


def check(program, home, lint):
    """`lint` judges the rules as Prometheus knows them."""
    with Processes(home) as processes:
        site = Site(program, processes)
        prometheus = site.prometheus
        eventually("the target is up", prometheus.is_up)
        rules = eventually(
            "all rules were evaluated", lambda: [] if any(r["health"] == "unknown" for r in prometheus.rules()) else prometheus.rules()
        )
        lint(rules)
        check_r10(prometheus)
        queries = [*board_queries(), *rule_queries(rules)]
        check_queries(prometheus, queries)
        rules = prometheus.rules()
        wrong = [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"]
        ensure(not wrong, f"rules with errors: {wrong}")
        firing = [rule["name"] for rule in rules if rule.get("state") == "firing"]
        ensure(not firing, f"alerts fire although nothing has lasted: {firing}")
        check_labels(prometheus)
        print(f"{len(queries)} queries of boards and rules give data; {len(rules)} rules have no error")
        check_misfires(site)
        check_revoked(site)


def check_misfires(site):
    """Instants that a pause or a policy leaves out are no misfires; those are that a node decides too late."""
    prometheus = site.prometheus
    site.call("job", "resume", "paused", "--tenant", "globex")

    def skipped(reason):
        return prometheus.value(f'campanile_instants_skipped_total{{reason="{reason}"}}')

    eventually("instants were skipped", lambda: skipped("PAUSED") > 0 and skipped("RUN_ACTIVE") > 0)
    ensure(prometheus.value("misfire_count") == 0, f"a pause or FORBID counts as a misfire: {prometheus.value('misfire_count')}")
    late = {**job("late", "acme", 1, ["/bin/true"]), "trigger": {"type": "FIXED_RATE", "everySec": 1, "misfireThresholdSec": 1}}
    (site.home / "late.json").write_text(json.dumps(late))
    site.call("job", "create", "late.json")
    site.node.send_signal(signal.SIGSTOP)
    # How long the node stands still is the input.
    time.sleep(4)
    site.node.send_signal(signal.SIGCONT)
    eventually("instants that came too late are misfires", lambda: (prometheus.value("misfire_count") or 0) > 0)


def check_revoked(site):
    """The token is for this page only, and ends with its line."""
    tokens = site.home / "tokens"
    tokens.write_text("".join(line for line in tokens.read_text().splitlines(True) if not line.startswith("prometheus ")))
    eventually("a revoked token is refused", lambda: site.prometheus.value("up") == 0)
    [target] = site.prometheus.ask("targets")["activeTargets"]
    ensure("401" in target["lastError"], f"{target}")
