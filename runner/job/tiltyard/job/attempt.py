"""One attempt at a job: its start, its heartbeat, its progress and its end."""

from __future__ import annotations

import secrets
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tiltyard.job import contracts
from tiltyard.job.catalog_job import (
    CALL_TIMEOUT_SECONDS,
    Answer,
    CatalogJob,
    CatalogRefusal,
    CatalogUnavailable,
    as_text,
)
from tiltyard.job.job import rows_before

HEARTBEAT_SECONDS = 2.0
# The minimum number of heartbeats per lease, for short leases.
HEARTBEATS_PER_LEASE = 3


class Stop(Enum):
    """The reasons why an attempt must not continue."""

    CANCELED = "the job was canceled"
    PAUSED = "the job was paused"
    LOST = "the attempt is no longer this process's"


class AttemptStopped(Exception):
    """The job was canceled or paused, or another attempt has superseded this one."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.value)
        self.stop = stop


@dataclass(frozen=True)
class Process:
    """The functions of the process that an attempt needs."""

    # Called once on the thread of the heartbeat.
    on_stop: Callable[[Stop], None]
    # Returns the last lines of the output.
    log: Callable[[], str] = str
    # Reports whether its Ray still exists.
    has_ray: Callable[[], bool] = lambda: True


class Attempt:
    """Runs the attempt that a runner has claimed.

    Its requests contain a random claim, so that the catalog rejects those of other processes and of superseded
    attempts. An attempt without an accepted heartbeat for the length of its lease stops itself, and a takeover waits
    longer than that. An attempt whose Ray no longer exists sends no heartbeat either, because it would wait for it
    forever.
    """

    def __init__(self, job: CatalogJob, number: int, lease_seconds: float, process: Process) -> None:
        self._job = job
        self._number = number
        self.claim = secrets.token_hex(16)
        self._lease_seconds = lease_seconds
        self._process = process
        self._log_sent = ""
        self._progress: dict[str, int] = {}
        # The rows of the job as an earlier attempt reported them.
        self._rows_of_job = 0
        # The rows and the time of the first report. An attempt may begin with rows of the previous one.
        self._first: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._accepted_at = time.monotonic()
        self._thread = threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True)

    def begin(self) -> contracts.Job:
        """Moves the job to Running and starts the heartbeat. Raises AttemptStopped, CatalogUnavailable.

        An attempt may be submitted twice, but only one of its processes begins.
        """
        request: contracts.StartJobAttemptRequest = {"attempt": self._number, "claim": self.claim}
        job = self._accepted(lambda: self._job.start(request, self._lease_seconds), "Running")
        self._rows_of_job = job["progress"].get("rows_total", 0)
        self._thread.start()
        return job

    def report(self, rows_committed: int, rows_total: int, **counters: int) -> None:
        """Records the progress of all attempts, which the next heartbeat sends. Numbers never decrease."""
        before = rows_before(self._rows_of_job, rows_total) if rows_total > 0 else 0
        rows_committed, rows_total = rows_committed + before, rows_total + before
        if "rows_checkpointed" in counters:
            counters["rows_checkpointed"] += before
        with self._lock:
            committed = max(min(rows_committed, rows_total), self._progress.get("rows_committed", 0))
            # The rate includes computed rows that are not committed yet.
            computed = max(committed, min(counters.get("rows_checkpointed", 0), rows_total))
            self._first = self._first or (computed, time.monotonic())
            reported = {"rows_committed": committed, "rows_total": max(rows_total, committed), **counters}
            self._progress = {**self._progress, **reported}
            elapsed = time.monotonic() - self._first[1]
            if elapsed > 0 and computed > self._first[0]:
                self._progress["rows_per_second"] = round((computed - self._first[0]) / elapsed)

    def end(
        self,
        status: Literal["Succeeded", "Failed"],
        reason: str | None = None,
        result: Mapping[str, int] | None = None,
    ) -> None:
        """Moves the job to its final status. Raises AttemptStopped, CatalogUnavailable."""
        self._finish({**self._ending(reason), "status": status, "result": dict(result or {})}, status)

    def abandon(self, reason: str) -> None:
        """Leaves the job open for another attempt and records the reason. Raises AttemptStopped, CatalogUnavailable."""
        self._finish(self._ending(reason), "Running")

    def _ending(self, reason: str | None) -> contracts.FinishJobAttemptRequest:
        request: contracts.FinishJobAttemptRequest = {"attempt": self._number, "claim": self.claim}
        if progress := self._reported():
            request["progress"] = progress
        request["log_tail"] = as_text(self._process.log())
        if reason is not None:
            request["reason"] = as_text(reason)
        return request

    def _finish(self, request: contracts.FinishJobAttemptRequest, status: str) -> None:
        self._ended.set()
        self._accepted(lambda: self._job.finish(request, self._lease_seconds), status)

    def _send_heartbeat(self, timeout_seconds: float) -> None:
        request: contracts.HeartbeatJobAttemptRequest = {"attempt": self._number, "claim": self.claim}
        if progress := self._reported():
            request["progress"] = progress
        log = as_text(self._process.log())
        if log != self._log_sent:
            request["log_tail"] = log
        self._accepted(lambda: self._job.heartbeat(request, timeout_seconds), "Running")
        self._log_sent = log

    def _reported(self) -> dict[str, int]:
        with self._lock:
            return dict(self._progress)

    def _send_heartbeats(self) -> None:
        pause = min(HEARTBEAT_SECONDS, self._lease_seconds / HEARTBEATS_PER_LEASE)
        while not self._ended.wait(min(pause, max(0.0, self._lease_left()))):
            left = self._lease_left()
            if left <= 0:
                return self._stop(Stop.LOST)
            try:
                if self._process.has_ray():
                    self._send_heartbeat(min(left, CALL_TIMEOUT_SECONDS))
            except AttemptStopped as stopped:
                return self._stop(stopped.stop)
            # This thread must outlive any error, because it alone stops an attempt whose lease has ended.
            except Exception as error:
                if not isinstance(error, CatalogUnavailable):
                    traceback.print_exc()

    def _lease_left(self) -> float:
        return self._accepted_at + self._lease_seconds - time.monotonic()

    def _stop(self, stop: Stop) -> None:
        if not self._ended.is_set():
            self._process.on_stop(stop)

    def _accepted(self, call: Callable[[], Answer], status: str) -> contracts.Job:
        """Returns the job after a request. Raises AttemptStopped if it is paused, or has another status or attempt."""
        try:
            answer = call()
        except CatalogRefusal as refusal:
            raise AttemptStopped(Stop.LOST) from refusal
        if "paused_at_millis" in answer.job:
            raise AttemptStopped(Stop.PAUSED)
        if answer.job["status"] != status:
            raise AttemptStopped(Stop.CANCELED if answer.job["status"] == "Canceled" else Stop.LOST)
        # A takeover waits from the time at which the catalog recorded the heartbeat, which was not earlier than this.
        self._accepted_at = answer.sent_at
        return answer.job
