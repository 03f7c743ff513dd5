"""The selection of the rows that a job of Geneva recorded as failed, after changes of their table."""

import datetime

import geneva
import lance
import pyarrow as pa
import pytest
from geneva.debug.error_store import ErrorRecord, ErrorStore
from tiltyard.connection import Connection
from tiltyard.job import geneva_failed_rows
from tiltyard.job.geneva_failed_rows import failed_rows
from tiltyard.job.job import Job, JobError

FAILED = "failed-job"
ROWS_PER_FRAGMENT = 10
# The ids of the failed rows: two in the first fragment, and one in the second.
IDS = (1, 3, 15)


@pytest.fixture(params=["addresses", "stable row ids"])
def written(request, catalog, table):
    """A table with two fragments whose column `value` has no value, and the version in which its rows failed."""
    rows = pa.table({"id": range(2 * ROWS_PER_FRAGMENT), "value": pa.nulls(2 * ROWS_PER_FRAGMENT, pa.int64())})
    where = {"namespace_client": catalog.client(), "table_id": table}
    stable = request.param == "stable row ids"
    return lance.write_dataset(
        rows, mode="create", max_rows_per_file=ROWS_PER_FRAGMENT, enable_stable_row_ids=stable, **where
    )


def record(catalog, job: str, addresses: list[int | None], version: int = 1) -> None:
    """Records errors as Geneva does."""
    db = connected(catalog)
    ErrorStore(db).log_errors(
        [
            ErrorRecord(
                error_type="ValueError",
                error_message="broken",
                error_trace="",
                job_id=job,
                table_uri="",
                table_name="",
                table_version=version,
                column_name="value",
                udf_name="value",
                udf_version="1",
                batch_index=0,
                row_address=address,
                timestamp=datetime.datetime.now(datetime.UTC),
            )
            for address in addresses
        ]
    )


def connected(catalog):
    return geneva.connect(
        namespace_client_impl="rest", namespace_client_properties=catalog.properties, system_namespace=["__system"]
    )


def retry_of(catalog, table, failed: str, **parameters: str) -> Job:
    parameters = {"column": "value", "failed_rows_of": failed, **parameters}
    connection = Connection(catalog.url, catalog.key)
    return Job("retry", "AlterTableBackfillColumns", table, parameters, connection, 0, 1, "claim")


def selected(catalog, table, failed: str, **parameters: str) -> tuple[list[int], int]:
    """Returns the ids of the selected rows, and the number of the others."""
    opened = connected(catalog).open_table(table[-1], namespace=table[:-1])
    found = failed_rows(retry_of(catalog, table, failed, **parameters), opened)
    ids = opened.to_lance().to_table(columns=["id"], filter=found.where)["id"].to_pylist()
    assert len(ids) == found.rows
    return sorted(ids), found.others


def address_of(id: int) -> int:
    return (id // ROWS_PER_FRAGMENT << 32) + id % ROWS_PER_FRAGMENT


def test_rows_are_selected_by_their_addresses_after_changes_and_compactions(catalog, table, written):
    failed = f"{FAILED}-{table[0]}"
    record(catalog, failed, [address_of(id) for id in IDS])
    record(catalog, failed, [address_of(IDS[0]), None])
    record(catalog, f"{failed}-other", [address_of(7)])
    assert selected(catalog, table, failed) == ([1, 3, 15], 0)
    assert selected(catalog, table, failed, where="id > 1") == ([3, 15], 1)
    written.delete("id = 3")
    assert selected(catalog, table, failed) == ([1, 15], 1)
    # Another job has filled this row.
    written.update({"value": "8"}, where="id = 15")
    assert selected(catalog, table, failed) == ([1], 2)
    dataset = lance.dataset(namespace_client=catalog.client(), table_id=table)
    dataset.optimize.compact_files()
    if dataset.has_stable_row_ids:
        assert selected(catalog, table, failed) == ([1], 2)
    else:
        with pytest.raises(JobError, match="replaced the failed rows of the job .* open a backfill"):
            selected(catalog, table, failed)


def test_a_job_without_recorded_rows_or_with_too_many_is_refused(catalog, table, written, monkeypatch):
    failed = f"{FAILED}-{table[0]}"
    with pytest.raises(JobError, match="recorded no failed rows: open a backfill"):
        selected(catalog, table, failed)
    record(catalog, failed, [address_of(id) for id in IDS])
    monkeypatch.setattr(geneva_failed_rows, "FAILED_ROWS_MAX", 2)
    with pytest.raises(JobError, match="recorded 3 failed rows, more than 2: open a backfill"):
        selected(catalog, table, failed)
