"""A job and the interface of its progress reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tiltyard.connection import Connection
from tiltyard.job.contracts import JobParameters


class Report(Protocol):
    """Reports the progress. Further counters have separate names."""

    def __call__(self, rows_committed: int, rows_total: int, **counters: int) -> None: ...


@dataclass(frozen=True)
class Job:
    """A job as the catalog describes it."""

    id: str
    operation: str
    # The identifier of the table or view.
    table: list[str]
    parameters: JobParameters
    connection: Connection
    # The start of this attempt by the clock of the catalog.
    started_at_millis: int
    # The number of the attempt and the claim of this process, for requests about the job.
    attempt: int
    claim: str = field(repr=False)
    # The progress that an earlier attempt reported.
    progress: Mapping[str, int] = field(default_factory=dict)


def rows_before(rows_of_job: int, rows_total: int) -> int:
    """Returns the rows that earlier attempts have finished, because another attempt plans only the others."""
    return max(0, rows_of_job - rows_total)


class JobError(Exception):
    """The job cannot succeed as requested; another attempt would fail too."""


# The results of a job: numbers with names.
Result = dict[str, int]
