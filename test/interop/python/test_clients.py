"""
Compares the operations of each client with the table of docs/clients.

A client is a program of test/interop/clients, which runs the requested operations. The audit of the catalog shows how: a
version that the catalog adopted was committed outside the catalog.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

import lance
import pyarrow as pa
import pytest
from catalog import PROJECT
from pages import line_of, write_line
from spark import JVM_OPTIONS

CLIENTS = PROJECT / "test/interop/clients"
NODE = os.environ["TILTYARD_TEST_NODE"]
ENGINES = os.environ["TILTYARD_TEST_ENGINES"]
# The operations in their order in the test and in the table.
OPERATIONS = ["create", "create_as", "append", "read", "search", "update", "delete", "merge"] + [
    "compact",
    "overwrite",
    "add_column",
    "index",
    "version",
    "tag",
    "drop",
]
FINDS = {"create_as": [1, 2, 3], "search": [3], "version": [1, 2, 3], "tag": [1, 2, 3]}


@dataclass
class Client:
    command: list[str]
    # The party at fault for each operation that fails.
    faults: dict[str, str] = field(default_factory=dict)


KNOWN = {
    "pylance": Client([sys.executable, "with_pylance.py"]),
    "lancedb on the storage, Python": Client([sys.executable, "with_lancedb.py"]),
    "lancedb on the storage, Node": Client([NODE, "with_lancedb_node.ts"]),
    "lancedb remote, Python": Client([sys.executable, "with_lancedb_remote.py"]),
    "lancedb remote, Node": Client([NODE, "with_lancedb_node.ts", "remote"]),
    "Geneva": Client([sys.executable, "with_geneva.py"]),
    "Geneva remote": Client([sys.executable, "with_geneva.py", "remote"]),
    "lance-ray": Client([sys.executable, "with_lance_ray.py"]),
    "Ray Data": Client([sys.executable, "with_ray_data.py"], {"create": "Ray", "append": "Ray", "overwrite": "Ray"}),
    "daft": Client([ENGINES, "with_daft.py"]),
    "DuckDB": Client([ENGINES, "with_duckdb.py"], {"create_as": "DuckDB", "drop": "DuckDB"}),
    "Polars": Client([ENGINES, "with_polars.py"]),
    "Spark": Client([sys.executable, "with_spark.py"]),
    "Java": Client(["java", *JVM_OPTIONS, "-cp", f"{os.environ.get('TILTYARD_TEST_JAVA_JARS')}/*", "WithJava.java"]),
}


# The weekly ones need minutes for their start and their operations.
MARKS = {"slow": ("lance-ray", "Ray Data"), "jvm": ("Spark", "Java"), "weekly": ("Spark", "Ray Data")}


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [getattr(pytest.mark, mark) for mark, names in MARKS.items() if name in names]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in KNOWN])
def test_a_client_does_what_the_table_shows(catalog, namespace, name):
    outcomes = observe(catalog, namespace, KNOWN[name])
    line = f"| {name} | " + " | ".join(outcomes[operation] for operation in OPERATIONS) + " |"
    if os.environ.get("TILTYARD_TEST_WRITE_CLIENTS"):
        write_line(name, line)
    assert line_of(name) == line, "TILTYARD_TEST_WRITE_CLIENTS=1 writes what was seen"


def observe(catalog, namespace: str, client: Client) -> dict[str, str]:
    """Runs all operations of a client. Returns how it executed each."""
    where = {"URL": catalog.url, "KEY": catalog.key, "NAMESPACE": namespace}
    environment = {**os.environ, **where, "PYTHONPATH": os.path.dirname(__file__)}
    films = Films(catalog, namespace)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(client.command, cwd=CLIENTS, env=environment, **pipes) as program:
        offered = json.loads(program.stdout.readline())
        assert set(offered) <= set(OPERATIONS)
        outcomes = {}
        for operation in OPERATIONS:
            if operation not in offered:
                outcomes[operation] = ""
                films.make_up_for(operation)
                continue
            program.stdin.write(f"{operation}\n")
            program.stdin.flush()
            outcome = json.loads(program.stdout.readline())
            if "error" in outcome:
                assert operation in client.faults, f"{operation}: {outcome['error']}"
                outcomes[operation] = f"fails: {client.faults[operation]}"
                films.make_up_for(operation)
            else:
                outcomes[operation] = films.check(operation, outcome["found"])
        program.stdin.close()
    return outcomes


class Films:
    """The table of a client with its expected content."""

    def __init__(self, catalog, namespace: str) -> None:
        self.catalog = catalog
        self.id = [namespace, "films"]
        self.titles: dict[int, str] = {}
        self.seen: set[str] = set()

    def make_up_for(self, operation: str) -> None:
        """Writes the rows that later operations need if a client cannot."""
        if operation in ("create", "append"):
            ids = [1, 2, 3] if operation == "create" else [4]
            rows = pa.table({"id": ids, "title": [f"film {id}" for id in ids]})
            mode = "overwrite" if operation == "create" else "append"
            lance.write_dataset(rows, mode=mode, namespace_client=self.catalog.client(), table_id=self.id)
            self.check(operation, None)

    def check(self, operation: str, found: list[int] | None) -> str:
        """Checks the result of an operation. Returns how it was executed."""
        self.change(operation)
        expected = sorted(self.titles) if operation == "read" else FINDS.get(operation)
        assert found == expected, operation
        if operation != "drop":
            dataset = lance.dataset(namespace_client=self.catalog.client(), table_id=self.id)
            rows = dataset.to_table(columns=["id", "title"])
            assert dict(zip(rows["id"].to_pylist(), rows["title"].to_pylist())) == self.titles, operation
            assert operation != "add_column" or "twice" in dataset.schema.names
            assert operation != "index" or len(dataset.describe_indices()) == 1
            assert operation != "compact" or len(dataset.get_fragments()) == 1
        changes = self.new_changes()
        if operation in ("read", "search", "version"):
            assert changes == []
            return "yes"
        return "past" if changes == [] or "AdoptTableVersion" in changes else "through"

    def change(self, operation: str) -> None:
        if operation in ("create", "overwrite"):
            self.titles = {id: f"film {id}" for id in ([1, 2, 3] if operation == "create" else [1, 2])}
        if operation == "append":
            self.titles[4] = "film 4"
        if operation == "update":
            self.titles[1] = "new"
        if operation == "delete":
            del self.titles[2]
        if operation == "merge":
            self.titles |= {3: "merged", 5: "merged"}

    def new_changes(self) -> list[str]:
        """Returns the operations of changes of the tables in the audit since the last call."""
        path = f"/management/v1/namespace/{self.id[0]}/transaction/list?limit=100"
        changes = self.catalog.get(path)["transactions"]
        new = [each["operation"] for each in changes if each["transaction_id"] not in self.seen]
        self.seen |= {each["transaction_id"] for each in changes}
        return new
