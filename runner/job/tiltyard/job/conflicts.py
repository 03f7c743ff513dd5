"""Conflicts of a commit with those of other writers, after which the work is planned again."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from tiltyard.job.job import Job, Report, Result

PLANS_MAX = 5
# Lance's errors of a commit that another one has preempted. That of an overwrite or a restore is the second one.
CONFLICT = re.compile("conflict|incompatible transaction", re.IGNORECASE)


def replanned(work: Callable[[Job, Report], Result]) -> Callable[[Job, Report], Result]:
    """Returns work that begins again after a conflict, with the latest version of the table."""

    @functools.wraps(work)
    def run(job: Job, report: Report) -> Result:
        for number in range(1, PLANS_MAX + 1):
            try:
                return work(job, report)
            except Exception as error:
                if number == PLANS_MAX or not CONFLICT.search(str(error)):
                    raise
                print(f"another writer committed, planning again: {error}", flush=True)
        raise AssertionError("the last plan returns or raises")

    return run
