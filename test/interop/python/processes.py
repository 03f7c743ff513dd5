"""The processes of this machine."""

import contextlib
from pathlib import Path


def processes(is_meant) -> list[int]:
    """Returns the processes whose arguments match."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if is_meant(process.joinpath("cmdline").read_text().split("\0")):
                found.append(int(process.name))
    return found


def drivers_of(job: str) -> list[int]:
    """Returns the processes that run a job."""
    return processes(lambda arguments: arguments[1:3] == ["-m", "tiltyard.job"] and job in arguments)
