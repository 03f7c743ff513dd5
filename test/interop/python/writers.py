"""Many writers at once, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
from catalog import Catalog, version_in_manifest_name

ROWS_PER_APPEND = 3


def start_writer(catalog: Catalog, table, first: int, appends: int, branch=None, storage_options=None) -> subprocess.Popen:
    arguments = [catalog.properties, table, first, appends, ROWS_PER_APPEND, branch, storage_options]
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("writer.py")), *map(json.dumps, arguments)],
        env={**os.environ, "RUST_LOG": "warn", "LANCE_LOG": "warn"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ids_of_writer(first: int, appends: int) -> list[int]:
    return list(range(first, first + appends * ROWS_PER_APPEND))


def finish(writers: list[subprocess.Popen]) -> None:
    """Waits for the writers; none may fail or warn about manifests."""
    try:
        for writer in writers:
            _, stderr = writer.communicate(timeout=200)
            assert writer.returncode == 0, stderr
            assert "manifest" not in stderr.lower(), stderr
    finally:
        for writer in writers:
            writer.kill()


def check_eight_writers(catalog: Catalog, table, appends: int, storage_options=None) -> None:
    """Eight writers append to one table: no row is lost, no version is skipped."""
    first_rows = pa.table({"id": [-1]})
    client = catalog.client()
    lance.write_dataset(
        first_rows, namespace_client=client, table_id=table, mode="create", storage_options=storage_options
    )
    starts = [index * 1_000_000 for index in range(8)]
    finish([start_writer(catalog, table, first, appends, storage_options=storage_options) for first in starts])

    dataset = lance.dataset(namespace_client=client, table_id=table, storage_options=storage_options)
    written = sorted([-1, *(id for first in starts for id in ids_of_writer(first, appends))])
    assert sorted(dataset.to_table()["id"].to_pylist()) == written
    listed = catalog.versions(table)
    expected = list(range(1, 8 * appends + 2))
    assert [each["version"] for each in listed] == expected
    assert [version_in_manifest_name(each["manifest_path"]) for each in listed] == expected
