"""The extensions of schemathesis for the catalog, in addition to its OpenAPI document."""

import json
import os
import zlib

import schemathesis

# The ids of existing objects, by the word after /v1/ in a path.
EXISTING = json.loads(os.environ["TILTYARD_TEST_EXISTING"])


@schemathesis.serializer("application/vnd.apache.arrow.stream")
def arrow_stream(ctx, value):
    """Serializes a value to bytes, which are rarely a stream of rows."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def filter_case(ctx, case):
    """Skips bodies whose validity a schema cannot express: no key is `__proto__`, white space is an empty body, and a
    null means that a field is absent."""
    body = case.body
    if isinstance(body, bytes):
        return body.strip() != b""
    is_valid = case.meta is None or case.meta.generation.mode.is_positive
    return "__proto__" not in json.dumps(body, default=str) and (is_valid or not has_null(body))


def has_null(value):
    if isinstance(value, dict):
        return any(each is None or has_null(each) for each in value.values())
    return isinstance(value, list) and any(has_null(each) for each in value)


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Adapts valid requests to rules that a schema cannot express; half of them refer to existing objects."""
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
    """Chooses deterministically by the generated text, so that a run can be repeated.

    The generated text may contain %24 in place of the delimiter.
    """
    existing = EXISTING.get(kind, [])
    choice = zlib.crc32(text.encode("utf-8", "replace"))
    if existing and choice % 2 == 0:
        return existing[choice // 2 % len(existing)]
    return text.replace("%24", "").replace("$", "") or "none"
