"""The command that runs one attempt of one job and exits with its result."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback

from tiltyard.connection import Connection, ConnectionSettingError, connection
from tiltyard.job import contracts
from tiltyard.job.attempt import Attempt, AttemptStopped, Process, Stop
from tiltyard.job.catalog_job import CatalogJob, CatalogUnavailable
from tiltyard.job.contracts import Exit
from tiltyard.job.failure import is_passing, reason_of
from tiltyard.job.job import Job
from tiltyard.job.log_tail import LogTail, quiet
from tiltyard.job.ray_head import has_ray
from tiltyard.job.work import work_of

LEASE_SECONDS = 60.0
# The number that shells add to the signal that killed a command.
SIGNALS = 128


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    quiet()
    try:
        found = connection()
    except ConnectionSettingError as error:
        print(f"tiltyard.job: {error}", file=sys.stderr)
        return Exit.USAGE
    log = LogTail(found.key)
    log.install()
    attempt = Attempt(
        CatalogJob(found, options.id),
        options.attempt,
        options.lease_seconds,
        Process(_leave, log.text, has_ray),
    )
    try:
        described = attempt.begin()
    except AttemptStopped as stopped:
        return _stopped(stopped.stop)
    except CatalogUnavailable as error:
        print(f"tiltyard.job: {error}", file=sys.stderr)
        return Exit.AGAIN
    return _run(attempt, _job_of(options, described, found, attempt.claim))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tiltyard.job", description="Runs one attempt of a job.")
    parser.add_argument("id", help="the id that the catalog returned to the request for the job")
    parser.add_argument("--attempt", type=int, required=True, help="the number that a runner has claimed")
    parser.add_argument(
        "--lease-seconds", type=float, default=LEASE_SECONDS, help="how long it continues without an accepted heartbeat"
    )
    return parser.parse_args(arguments)


def _job_of(options: argparse.Namespace, described: contracts.Job, found: Connection, claim: str) -> Job:
    return Job(
        options.id,
        described["operation"],
        described["objects"][0],
        described["parameters"],
        found,
        described["started_at_millis"],
        options.attempt,
        claim,
        described["progress"],
    )


def _run(attempt: Attempt, job: Job) -> int:
    print(f"{job.operation} {'$'.join(job.table)} {job.parameters}", flush=True)
    try:
        result = work_of(job)(job, attempt.report)
    except BaseException as error:
        traceback.print_exc()
        # The signal ended this attempt and not the job. The runner knows it by the exit code.
        if _signal_of(error) is not None:
            raise
        if is_passing(error):
            attempt.abandon(reason_of(error))
            return Exit.AGAIN
        attempt.end("Failed", reason_of(error))
        return Exit.FAILED
    attempt.end("Succeeded", result=result)
    return Exit.SUCCEEDED


def _signal_of(error: BaseException) -> int | None:
    """Returns the signal that Python, or ray.init() for SIGTERM, has turned into an exception."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    is_terminated = isinstance(error, SystemExit) and error.code == signal.SIGTERM
    return signal.SIGTERM if is_terminated else None


def _stopped(stop: Stop) -> int:
    print(f"tiltyard.job: {stop.value}", file=sys.stderr, flush=True)
    return Exit.LOST if stop is Stop.LOST else Exit.CANCELED


def _leave(stop: Stop) -> None:
    """Exits immediately. Ray ends the tasks and actors of an exited driver."""
    os._exit(_stopped(stop))


def run(arguments: list[str] | None = None) -> None:
    """Runs the command and exits."""
    try:
        code = main(arguments)
    except (AttemptStopped, CatalogUnavailable) as error:
        print(f"tiltyard.job: {error}", file=sys.stderr)
        code = Exit.AGAIN
    except (SystemExit, KeyboardInterrupt) as error:
        received = _signal_of(error)
        if received is None:
            raise
        code = SIGNALS + received
    # Geneva's threads may outlive their work.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
