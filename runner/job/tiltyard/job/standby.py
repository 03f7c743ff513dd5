"""Waits for one attempt with Ray connected and the packages imported, so that a job computes its first row sooner.

A runner starts `python -m tiltyard.job.standby FOLDER` ahead. The folder belongs to this process alone: the runner
stores the key of the attempt there, and then the arguments of its command. The process serves no second attempt, and
exits when the folder is deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import site
import sys
import time
from pathlib import Path

from tiltyard.job.log_tail import quiet

POLL_SECONDS = 0.02
# The time in which Ray begins to start the workers.
REQUEST_SECONDS = 0.5
ARGUMENTS = "attempt.json"
# Geneva uses a worker to drive the backfill, one to count its progress, one per applier, and one per writer.
WORKERS = 4


def main(folder: Path) -> None:
    quiet()
    installed = _installed()
    # An attempt that arrives during a step waits for that step only.
    steps = iter([_connect, import_packages, _start_workers])
    while _is_waiting(folder):
        next(steps, _pause)()
    if not folder.exists():
        os._exit(0)
    arguments = json.loads((folder / ARGUMENTS).read_text())
    if _installed() != installed:
        # The imported packages are no longer those of the environment.
        os.execv(sys.executable, [sys.executable, "-m", "tiltyard.job", *arguments])
    from tiltyard.job.__main__ import run

    run(arguments)


def _is_waiting(folder: Path) -> bool:
    return folder.exists() and not (folder / ARGUMENTS).exists()


def _pause() -> None:
    time.sleep(POLL_SECONDS)


def _connect() -> None:
    import ray

    runtime_env = {"worker_process_setup_hook": "tiltyard.job.standby.import_packages"}
    ray.init(ignore_reinit_error=True, log_to_driver=True, runtime_env=runtime_env)


def _start_workers() -> None:
    """Starts workers, which import the packages and remain idle.

    Ray starts a worker for each task with other resources, and keeps the worker after the cancellation of the task. An
    actor needs a worker that has never run a task.
    """
    import ray

    tasks = [ray.remote(num_cpus=number / 10_000)(_do_nothing).remote() for number in range(1, WORKERS + 1)]
    # No worker is ready so soon.
    time.sleep(REQUEST_SECONDS)
    for task in tasks:
        ray.cancel(task)


def _do_nothing() -> None: ...


def import_packages() -> None:
    """Imports the packages of a job. A worker that fails to do so fails with the job's own error later."""
    with contextlib.suppress(Exception):
        import lance.namespace  # noqa: F401

        # Geneva is optional.
        from tiltyard.job import geneva_job

        geneva_job.prepare()


def _installed() -> set[tuple[str, int]]:
    """Returns the installed packages with the times of their installation."""
    folders = [Path(each) for each in [*site.getsitepackages(), site.getusersitepackages()]]
    return {(str(each), each.stat().st_mtime_ns) for folder in folders for each in folder.glob("*.dist-info")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tiltyard.job.standby")
    parser.add_argument("folder", type=Path)
    main(parser.parse_args().folder)
