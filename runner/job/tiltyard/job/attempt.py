"""One attempt at a job: its claim, its heartbeat, its progress and its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus

from tiltyard.job.transaction import (
    CALL_TIMEOUT_SECONDS,
    Action,
    CatalogRefusal,
    CatalogUnavailable,
    State,
    Transaction,
    require_and_set,
    set_new_property,
    set_property,
    set_status,
    unset_property,
)

BEAT_SECONDS = 2.0
# The minimum number of heartbeats per lease, for short leases.
BEATS_OF_LEASE = 3
# The time in which a rejected attempt queries the reason.
WHY_SECONDS = 1.0
# The property with the start of the attempt. The runner that claims the next attempt deletes it.
STARTED = "started_at"


class Stop(Enum):
    """The reasons why an attempt must not continue."""

    CANCELED = "the job was canceled"
    LOST = "the attempt is no longer this process's"


class AttemptStopped(Exception):
    """The job was canceled, or another attempt has superseded this one."""

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
    """Holds the claim `attempt.N`, a property of the job's transaction whose value is the latest heartbeat.

    The runner that starts the attempt sets the property in mode Fail. Each heartbeat requires it and sets it again
    in one request, so that a superseded attempt is rejected. An attempt without an accepted heartbeat for the length
    of its lease stops itself, and a takeover waits longer than that. An attempt whose Ray no longer exists sends no
    heartbeat either, because it would wait for it forever.
    """

    def __init__(
        self,
        transaction: Transaction,
        number: int,
        lease_seconds: float,
        process: Process,
    ) -> None:
        self._transaction = transaction
        self._claim = f"attempt.{number}"
        self._lease_seconds = lease_seconds
        self._process = process
        self._log_told = ""
        self._progress: dict[str, int] = {}
        # The rows and the time of the first report. An attempt may begin with rows of the previous one.
        self._first: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._accepted_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)

    def begin(self) -> State:
        """Moves the job to Running and starts the heartbeat. Raises AttemptStopped, CatalogUnavailable.

        An attempt may be submitted twice, but only one of its processes begins.
        """
        now = _now("microseconds")
        try:
            state = self._alter([set_new_property(STARTED, now), set_status("Running")], self._lease_seconds)
        except AttemptStopped:
            # The response to the previous request may have been lost.
            found = self._begun_at(now)
            if found is None:
                raise
            state = found
        self._thread.start()
        return state

    def _begun_at(self, moment: str) -> State | None:
        """Returns the job if this process began its attempt and the job has not ended."""
        try:
            found = self._transaction.describe(self._lease_seconds)
        except CatalogRefusal:
            return None
        return found if found.is_open and found.properties.get(STARTED) == moment else None

    def report(self, rows_committed: int, rows_total: int, **counters: int) -> None:
        """Records the progress, which the next heartbeat sends. Numbers never decrease."""
        with self._lock:
            committed = max(min(rows_committed, rows_total), self._progress.get("rows_committed", 0))
            self._first = self._first or (committed, time.monotonic())
            told = {"rows_committed": committed, "rows_total": max(rows_total, committed), **counters}
            self._progress = {**self._progress, **told}
            elapsed = time.monotonic() - self._first[1]
            if elapsed > 0 and committed > self._first[0]:
                self._progress["rows_per_second"] = round((committed - self._first[0]) / elapsed)

    def end(self, status: str, properties: Mapping[str, str] | None = None) -> None:
        """Moves the job to its final status. Raises AttemptStopped, CatalogUnavailable."""
        self._ended.set()
        # A previous attempt may have set the reason of its failure.
        cleared = [unset_property("reason")]
        given = [set_property(key, value) for key, value in (properties or {}).items()]
        self._alter([*cleared, *given, set_status(status)], self._lease_seconds)

    def give_up(self, reason: str) -> None:
        """Leaves the job open for another attempt and records the reason. Raises AttemptStopped, CatalogUnavailable."""
        self._ended.set()
        self._alter([set_property("reason", reason)], self._lease_seconds)

    def _beat_until_ended(self) -> None:
        pause = min(BEAT_SECONDS, self._lease_seconds / BEATS_OF_LEASE)
        while not self._ended.wait(min(pause, max(0.0, self._lease_left()))):
            left = self._lease_left()
            if left <= 0:
                return self._stop(Stop.LOST)
            try:
                if self._process.has_ray():
                    self._alter([], timeout_seconds=min(left, CALL_TIMEOUT_SECONDS))
            except CatalogUnavailable:
                pass
            except AttemptStopped as stopped:
                return self._stop(stopped.stop)

    def _lease_left(self) -> float:
        return self._accepted_at + self._lease_seconds - time.monotonic()

    def _stop(self, stop: Stop) -> None:
        if not self._ended.is_set():
            self._process.on_stop(stop)

    def _alter(
        self, actions: list[Action], retry_seconds: float = 0, timeout_seconds: float = CALL_TIMEOUT_SECONDS
    ) -> State:
        with self._lock:
            progress = [set_property(f"progress.{name}", str(value)) for name, value in self._progress.items()]
        try:
            log = self._process.log()
            told = [set_property("log_tail", log)] if log != self._log_told else []
            state = self._transaction.alter(
                [*require_and_set(self._claim, _now()), *progress, *told, *actions], retry_seconds, timeout_seconds
            )
        except CatalogRefusal as refusal:
            raise AttemptStopped(self._why(refusal)) from refusal
        if state.status == "Canceled":
            raise AttemptStopped(Stop.CANCELED)
        # A takeover waits from the time at which the catalog recorded the heartbeat, which was not earlier than this.
        self._accepted_at = state.sent_at
        self._log_told = log
        return state

    def _why(self, refusal: CatalogRefusal) -> Stop:
        if refusal.status != HTTPStatus.CONFLICT:
            return Stop.LOST
        try:
            # Another attempt may already run, so the reason is not awaited for long.
            status = self._transaction.describe(timeout_seconds=WHY_SECONDS).status
        except (CatalogRefusal, CatalogUnavailable):
            return Stop.LOST
        return Stop.CANCELED if status == "Canceled" else Stop.LOST


def _now(precision: str = "milliseconds") -> str:
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
