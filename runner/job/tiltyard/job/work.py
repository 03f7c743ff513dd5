"""What a job does: chosen by its operation, and by how its column is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tiltyard.connection import Connection

# A parameter as it was sent; the catalog keeps all of them as text.
Parameters = dict[str, str]


class Report(Protocol):
    """Tells how far the work has come. Further counters have names of their own."""

    def __call__(self, rows_committed: int, rows_total: int, **counters: int) -> None: ...


@dataclass(frozen=True)
class Job:
    """A job as the catalog describes it."""

    id: str
    operation: str
    # The identifier of the table or view.
    table: list[str]
    parameters: Parameters
    connection: Connection


class JobError(Exception):
    """The job cannot be done as it was asked for; another attempt would end the same."""


# What a job has done, in numbers that have names.
Result = dict[str, int]
Work = Callable[[Job, Report], Result]


def work_of(job: Job) -> Work:
    """Raises JobError for a job that nothing here does."""
    match job.operation:
        case "AlterTableBackfillColumns":
            return _backfill_of(job)
        case "RefreshMaterializedView":
            from tiltyard.job.geneva_job import refresh

            return refresh
    raise JobError(f"no job runs {job.operation}")


def _backfill_of(job: Job) -> Work:
    column = job.parameters["column"]
    metadata = _metadata_of(job, column)
    if metadata.get("virtual_column") == "true":
        from tiltyard.job.geneva_job import backfill

        return backfill
    if "computed_column" in metadata:
        from tiltyard.job.computed_column import refresh_column

        return refresh_column
    raise JobError(f"{'$'.join(job.table)}.{column} is not computed: add it with virtual_column or computed")


def _metadata_of(job: Job, column: str) -> dict[str, str]:
    schema = open_table(job).schema
    try:
        field = schema.field(column)
    except KeyError:
        raise JobError(f"{'$'.join(job.table)} has no column {column}") from None
    return {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}


def open_table(job: Job) -> Any:
    """The table as Lance's own dataset, at its latest version."""
    import lance
    from lance.namespace import RestNamespace

    return lance.dataset(namespace_client=RestNamespace(**job.connection.properties), table_id=job.table)
