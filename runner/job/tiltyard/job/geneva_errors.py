"""Geneva's records of errors, which its clients find by the name of the table."""

from __future__ import annotations

import os

from tiltyard.job.job import Job

# A variable for a job of a team: the namespace of Geneva's records, the only one that its key may write to.
SYSTEM_NAMESPACE = "TILTYARD_SYSTEM_NAMESPACE"
ERRORS_TABLE = "geneva_errors"


def system_namespace() -> list[str]:
    """Returns the namespace of Geneva's records."""
    return os.environ.get(SYSTEM_NAMESPACE, "__system").split("$")


def name_table_in_errors(job: Job) -> None:
    """Sets the name of the table in the job's records of errors, because Geneva records the name of the folder instead.

    Prints a failure, which must not hide the outcome of the job.
    """
    import lancedb

    records = f"job_id = {_literal(job.id)} AND table_name != {_literal(job.table[-1])}"
    try:
        db = lancedb.connect_namespace("rest", job.connection.properties)
        if ERRORS_TABLE not in db.list_tables(namespace_path=system_namespace()).tables:
            return
        errors = db.open_table(ERRORS_TABLE, namespace_path=system_namespace())
        if errors.count_rows(records) > 0:
            errors.update(where=records, values={"table_name": job.table[-1]})
    except Exception as error:
        print(f"the records of errors have no table: {error}", flush=True)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
