"""The newest client on PyPI that is generated from the protocol has no operation, parameter or field that the served
document lacks. A failure without a change of this project means that the protocol changed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "lance-namespace-urllib3-client"


def test_the_served_document_has_the_newest_protocol(catalog, tmp_path):
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "-d", tmp_path]
    subprocess.run([*pip, PACKAGE], check=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    describe = [sys.executable, Path(__file__).with_name("describe_client.py")]
    environment = {"PYTHONPATH": str(tmp_path)}
    described = subprocess.run(describe, env=environment, check=True, capture_output=True, text=True)
    lacks = missing_in(catalog.get("/openapi.json"), *json.loads(described.stdout))
    assert lacks == [], f"{wheel.stem} has more than the catalog: the protocol changed"


def missing_in(document: dict, operations: dict, models: dict) -> list[str]:
    """Returns the operations, query parameters and fields of a generated client that a document lacks."""
    missing = []
    for operation, parts in operations.items():
        method, path = operation.split(" ")
        served = document["paths"].get(path, {}).get(method)
        if served is None:
            missing.append(operation)
            continue
        known = {resolved(document, each)["name"] for each in served.get("parameters", [])}
        missing += [f"{operation}: {each}" for each in parts["parameters"] if each not in known]
        contents = {"request": served.get("requestBody"), "response": next(each for status, each in served["responses"].items() if status.startswith("2"))}
        for part, content in contents.items():
            schema = resolved(document, content or {}).get("content", {}).get("application/json", {}).get("schema", {})
            for name in parts[part]:
                missing += fields_missing(document, schema, models, name)
    return sorted(set(missing))


def fields_missing(document: dict, schema: dict, models: dict, name: str, outer: tuple = ()) -> list[str]:
    if name not in models or name in outer:
        return []
    properties = properties_of(document, schema)
    missing = [f"{name}.{field}" for field in models[name] if field not in properties]
    for field, types in models[name].items():
        for each in types if field in properties else []:
            missing += fields_missing(document, properties[field], models, each, (*outer, name))
    return missing


def properties_of(document: dict, schema: dict) -> dict:
    """Returns the properties of an object, of the objects of a list or of a map, or of one of several schemas."""
    schema = resolved(document, schema)
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", []), *schema.get("allOf", [])]
    found = dict(schema.get("properties", {}))
    for each in inner:
        found |= properties_of(document, each) if isinstance(each, dict) else {}
    return found


def resolved(document: dict, node: dict) -> dict:
    while "$ref" in node:
        path, node = node["$ref"].removeprefix("#/").split("/"), document
        for part in path:
            node = node[part]
    return node
