"""The processes of this machine."""

import contextlib
import json
import os
import re
import signal
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
    """Returns the processes that run a job. One that waited for a job has received its arguments in a file."""

    def runs(arguments: list[str]) -> bool:
        if arguments[1:3] == ["-m", "tiltyard.job.standby"]:
            return job in json.loads(Path(arguments[3], "attempt.json").read_text())
        return arguments[1:3] == ["-m", "tiltyard.job"] and job in arguments

    return processes(runs)


def ray_folders(owner: int) -> list[Path]:
    """Returns the folders of the Rays that a process started. Another process may be writing its name right now."""
    found = []
    for file in Path("/tmp").glob("ray-*/tiltyard-owner.json"):
        with contextlib.suppress(OSError, json.JSONDecodeError):
            if json.loads(file.read_text())["pid"] == owner:
                found.append(file.parent)
    return found


def ancestors_of(pid: int) -> list[int]:
    found = []
    while pid > 1:
        try:
            # The name of the program is in parentheses and may contain any characters.
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def descendants_of(owner: int, is_meant) -> list[int]:
    """Returns the processes below another one whose arguments match. Other Rays may run on this machine."""
    return [each for each in processes(is_meant) if owner in ancestors_of(each)]


def ray_heads(owner: int) -> list[int]:
    """Returns the heads (GCS) of the Rays that a process started."""
    return descendants_of(owner, lambda arguments: arguments[0].endswith("/gcs_server"))


def raylets(owner: int) -> list[int]:
    return descendants_of(owner, lambda arguments: arguments[0].endswith("/raylet"))


def busy_workers(owner: int) -> list[int]:
    """Returns the workers with a task or an actor. A worker's title replaces its arguments."""
    return descendants_of(owner, lambda arguments: re.match(r"ray::(?!IDLE|\w+Agent\b)", arguments[0]) is not None)


def geneva_drivers(owner: int) -> list[int]:
    """Returns the workers that run the drivers of Geneva's backfills."""
    return descendants_of(owner, lambda arguments: arguments[0].startswith("ray::backfill.driver"))


def ray_agents(owner: int) -> list[int]:
    """Returns the agents of the nodes, without which a raylet exits."""
    return descendants_of(owner, lambda arguments: re.match(r"ray::\w+Agent\b", arguments[0]) is not None)


def processes_of(folders: set[Path]) -> list[int]:
    """Returns the processes of the Rays with these folders, and of their jobs. A worker's title replaces its arguments."""

    def names(text: str) -> bool:
        return any(str(folder) in text for folder in folders)

    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if names(process.joinpath("cmdline").read_text()) or names(os.readlink(process / "cwd")):
                found.append(int(process.name))
    return found


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
