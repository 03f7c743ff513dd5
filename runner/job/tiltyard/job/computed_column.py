"""Computed columns of lancedb are SQL expressions that lancedb itself keeps up to date."""

from __future__ import annotations

from tiltyard.job.job import Job, Report, Result
from tiltyard.job.table import open_table


def refresh_column(job: Job, report: Report) -> Result:
    """Fills the rows of a computed column that have no value or whose inputs have changed."""
    import lancedb

    dataset = open_table(job)
    total = dataset.count_rows()
    report(0, total)
    *namespace, name = job.table
    db = lancedb.connect_namespace("rest", job.connection.properties)
    done = db.open_table(name, namespace_path=namespace).refresh_column(job.parameters["column"])
    report(total, total)
    return {
        "rows_assigned": done.rows_filled,
        "source_version": dataset.version,
        "published_version": done.version,
    }
