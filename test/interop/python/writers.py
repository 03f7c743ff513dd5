"""Many concurrent writers, each in a separate process."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import lance
import pyarrow as pa
from catalog import Catalog, version_in_manifest_name

ROWS_PER_APPEND = 3


@dataclass(frozen=True)
class Writing:
    """The work of one writer: appends of a few rows each, whose ids begin at `first`."""

    first: int
    appends: int
    branch: str | None = None
    past_the_catalog: bool = False
    storage_options: dict[str, str] | None = None
    rows: int = ROWS_PER_APPEND

    @property
    def ids(self) -> list[int]:
        return list(range(self.first, self.first + self.appends * self.rows))


def start_writer(catalog: Catalog, table: list[str], writing: Writing) -> subprocess.Popen:
    argument = json.dumps({"properties": catalog.properties, "table": table, **asdict(writing)})
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("writer.py")), argument],
        env={**os.environ, "RUST_LOG": "warn", "LANCE_LOG": "warn"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_at_once(catalog: Catalog | list[Catalog], table: list[str], writings: list[Writing]) -> str:
    """Runs the writers until they exit, distributed over the replicas of a catalog; none may fail. Returns their output
    to standard error."""
    replicas = itertools.cycle(catalog if isinstance(catalog, list) else [catalog])
    writers = [start_writer(replica, table, writing) for replica, writing in zip(replicas, writings)]
    said = ""
    try:
        for writer in writers:
            _, stderr = writer.communicate(timeout=600)
            assert writer.returncode == 0, stderr
            said += stderr
    finally:
        for writer in writers:
            writer.kill()
    return said


def create_table(catalog: Catalog, table: list[str], storage_options=None) -> lance.LanceDataset:
    """Creates a table with a row of the id -1."""
    return lance.write_dataset(
        pa.table({"id": [-1]}),
        namespace_client=catalog.client(),
        table_id=table,
        mode="create",
        storage_options=storage_options,
    )


def read_ids(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def check_writers(catalog: Catalog, table: list[str], count: int, appends: int, storage_options=None) -> None:
    """Several writers append to one table: no row is lost, no version is skipped, and no client warns about manifests."""
    create_table(catalog, table, storage_options)
    writings = [Writing(index * 1_000_000, appends, storage_options=storage_options) for index in range(count)]
    said = write_at_once(catalog, table, writings)
    assert "manifest" not in said.lower(), said
    check_table(catalog, table, writings, storage_options)


def check_writers_past_the_catalog(catalog: Catalog, table: list[str], appends: int, storage_options=None) -> None:
    """Writers outside the catalog and writers through it lose no rows of each other."""
    create_table(catalog, table, storage_options)
    writings = [
        Writing(index * 1_000_000, appends, past_the_catalog=past, storage_options=storage_options)
        for index, past in enumerate([True, True, False, False, False])
    ]
    write_at_once(catalog, table, writings)
    check_table(catalog, table, writings, storage_options)


def check_table(catalog: Catalog, table: list[str], writings: list[Writing], storage_options=None) -> None:
    """Requires that the table contains the written rows, each append as a version with a placed manifest."""
    dataset = lance.dataset(namespace_client=catalog.client(), table_id=table, storage_options=storage_options)
    assert read_ids(dataset) == sorted([-1, *(id for writing in writings for id in writing.ids)])
    expected = list(range(1, sum(writing.appends for writing in writings) + 2))
    listed = catalog.versions(table)
    assert [each["version"] for each in listed] == expected
    assert [version_in_manifest_name(each["manifest_path"]) for each in listed] == expected
