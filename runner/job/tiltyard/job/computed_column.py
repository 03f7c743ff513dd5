"""Computed columns of lancedb: SQL expressions that lancedb itself keeps up to date."""

from __future__ import annotations

from tiltyard.job.work import Job, Report, Result, open_table


def refresh_column(job: Job, report: Report) -> Result:
    """Fills the rows of a computed column that have no value, and those whose inputs changed."""
    import lancedb

    total = open_table(job).count_rows()
    report(0, total)
    *namespace, name = job.table
    db = lancedb.connect_namespace("rest", job.connection.properties)
    done = db.open_table(name, namespace_path=namespace).refresh_column(job.parameters["column"])
    report(total, total)
    result = {"rows_assigned": done.rows_assigned, "source_version": done.source_version}
    # Without it nothing was to be done.
    return result if done.published_version is None else {**result, "published_version": done.published_version}
