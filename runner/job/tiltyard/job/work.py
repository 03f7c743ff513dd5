"""The selection of a job's work by its operation and by the kind of its column."""

from __future__ import annotations

from collections.abc import Callable

from tiltyard.job.job import Job, JobError, Report, Result
from tiltyard.job.table import open_table

Work = Callable[[Job, Report], Result]


def work_of(job: Job) -> Work:
    """Raises JobError for an unknown kind of job."""
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
        case "CreateFunction":
            from tiltyard.job.function_environment import bake

            return bake
    raise JobError(f"no job runs {job.operation}")


def _backfill_of(job: Job) -> Work:
    if "function_binding" in job.parameters:
        from tiltyard.job.function_job import refresh

        return refresh
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
