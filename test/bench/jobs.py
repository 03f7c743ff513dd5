"""Measures the duration of a backfill: jobs.py tiltyard URL KEY_FILE ROWS, or jobs.py geneva FOLDER ROWS.

Both fill a column of equal rows with twice the number of the row, by the same vectorized function. They print the
seconds until the first row and until the end as JSON. Tiltyard runs two jobs that REST calls opened, a cold and a warm
one. Geneva runs a backfill in this process over a folder, on a Ray that is already running.
"""

import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geneva
import pyarrow as pa

FRAGMENT_ROWS = 100_000
POLL_SECONDS = 0.1
# The time in which the runner prepares for the next job, on a machine that does nothing else.
IDLE_SECONDS = 20


def films(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "title": pa.array([f"Film number {number}" for number in range(rows)])})


def twice_noting(notes: str) -> Any:
    """Returns the function. Each process of it notes when it computes its first rows."""

    @geneva.udf(data_type=pa.int64())
    def twice(id: pa.Array) -> pa.Array:
        import os
        import time

        import pyarrow.compute as pc

        note = f"{notes}/{os.getpid()}"
        if not os.path.exists(note):
            with open(note, "w") as file:
                file.write(str(time.time()))
        return pc.multiply(id, 2)

    return twice


def timed(fill: Callable[[], None], notes: str) -> dict[str, float]:
    begun = time.time()
    fill()
    seconds = time.time() - begun
    return {"first_row": min(float(note.read_text()) for note in Path(notes).iterdir()) - begun, "end": seconds}


def tiltyard(url: str, key_file: str, rows: int) -> dict[str, dict[str, float]]:
    import lance
    import lance.namespace

    key = Path(key_file).read_text()
    properties = {"uri": url, "header.x-api-key": key}
    catalog = lance.namespace.RestNamespace(**properties)

    def post(path: str, body: dict | None = None) -> dict:
        headers = {"x-api-key": key, "content-type": "application/json"}
        request = urllib.request.Request(url + path, data=json.dumps(body or {}).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def measured(rows: int) -> dict[str, float]:
        table = [f"films_{time.time_ns()}"]
        lance.write_dataset(
            films(rows), namespace_client=catalog, table_id=table, mode="create", max_rows_per_file=FRAGMENT_ROWS
        )
        notes = tempfile.mkdtemp()
        db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=properties)
        db.open_table(table[0]).add_columns({"twice": twice_noting(notes)})

        def fill() -> None:
            job = post(f"/v1/table/{table[0]}/backfill_column", {"column": "twice"})["job_id"]
            while (found := post(f"/v1/transaction/{job}/describe"))["status"] in ("Queued", "Running"):
                time.sleep(POLL_SECONDS)
            assert found["status"] == "Succeeded", found

        seconds = timed(fill, notes)
        check(lance.dataset(namespace_client=catalog, table_id=table).to_table(), rows)
        return seconds

    cold = measured(FRAGMENT_ROWS)
    time.sleep(IDLE_SECONDS)
    return {"cold": cold, "warm": measured(rows)}


def geneva_alone(folder: str, rows: int) -> dict[str, dict[str, float]]:
    import ray

    ray.init(include_dashboard=False, log_to_driver=False)
    db = geneva.connect(folder)
    table = db.create_table(f"films_{time.time_ns()}", films(FRAGMENT_ROWS))
    for start in range(FRAGMENT_ROWS, rows, FRAGMENT_ROWS):
        table.add(films(rows).slice(start, FRAGMENT_ROWS))
    notes = tempfile.mkdtemp()
    table.add_columns({"twice": twice_noting(notes)})
    concurrency = max(1, int(ray.cluster_resources()["CPU"]) - 1)
    seconds = timed(lambda: table.backfill("twice", concurrency=concurrency), notes)
    table.checkout_latest()
    check(table.to_arrow(), rows)
    return {"geneva": seconds}


def check(found: pa.Table, rows: int) -> None:
    found = found.sort_by("id")
    assert found.num_rows == rows
    assert found["twice"].to_pylist() == [2 * number for number in range(rows)]


if __name__ == "__main__":
    what, *arguments, last = sys.argv[1:]
    found = {"tiltyard": tiltyard, "geneva": geneva_alone}[what](*arguments, int(last))
    print(json.dumps(found))
