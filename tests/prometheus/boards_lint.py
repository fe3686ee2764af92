"""Rules of boards, alerts and runbooks that need no server.

- Every panel has a title, a description, a unit of Grafana's, the datasource variable, and queries with legends; no two panels of a board
  have one title or overlap.
- Every query, recording rule and alert names only metrics of docs/reference/metrics.md, series of recording rules, and Prometheus' own.
- Every alert has a summary, a description, a severity, a priority, and a page in docs/runbooks; every page is of an alert, has its three
  headings, and names only commands of docs/reference/cli.md.

The rules of rules come from Prometheus itself (`rules` of its API), so that nothing here reads YAML.
"""

import json
import re
import subprocess
import sys

from support import DASHBOARDS, ROOT, RUNBOOKS

# Units of Grafana that our boards use.
UNITS = {"none", "ms", "s", "bytes", "Bps", "percentunit", "reqps", "pps"}
BOARDS = {"overview", "tenant", "node-and-cluster", "store", "executors"}
# Words of PromQL that are not names of metrics. What stands before a parenthesis is a function.
WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "offset", "bool", "inf", "nan"}
# Series that Prometheus makes.
OWN = {"up", "ALERTS"}
HEADINGS = ["## What it means", "## How to see it", "## What to do"]


def documented():
    """Names of the page of metrics, each with its type."""
    page = (ROOT / "docs/reference/metrics.md").read_text()
    return dict(re.findall(r"^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \|", page, re.M))


def series(metrics):
    """Names under which Prometheus has them."""
    parts = ("_bucket", "_sum", "_count")
    return {name + part for name, kind in metrics.items() for part in (parts if kind == "histogram" else ("",))}


