"""Checkpoints of Geneva in the folder of a table, and the jobs that may read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tiltyard.job.geneva_errors import literal, system_table
from tiltyard.job.geneva_table import open_with_geneva
from tiltyard.job.job import Job

JOBS_TABLE = "geneva_jobs"
# The statuses of Geneva's jobs that may read checkpoints.
OPEN = ("PENDING", "RUNNING")
# A record of an open job that has not changed for this time is that of a process that died.
DEAD_AFTER = timedelta(days=30)
VIEW = b"geneva::view::base_table"
FUNCTION = b"virtual_column"


def delete_checkpoints(job: Job, schema: Any) -> dict[str, int]:
    """Deletes the checkpoints of a table that no later job reads, and returns their number.

    They are those of batches of finished fragments, and those of fragments that no longer exist. The others show
    Geneva which rows are out of date. Call it only without open jobs.
    """
    if not _has_functions(schema):
        return {}
    return {"checkpoints_deleted": sum(open_with_geneva(job).cleanup_checkpoints().values())}


def open_jobs(job: Job, schema: Any) -> list[str]:
    """Returns the open jobs of Geneva on tables with the name of a job's table, also those outside this catalog."""
    jobs = system_table(job, JOBS_TABLE) if _has_functions(schema) else None
    if jobs is None:
        return []
    statuses = ", ".join(literal(each) for each in OPEN)
    found = jobs.search().where(f"table_name = {literal(job.table[-1])} AND status IN ({statuses})")
    dead_before = datetime.now(UTC) - DEAD_AFTER
    rows = found.select(["job_id", "launched_at", "updated_at"]).limit(None).to_list()
    return [row["job_id"] for row in rows if (row["updated_at"] or row["launched_at"]) > dead_before]


def _has_functions(schema: Any) -> bool:
    return VIEW in (schema.metadata or {}) or any(FUNCTION in (field.metadata or {}) for field in schema)
