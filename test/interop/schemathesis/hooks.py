"""What schemathesis has to be told about the catalog, apart from its OpenAPI document."""

import json
import os
import zlib

import schemathesis

# Ids of objects that are there, by the word that follows /v1/ in a path.
EXISTING = json.loads(os.environ["TILTYARD_TEST_EXISTING"])


@schemathesis.serializer("application/vnd.apache.arrow.stream")
def arrow_stream(ctx, value):
    """Any bytes: hardly ever a stream of rows, which is told as such."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Valid requests follow the rules that a schema cannot say, and half of them are about what is there."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    fields = [fields for fields in (case.query, case.body) if isinstance(fields, dict)]
    if "id" in case.path_parameters:
        kind = case.path.split("/")[2]
        case.path_parameters["id"] = valid_id(kind, str(case.path_parameters["id"]))
        for each in fields:
            each.pop("delimiter", None)
            each.pop("id", None)
    case.query.pop("page_token", None)
    for each in fields:
        if isinstance(each.get("branch"), str):
            each["branch"] = "main"


def valid_id(kind, text):
    """
    Chooses by what was generated and not by chance, so that a run can be repeated.

    What was generated may have %24 in the place of the delimiter.
    """
    existing = EXISTING.get(kind, [])
    choice = zlib.crc32(text.encode("utf-8", "replace"))
    if existing and choice % 2 == 0:
        return existing[choice // 2 % len(existing)]
    return text.replace("%24", "").replace("$", "") or "none"
