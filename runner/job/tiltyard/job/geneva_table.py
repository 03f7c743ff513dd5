"""Access of jobs to tables through Geneva."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tiltyard.job.geneva_errors import system_namespace
from tiltyard.job.job import Job, JobError


def open_with_geneva(job: Job) -> Any:
    """Returns the table of a job as Geneva's. Raises JobError without Geneva."""
    try:
        import geneva
    except ImportError as error:
        message = (
            "UDF columns and views need Geneva where the job runs: pip install geneva, or add it to the image of "
            f"Ray with ray.packages of the stack or EXTRA_PACKAGES of Dockerfile.ray ({error})"
        )
        raise JobError(message) from error

    db = geneva.connect(
        namespace_client_impl="rest",
        namespace_client_properties=job.connection.properties,
        system_namespace=system_namespace(),
        # Geneva's own check for a newer version. Without it, some refreshes fail although all rows exist.
        read_consistency_interval=timedelta(0),
    )
    *namespace, name = job.table
    return db.open_table(name, namespace=namespace)
