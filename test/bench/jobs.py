"""Measures the seconds to fill a column: jobs.py tiltyard URL KEY_FILE ROWS, or jobs.py geneva FOLDER ROWS.

Both fill a column of equal rows with twice the number of the row: a job opened by a REST call, until the catalog
reports its end, and a backfill of Geneva in this process over a folder, with a vectorized function on a Ray that is
already running.
"""

import json
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow as pa

FRAGMENT_ROWS = 100_000
POLL_SECONDS = 0.1


def films(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "title": pa.array([f"Film number {number}" for number in range(rows)])})


def tiltyard(url: str, key_file: str, rows: int) -> float:
    import lance
    import lance.namespace

    key = Path(key_file).read_text()
    catalog = lance.namespace.RestNamespace(uri=url, **{"header.x-api-key": key})
    table = [f"films_{time.time_ns()}"]
    lance.write_dataset(
        films(rows), namespace_client=catalog, table_id=table, mode="create", max_rows_per_file=FRAGMENT_ROWS
    )

    def post(path: str, body: dict | None = None) -> dict:
        headers = {"x-api-key": key, "content-type": "application/json"}
        request = urllib.request.Request(url + path, data=json.dumps(body or {}).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    post(f"/v1/table/{table[0]}/add_columns", {"new_columns": [{"name": "twice", "computed": "id * 2"}]})
    begun = time.monotonic()
    job = post(f"/v1/table/{table[0]}/backfill_column", {"column": "twice"})["job_id"]
    while (found := post(f"/v1/transaction/{job}/describe"))["status"] in ("Queued", "Running"):
        time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - begun
    assert found["status"] == "Succeeded", found
    check(lance.dataset(namespace_client=catalog, table_id=table).to_table(), rows)
    return seconds


def geneva_alone(folder: str, rows: int) -> float:
    import geneva
    import pyarrow.compute as pc
    import ray

    @geneva.udf(data_type=pa.int64())
    def twice(id: pa.Array) -> pa.Array:
        return pc.multiply(id, 2)

    ray.init(include_dashboard=False, log_to_driver=False)
    db = geneva.connect(folder)
    table = db.create_table(f"films_{time.time_ns()}", films(FRAGMENT_ROWS))
    for start in range(FRAGMENT_ROWS, rows, FRAGMENT_ROWS):
        table.add(films(rows).slice(start, FRAGMENT_ROWS))
    table.add_columns({"twice": twice})
    begun = time.monotonic()
    table.backfill("twice", concurrency=max(1, int(ray.cluster_resources()["CPU"]) - 1))
    seconds = time.monotonic() - begun
    table.checkout_latest()
    check(table.to_arrow(), rows)
    return seconds


def check(found: pa.Table, rows: int) -> None:
    found = found.sort_by("id")
    assert found.num_rows == rows
    assert found["twice"].to_pylist() == [2 * number for number in range(rows)]


if __name__ == "__main__":
    what, *arguments, last = sys.argv[1:]
    seconds = {"tiltyard": tiltyard, "geneva": geneva_alone}[what](*arguments, int(last))
    print(seconds)
