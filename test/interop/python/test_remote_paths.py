"""Every path that LanceDB's remote clients call, read from their binaries, is supported or a documented 406."""

import importlib.util
import json
import re
import urllib.error
import urllib.request
from pathlib import Path

from catalog import PROJECT
from pages import PAGES

PAGE = PAGES / "lancedb-remote.md"
CLIENTS = {
    "Python": Path(importlib.util.find_spec("lancedb").origin).parent / "_lancedb.abi3.so",
    "Node": next(PROJECT.glob("node_modules/@lancedb/lancedb-*/*.node")),
}
PREFIX = re.compile(rb"/v1/(?:table|function|view|secret|materialized_view|namespace)/(?=\xc0)")
# The paths without arguments, which are followed by other literals.
LITERALS = ["/v1/table/", *(f"/v1/jobs/{name}" for name in ("cancel", "describe", "list", "pause", "query_events", "resume"))]


def paths_of(binary: Path) -> set[str]:
    code = binary.read_bytes()
    formats = {found[0].decode() + rest_of_format(code, found.end()) for found in PREFIX.finditer(code)}
    return formats | {path for path in LITERALS if path.encode() in code}


def rest_of_format(code: bytes, at: int) -> str:
    """Parses a format string of Rust: an argument is 0xc0, a literal its length and its bytes, the end 0."""
    path = ""
    while code[at] != 0:
        length = 0 if code[at] == 0xC0 else code[at]
        path += code[at + 1 : at + 1 + length].decode() if length else "{}"
        at += 1 + length
    return path


def is_answered(catalog, path: str) -> bool:
    url = catalog.url + path.replace("{}", "missing")
    headers = {"x-api-key": catalog.key, "x-lancedb-database": "films", "content-type": "application/json"}
    requests = [urllib.request.Request(url, data=body, headers=headers) for body in (None, b"{}")]
    return any("has no operation" not in detail_of(request) for request in requests)


def detail_of(request: urllib.request.Request) -> str:
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as error:
        return json.load(error)["detail"]
    return ""


def test_the_page_lists_every_path_of_the_clients(catalog):
    called = {client: paths_of(binary) for client, binary in CLIENTS.items()}
    listed = re.findall(r"^\| `(/v1/\S*)` \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    expected = {
        (path, ", ".join(client for client, paths in called.items() if path in paths), is_answered(catalog, path))
        for path in set.union(*called.values())
    }
    found = {(path, clients.strip(), answer.strip() == "answered") for path, clients, answer in listed}
    assert found ^ expected == set(), "the table of paths in docs/clients/lancedb-remote.md"
    assert all(answer.strip() == "answered" or answer.startswith("406: ") for *_, answer in listed)
