"""One typed call of the Python client, and what it gave as JSON. usage: call.py HOST:PORT TOKEN METHOD PARAMS"""

import dataclasses
import json
import re
import sys
from datetime import datetime
from enum import Enum

from campanile import ApiError, Quota, TargetSettings
from campanile.blocking import Client
from campanile.shapes import read
from campanile.spec import Cron, JobSpec, Manual

INSTANTS = {"from": "start"}


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def shown(value):
    """As HTTP shows it."""
    if dataclasses.is_dataclass(value):
        fields = {}
        if hasattr(value, "TAG"):
            fields[value.TAG] = value.KIND
        for field in dataclasses.fields(value):
            item = getattr(value, field.name)
            if field.metadata.get("flat"):
                fields.update(shown(item))
            else:
                fields[field.metadata.get("wire") or camel(field.name)] = shown(item)
        return fields
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return value


def arguments(method, given):
    """Names and types of Python for those of the wire."""
    if method == "job.create":
        return [JobSpec(name=given["name"], trigger=Manual())], {}
    if method == "tenant.set":
        return [given.pop("tenantId"), read(Quota, given)], {}
    if method == "target.set":
        return [given.pop("tenantId"), given.pop("target"), read(TargetSettings, given)], {}
    if method == "schedule.preview":
        trigger = Cron(expr=given["trigger"]["expr"])
        return [trigger], {"after": datetime.fromisoformat(given["after"]), "count": given["count"]}
    if method == "bulk.create":
        # Python names the parts of the filter.
        given = {**given, **given.get("filter", {})}
        given.pop("filter", None)
    named = {}
    for name, value in given.items():
        if name in ("from", "to", "at") and isinstance(value, str):
            value = datetime.fromisoformat(value)
        named[INSTANTS.get(name) or re.sub(r"([A-Z])", r"_\1", name).lower()] = value
    return [], named


address, token, method, params = sys.argv[1:]
with Client(address, token=token) as client:
    positional, named = arguments(method, json.loads(params))
    try:
        answer = getattr(client, re.sub(r"([A-Z])", r"_\1", method.replace(".", "_")).lower())(*positional, **named)
    except ApiError as error:
        print(json.dumps({"code": error.code}))
    else:
        if method in ("tenant.list", "target.list", "executor.list", "pool.list"):
            answer = {"items": answer}
        print(json.dumps({"ok": shown(answer)}))
