"""Geneva's own record of a job, which its clients poll. It is a table, so no Geneva is needed to change it."""

from __future__ import annotations

from tiltyard.connection import Connection

NAMESPACE = ["__system"]
TABLE = "geneva_jobs"


def close(connection: Connection, job_id: str, status: str) -> None:
    """Sets a record that is still open to FAILED or CANCELLED: Geneva does not when it never started, or was ended."""
    import lancedb

    db = lancedb.connect_namespace("rest", connection.properties)
    if TABLE not in db.list_tables(namespace_path=NAMESPACE).tables:
        return
    quoted = job_id.replace("'", "''")
    open_record = f"job_id = '{quoted}' AND status IN ('PENDING', 'RUNNING')"
    db.open_table(TABLE, namespace_path=NAMESPACE).update(where=open_record, values={"status": status})
