"""Geneva's own record of a job, which its clients poll. It is a table, so no Geneva is needed to change it."""

from __future__ import annotations

from tiltyard.connection import Connection

NAMESPACE = ["__system"]
TABLE = "geneva_jobs"


def close(connection: Connection, job_id: str, status: str, reason: str) -> None:
    """Ends a record as FAILED or CANCELLED: Geneva does not when it never started, or was ended.

    The reason is its last event, which is what Geneva's clients show of a job that failed.
    """
    import lancedb

    db = lancedb.connect_namespace("rest", connection.properties)
    if TABLE not in db.list_tables(namespace_path=NAMESPACE).tables:
        return
    table = db.open_table(TABLE, namespace_path=NAMESPACE)
    quoted = job_id.replace("'", "''")
    for record in table.search().where(f"job_id = '{quoted}'").select(["status", "events"]).to_list():
        status_now = record["status"] if record["status"] not in ("PENDING", "RUNNING") else status
        values = {"status": status_now, "events": [*(record["events"] or []), reason]}
        table.update(where=f"job_id = '{quoted}'", values=values)
