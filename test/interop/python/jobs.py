"""The jobs of a catalog from the perspective of clients."""

import lance
import pyarrow as pa

ROWS = 40


def write_films(catalog, table: list[str], storage_options: dict[str, str] | None = None) -> list[str]:
    """Creates a table of films in four fragments."""
    titles = pa.table({"id": range(ROWS), "title": [f"Film {number}" for number in range(ROWS)]})
    where = {"namespace_client": catalog.client(), "table_id": table, "storage_options": storage_options}
    lance.write_dataset(titles, mode="create", max_rows_per_file=10, **where)
    return table


def backfill(catalog, table, column, **fields) -> str:
    """Opens a job. It has one worker unless a field says otherwise, because each one imports Geneva for seconds."""
    request = {"column": column, "concurrency": 1, **fields}
    # The refresh of a LanceDB Function determines the number of its workers.
    if request["concurrency"] is None:
        del request["concurrency"]
    return catalog.post(f"/v1/table/{'%24'.join(table)}/backfill_column", request)["job_id"]


def jobs_of(catalog, table: list[str], query: str = "") -> list[str]:
    """Returns the jobs of a table, the latest first."""
    jobs = catalog.get(f"/management/v1/namespace/$/job/list{query}")["jobs"]
    return [job["job_id"] for job in jobs if job["objects"] == [table]]


def describe(catalog, job: str) -> dict:
    return catalog.get(f"/management/v1/job/{job.replace('$', '%24')}/describe")["job"]


def claim(catalog, job: str, after: int = 0) -> None:
    """Claims an attempt like a runner."""
    path = f"/management/v1/job/{job.replace('$', '%24')}/attempt/claim"
    catalog.post(path, {"after": after, "platform": {}})


def alter(catalog, job: str, *actions: dict) -> None:
    catalog.post(f"/v1/transaction/{job.replace('$', '%24')}/alter", {"actions": list(actions)})


def values(catalog, table, column, storage_options: dict[str, str] | None = None) -> list:
    return (
        lance.dataset(namespace_client=catalog.client(), table_id=table, storage_options=storage_options)
        .to_table(columns=["id", column])
        .sort_by("id")[column]
        .to_pylist()
    )
