"""Access of jobs to tables."""

from __future__ import annotations

from typing import Any

from tiltyard.connection import Connection
from tiltyard.job.job import Job


def open_table(job: Job) -> Any:
    """Returns the latest version of the job's table as Lance's own dataset."""
    return open_dataset(job.connection, job.table)


def open_dataset(connection: Connection, table: list[str], version: int | None = None) -> Any:
    """Returns a table as Lance's own dataset, whose commits use the catalog."""
    import lance
    from lance.namespace import RestNamespace

    namespace = RestNamespace(**connection.properties)
    return lance.dataset(namespace_client=namespace, table_id=table, version=version)
