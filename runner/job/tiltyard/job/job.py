"""A job, and what its work tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tiltyard.connection import Connection

# A parameter as it was sent; the catalog keeps all of them as text.
Parameters = dict[str, str]


class Report(Protocol):
    """Tells how far the work has come. Further counters have names of their own."""

    def __call__(self, rows_committed: int, rows_total: int, **counters: int) -> None: ...


@dataclass(frozen=True)
class Job:
    """A job as the catalog describes it."""

    id: str
    operation: str
    # The identifier of the table or view.
    table: list[str]
    parameters: Parameters
    connection: Connection

    def integer(self, parameter: str) -> int | None:
        """A parameter that is a whole number; None when the request had none."""
        return int(self.parameters[parameter]) if parameter in self.parameters else None


class JobError(Exception):
    """The job cannot be done as it was asked for; another attempt would end the same."""


# What a job has done, in numbers that have names.
Result = dict[str, int]