def named(expression):
    """Names of series in an expression."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', expression)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text)
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", text)
    # Numbers, also with a unit of time.
    text = re.sub(r"\b\d[\w.]*", " ", text)
    names = re.findall(r"([A-Za-z_:][A-Za-z0-9_:]*)\s*(\()?", text)
    return {name for name, call in names if not call and name.lower() not in WORDS}


def overlaps(a, b):
    a, b = a["gridPos"], b["gridPos"]
    return a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]


def panel_faults(panel, known):
    for key in ("title", "description"):
        if not str(panel.get(key, "")).strip():
            yield f"no {key}"
    unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit")
    if unit not in UNITS:
        yield f"unit {unit!r}"
    queries = panel.get("targets", [])
    if not queries:
        yield "no query"
    if len({query.get("refId") for query in queries}) != len(queries):
        yield "two queries have one refId"
    for query in queries:
        if not query.get("legendFormat"):
            yield f"no legend: {query.get('expr')}"
        if "$job" not in query.get("expr", ""):
            yield f"asks for every job: {query.get('expr')}"
        for name in sorted(named(query.get("expr", "")) - known):
            yield f"unknown metric {name}"
    for part in [panel, *queries]:
        if part.get("datasource") != {"type": "prometheus", "uid": "${datasource}"}:
            yield "another datasource than the variable"


def board_faults(board, known):
    """What is wrong with one board, a sentence each."""
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    if not panels:
        yield "no panels"
    for panel in panels:
        yield from (f"{panel.get('title')}: {fault}" for fault in panel_faults(panel, known))
    titles = [panel.get("title") for panel in panels]
    yield from (f"two panels are called {title}" for title in sorted({t for t in titles if titles.count(t) > 1}))
    if len({panel["id"] for panel in board["panels"]}) != len(board["panels"]):
        yield "two panels have one id"
    for at, a in enumerate(board["panels"]):
        yield from (f"{a['title']} and {b['title']} overlap" for b in board["panels"][at + 1 :] if overlaps(a, b))
    variables = {variable["name"] for variable in board["templating"]["list"]}
    if not {"datasource", "job"} <= variables:
        yield "no variable for the datasource or the job"
    text = json.dumps(board["panels"])
    for name in sorted(variables - {"datasource", "job"}):
        if f"${name}" not in text:
            yield f"nothing uses the variable {name}"
    for name in sorted(set(re.findall(r"\$(\w+)", text)) - variables - {"__rate_interval"}):
        yield f"there is no variable {name}"


def rule_faults(rules, known):
    """What is wrong with recording rules and alerts as Prometheus knows them."""
    for rule in rules:
        for name in sorted(named(rule["query"]) - known):
            yield f"{rule['name']}: unknown metric {name}"
        if rule["type"] != "alerting":
            continue
        notes, labels = rule["annotations"], rule["labels"]
        for key in ("summary", "description"):
            if not notes.get(key):
                yield f"{rule['name']}: no {key}"
        if (labels.get("severity"), labels.get("priority")) not in {("critical", "1"), ("warning", "2")}:
            yield f"{rule['name']}: severity {labels.get('severity')} and priority {labels.get('priority')}"
        if notes.get("runbook") != f"docs/runbooks/{rule['name']}.md":
            yield f"{rule['name']}: its runbook is not docs/runbooks/{rule['name']}.md"


def commands():
    """Commands of the reference, such as `job list`, each with its help text."""
    page = (ROOT / "docs/reference/cli.md").read_text()
    parts = re.split(r"^#{2,3} campanile ([a-z -]+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def called(text):
    """Our commands that a page quotes: words, and flags."""
    code = re.findall(r"```sh\n(.*?)```", text, re.S) + re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    for line in "\n".join(code).splitlines():
        for words, rest in re.findall(r"\bcampanile((?: [a-z][a-z-]*)+)([^#|;]*)", line):
            yield words.split(), re.findall(r"--[a-z-]+", rest)


def command_faults(text, there_are):
    for words, flags in called(text):
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in there_are), None)
        is_group = any(other.startswith(words[0] + " ") for other in there_are)
        if name is None or is_group and name == words[0]:
            yield f"there is no command 'campanile {' '.join(words[:2])}'"
        else:
            known = re.findall(r"--[a-z-]+", there_are[name])
            yield from (f"'campanile {name}' has no {flag}" for flag in flags if flag not in known)


def runbook_faults(alerts, known):
    """What is wrong with the pages of docs/runbooks."""
    there = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}
    yield from (f"docs/runbooks/{name}.md is missing" for name in sorted(alerts - there))
    yield from (f"docs/runbooks/{name}.md: there is no such alert" for name in sorted(there - alerts))
    index = (RUNBOOKS / "README.md").read_text()
    yield from (f"docs/runbooks/README.md does not name {name}" for name in sorted(alerts) if f"({name}.md)" not in index)
    there_are = commands()
    for page in sorted(RUNBOOKS.glob("*.md")):
        text = page.read_text()
        for heading in HEADINGS if page.stem != "README" else []:
            if not re.search(rf"^{heading}\n+\S", text, re.M):
                yield f"{page.name}: nothing under '{heading}'"
        yield from (f"{page.name}: {fault}" for fault in command_faults(text, there_are))
        for name in sorted(set(re.findall(r"\b(?:campanile_[a-z0-9_]+)\b", text)) - known):
            yield f"{page.name}: unknown metric {name}"


def check(rules):
    """Everything that is wrong; `rules` are those of Prometheus' API."""
    generated = subprocess.run([sys.executable, ROOT / "deploy/grafana/boards.py", "--check"], capture_output=True, text=True)
    faults = [generated.stderr.strip()] if generated.returncode else []
    metrics = documented()
    if len(metrics) < 100:
        return [f"docs/reference/metrics.md has only {len(metrics)} metrics"]
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    known = series(metrics) | recorded | OWN
    boards = {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}
    if set(boards) != BOARDS:
        faults.append(f"boards are {sorted(boards)}")
    for name, board in boards.items():
        faults += [f"{name}.json: {fault}" for fault in board_faults(board, known)]
    if len({board["uid"] for board in boards.values()}) != len(boards):
        faults.append("two boards have one uid")
    faults += rule_faults(rules, known)
    faults += runbook_faults({rule["name"] for rule in rules if rule["type"] == "alerting"}, known | set(metrics))
    return faults
