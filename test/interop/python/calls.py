"""A function that counts its calls, which shows the rows that are computed again."""

import tempfile
from pathlib import Path

import geneva
import lance
import pyarrow as pa
from tiltyard.job.function_values import write_values

ROWS = 2_000
ROWS_PER_FRAGMENT = 50


class Calls:
    """The calls of a function by all its workers. Each worker has a file with a line for each call."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(dir="/tmp")

    def count(self) -> int:
        return sum(len(file.read_text().splitlines()) for file in Path(self.folder).iterdir())


def counted(calls: Calls):
    folder = calls.folder

    @geneva.udf(data_type=pa.int64())
    def double(id: int) -> int:
        import os
        import time

        with open(f"{folder}/{os.getpid()}", "a") as file:
            file.write(f"{id}\n")
        time.sleep(0.02)
        return 2 * id

    return double


def write_counted(catalog, table: str, calls: Calls, rows: int = ROWS) -> None:
    """Creates a table whose column `double` counts the calls of its function."""
    where = {"namespace_client": catalog.client(), "table_id": [table]}
    ids = pa.table({"id": range(rows)})
    lance.write_dataset(ids, mode="create", max_rows_per_file=ROWS_PER_FRAGMENT, **where)
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=catalog.properties)
    db.open_table(table).add_columns({"double": counted(calls)})


def move_ids(catalog, table: str, distance: int) -> None:
    """Adds a number to all ids in place, like a backfill of an input."""
    dataset = lance.dataset(namespace_client=catalog.client(), table_id=[table])
    scan = {"columns": {"id": f"id + {distance}"}, "with_row_address": True}
    moved = {each.fragment_id: each.scanner(**scan).to_table() for each in dataset.get_fragments()}
    write_values(dataset, moved)
