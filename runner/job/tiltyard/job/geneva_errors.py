"""Errors of rows in Geneva: their policy, and their records, which clients find by the name of the table."""

from __future__ import annotations

import math
import os
from typing import Any

from tiltyard.job.contracts import JobParameters
from tiltyard.job.failure import ENDED_HINT
from tiltyard.job.function_worker import ended_rows_max
from tiltyard.job.job import Job, JobError

# A variable for a job of a team: the namespace of Geneva's records, the only one that its key may write to.
SYSTEM_NAMESPACE = "TILTYARD_SYSTEM_NAMESPACE"
ERRORS_TABLE = "geneva_errors"


def system_namespace() -> list[str]:
    """Returns the namespace of Geneva's records."""
    return os.environ.get(SYSTEM_NAMESPACE, "__system").split("$")


def with_error_policy(function: Any, parameters: JobParameters) -> Any:
    """Returns a function with the error policy of the request in place of its own."""
    import attrs
    from geneva.debug.error_store import fail_fast, resolve_on_error, skip_on_error

    if parameters["error_policy"] == "skip":
        policy = skip_on_error(
            max_skip_count=parameters.get("max_failed_rows"), max_skip_fraction=parameters.get("max_failed_fraction")
        )
    else:
        policy = fail_fast()
    return attrs.evolve(function, error_handling=resolve_on_error(policy))


def skipped_rows_max(function: Any | None, parameters: JobParameters, rows: int) -> float:
    """Returns how many of the rows Geneva may leave without a value.

    A policy of the request or of the function that skips rows has limits of its own. Without one, Geneva skips only
    rows that end their process, and as many as there are. A function that cannot be read here may have such a policy.
    """
    from geneva.debug.error_store import FaultIsolation

    handling = getattr(function, "error_handling", None)
    skips = getattr(handling, "fault_isolation", None) == FaultIsolation.SKIP_ROWS
    if parameters.get("error_policy") == "skip" or skips or function is None:
        return math.inf
    return ended_rows_max(rows)


def require_few_skipped(skipped: int, rows: int, most: float) -> None:
    """Raises JobError if more rows were skipped."""
    if skipped <= most:
        return
    share = f"{skipped:,} of {rows:,} rows ended their process, more than {most:,}"
    raise JobError(f"{share}. {ENDED_HINT} The errors of the job name the rows")


def system_table(job: Job, name: str) -> Any | None:
    """Returns a table of Geneva's records, or None before its first record."""
    import lancedb

    db = lancedb.connect_namespace("rest", job.connection.properties)
    if name not in db.list_tables(namespace_path=system_namespace()).tables:
        return None
    return db.open_table(name, namespace_path=system_namespace())


def name_table_in_errors(job: Job) -> None:
    """Sets the name of the table in the job's records of errors, because Geneva records the name of the folder instead.

    Prints a failure, which must not hide the outcome of the job.
    """
    records = f"job_id = {literal(job.id)} AND table_name != {literal(job.table[-1])}"
    try:
        errors = system_table(job, ERRORS_TABLE)
        if errors is not None and errors.count_rows(records) > 0:
            errors.update(where=records, values={"table_name": job.table[-1]})
    except Exception as error:
        print(f"the records of errors have no table: {error}", flush=True)


def literal(text: str) -> str:
    """Returns a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
