"""What Schemathesis cannot know of this API: which ids there are, and how lines of JSON are written."""

import json
import os

import schemathesis

# Seconds that the API takes.
WAITS = {str(seconds) for seconds in range(2, 61)}
# A run that has ended for good: its log can be followed to its end.
ENDED = int(os.environ["CAMPANILE_ENDED"])
IDS = json.loads(os.environ["CAMPANILE_IDS"])


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Half of the ids are of something that is there."""
    for name, known in IDS.items():
        value = (path_parameters or {}).get(name)
        if isinstance(value, int) and value % 2:
            path_parameters[name] = known[value % len(known)]
        elif isinstance(value, str) and len(value) % 2:
            path_parameters[name] = known[0]
    return path_parameters


@schemathesis.hook
def before_call(context, case, kwargs):
    """What would wait for long does not: a fuzzer asks hundreds of times."""
    query = case.query or {}
    if str(query.get("follow")).lower() == "true" and "runId" in (case.path_parameters or {}):
        case.path_parameters["runId"] = ENDED
    if case.operation.path.endswith("/watch"):
        # Changes come without end.
        case.query = {**query, "waitSec": 0} if "waitSec" not in query else query
        query = case.query
    if str(query.get("waitSec")) in WAITS:
        query["waitSec"] = 1


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    """One job is one line."""
    return json.dumps(value).encode()
