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

    def integer(self, parameter: str) -> int | None:
        """A parameter that is a whole number; None when the request had none."""
        return int(self.parameters[parameter]) if parameter in self.parameters else None


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
        case "CompactTable":
            from tiltyard.job.compaction import compact

            return compact
        case "BuildTableIndex":
            from tiltyard.job.index import build

            return build
        case "CleanUpTable":
            from tiltyard.job.clean_up import clean_up

            return clean_up
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
    return open_dataset(job.connection, job.table)


def open_dataset(connection: Connection, table: list[str], version: int | None = None) -> Any:
    """A table as Lance's own dataset, whose commits go through the catalog."""
    import lance
    from lance.namespace import RestNamespace

    namespace = RestNamespace(**connection.properties)
    return lance.dataset(namespace_client=namespace, table_id=table, version=version)
