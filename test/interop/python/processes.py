"""The processes of this machine."""

import contextlib
import json
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


def ray_folders(owner: int) -> list[Path]:
    """Returns the folders of the Rays that a process started."""
    files = Path("/tmp").glob("ray-*/tiltyard-owner.json")
    return [file.parent for file in files if json.loads(file.read_text())["pid"] == owner]
