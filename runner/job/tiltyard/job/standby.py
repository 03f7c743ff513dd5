"""Waits for one attempt with Ray connected and the packages imported, so that a job computes its first row sooner.

A runner starts `python -m tiltyard.job.standby FOLDER` ahead. The folder belongs to this process alone: the runner
stores the key of the attempt there, and then the arguments of its command. The process serves no second attempt, and
exits when the folder is deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import site
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.02
ARGUMENTS = "attempt.json"
# Geneva uses a worker to drive the backfill, one to count its progress, one per applier, and one per writer.
WORKERS = 4


def main(folder: Path) -> None:
    installed = _installed()
    # An attempt that arrives during a step waits for that step only.
    steps = iter([_connect, _import_packages, _start_workers])
    while not (file := folder / ARGUMENTS).exists():
        if not folder.exists():
            os._exit(0)
        next(steps, _pause)()
    arguments = json.loads(file.read_text())
    if _installed() != installed:
        # The imported packages are no longer those of the environment.
        os.execv(sys.executable, [sys.executable, "-m", "tiltyard.job", *arguments])
    from tiltyard.job.__main__ import run

    run(arguments)


def _pause() -> None:
    time.sleep(POLL_SECONDS)


def _connect() -> None:
    import ray

    ray.init(ignore_reinit_error=True, log_to_driver=True)


def _start_workers() -> None:
    """Starts tasks, each in a worker of its own, which Ray keeps for further tasks and actors of this driver."""
    import ray

    for _ in range(WORKERS):
        ray.remote(num_cpus=0)(_import_packages).remote()


def _import_packages() -> None:
    import lance.namespace  # noqa: F401

    # Geneva is optional.
    with contextlib.suppress(ImportError):
        from tiltyard.job import geneva_job

        geneva_job.prepare()


def _installed() -> set[tuple[str, int]]:
    """Returns the installed packages with the times of their installation."""
    folders = [Path(each) for each in [*site.getsitepackages(), site.getusersitepackages()]]
    return {(str(each), each.stat().st_mtime_ns) for folder in folders for each in folder.glob("*.dist-info")}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
