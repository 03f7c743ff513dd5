"""The benchmark fills the server that it compares with the catalog, with the same result as real requests."""

import json
import re
import subprocess
import sys
import urllib.request

import lance
from catalog import PROJECT
from lance.namespace import RestAdapter

TABLES = [f"bench$t_{number}" for number in range(40)]


def ask(url: str, path: str, body: bytes | None = None) -> str:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/{path}", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def declare(url: str, table: str) -> None:
    ask(url, f"table/{table}/declare", b"{}")


def copy_first(folder) -> None:
    program = [sys.executable, PROJECT / "test/bench/reference_fill.py", folder, TABLES[0]]
    subprocess.run(program, input="\n".join(TABLES[1:]), text=True, check=True)


def state(url: str, folder) -> dict:
    """Returns all responses and data of the server without the random numbers in the names of folders."""
    catalog = lance.dataset(f"{folder}/__manifest")
    found = {
        "described": [ask(url, f"table/{each}/describe", b"{}") for each in TABLES],
        "exist": [ask(url, f"table/{each}/exists", b"{}") for each in TABLES],
        "listed": ask(url, "namespace/bench/table/list"),
        "page": ask(url, "namespace/bench/table/list?limit=10"),
        "rows": catalog.to_table().to_pylist(),
        "schema": str(catalog.lance_schema),
        "format": catalog.data_storage_version,
        "fragments": len(catalog.get_fragments()),
        "indices": len(catalog.describe_indices()),
        "files": {
            str(file.relative_to(folder)): file.read_text()
            for file in sorted(folder.glob("*bench$*/**/*"))
        },
    }
    text = json.dumps(found).replace(str(folder), "")
    normal = json.loads(re.sub(r"\b[0-9a-f]{8}_bench", "bench", text))
    return {**normal, "files": sorted(normal["files"].items())}


def test_copies_of_a_declared_table_are_what_declares_leave(tmp_path):
    states = []
    for name in ("declared", "copied"):
        folder = tmp_path / name
        properties = {"root": str(folder), "table_version_tracking_enabled": "true", "manifest_enabled": "true"}
        with RestAdapter("dir", properties, host="127.0.0.1", port=0) as adapter:
            url = f"http://127.0.0.1:{adapter.port}"
            ask(url, "namespace/bench/create", b"{}")
            declare(url, TABLES[0])
            if name == "copied":
                copy_first(folder)
            else:
                for each in TABLES[1:]:
                    declare(url, each)
            states.append(state(url, folder))
    declared, copied = states
    assert len(declared["files"]) == len(declared["rows"]) - 1 == len(TABLES)
    assert copied == declared
