"""The rows that a job of Geneva recorded as failed, which another job computes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tiltyard.job.function_state import OFFSET_BITS
from tiltyard.job.geneva_errors import ERRORS_TABLE, literal, system_table
from tiltyard.job.geneva_resume import without_value
from tiltyard.job.job import Job, JobError

# Each task of Geneva contains the filter, which has about twelve bytes for each row.
FAILED_ROWS_MAX = 20_000


@dataclass(frozen=True)
class FailedRows:
    """The failed rows of a job that are still without a value, as a filter, and their number."""

    where: str
    rows: int
    # The recorded rows that have a value now, or that were deleted, changed or moved meanwhile.
    others: int

    @property
    def result(self) -> dict[str, int]:
        return {"rows_retried": self.rows, "rows_not_retried": self.others}


def failed_rows(job: Job, table: Any) -> FailedRows:
    """Returns the rows that the job in `failed_rows_of` recorded.

    Addresses of rows survive commits of columns, but not compactions. Rows of a table with stable row ids are found
    after a compaction, too.

    Raises JobError without recorded rows, for more than FAILED_ROWS_MAX, and if compactions moved all of them.
    """
    of = job.parameters["failed_rows_of"]
    by_version = _recorded(job, of)
    recorded = {address for addresses in by_version.values() for address in addresses}
    if not recorded:
        raise JobError(f"the job {of} recorded no failed rows: {_ALL_ROWS}")
    if len(recorded) > FAILED_ROWS_MAX:
        raise JobError(f"the job {of} recorded {len(recorded)} failed rows, more than {FAILED_ROWS_MAX}: {_ALL_ROWS}")
    dataset = table.to_lance()
    addresses = _current(dataset, by_version) if dataset.has_stable_row_ids else recorded
    # Checkpoints are named after the filter. Those of another job have no value for these rows.
    marker = f"{literal(job.id)} = {literal(job.id)}"
    rest = without_value(table, job.parameters["column"])
    conditions = [_in("_rowaddr", addresses), marker, job.parameters.get("where"), rest]
    where = " AND ".join(f"({each})" for each in conditions if each is not None)
    rows = dataset.count_rows(where) if addresses else 0
    present = {fragment.fragment_id for fragment in dataset.get_fragments()}
    if rows == 0 and not any(address >> OFFSET_BITS in present for address in addresses):
        raise JobError(f"a compaction or deletion has replaced the failed rows of the job {of}: {_ALL_ROWS}")
    return FailedRows(where, rows, len(recorded) - rows)


_ALL_ROWS = "open a backfill of the column, which computes all rows without a value"


def _recorded(job: Job, of: str) -> dict[int, set[int]]:
    """Returns the addresses of recorded rows by the version of the table in which they were read."""
    errors = system_table(job, ERRORS_TABLE)
    if errors is None:
        return {}
    found = errors.search().where(f"job_id = {literal(of)} AND row_address IS NOT NULL")
    by_version = defaultdict(set)
    for batch in found.select(["row_address", "table_version"]).limit(None).to_batches():
        for row in batch.to_pylist():
            by_version[row["table_version"]].add(row["row_address"])
    return by_version


def _current(dataset: Any, by_version: dict[int, set[int]]) -> set[int]:
    """Returns the current addresses of rows, by their stable ids. Rows of versions that were cleaned up keep theirs."""
    current: set[int] = set()
    for version, addresses in by_version.items():
        try:
            read = dataset.checkout_version(version)
            ids = _scan(read, _in("_rowaddr", addresses))["_rowid"].to_pylist()
            current |= set(_scan(dataset, _in("_rowid", ids))["_rowaddr"].to_pylist()) if ids else set()
        except (OSError, ValueError) as error:
            print(f"version {version} of the failed rows is gone: {error}", flush=True)
            current |= addresses
    return current


def _scan(dataset: Any, where: str) -> Any:
    return dataset.scanner(columns=[], filter=where, with_row_id=True, with_row_address=True).to_table()


def _in(column: str, values: Iterable[int]) -> str:
    return f"{column} IN ({', '.join(map(str, sorted(values)))})"
