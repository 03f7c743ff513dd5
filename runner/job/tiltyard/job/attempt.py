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
# With a short lease, heartbeats are as many as these.
BEATS_OF_LEASE = 3
# How long an attempt that was refused asks for the reason.
WHY_SECONDS = 1.0
# When the attempt began; the runner that claims the next one unsets it.
STARTED = "started_at"


class Stop(Enum):
    """Why an attempt must not go on."""

    CANCELED = "the job was canceled"
    LOST = "the attempt is no longer this process's"


class AttemptStopped(Exception):
    """The job was canceled, or another attempt has taken it over."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.value)
        self.stop = stop


@dataclass(frozen=True)
class Process:
    """What an attempt needs to know of the process that it runs in."""

    # Called once, on the heartbeat's thread.
    on_stop: Callable[[Stop], None]
    # The last lines that were printed.
    log: Callable[[], str] = str
    # Whether its Ray is there.
    has_ray: Callable[[], bool] = lambda: True


class Attempt:
    """Holds the claim `attempt.N`, a property of the job's transaction whose value is the latest heartbeat.

    The runner that starts the attempt sets the property, in mode Fail. Each heartbeat requires it and sets it again
    in one request, so that an attempt that was taken over is refused. An attempt without an accepted heartbeat
    for the length of its lease stops by itself: the one that takes over waits longer than that. Nor does one beat
    whose Ray is gone: it would wait for it for ever.
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
        # Rows and time at the first report: an attempt may begin with rows of the one before.
        self._first: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._accepted_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)

    def begin(self) -> State:
        """Moves the job to Running, and beats from then on. Raises AttemptStopped, CatalogUnavailable.

        An attempt may be submitted twice; of its processes one begins.
        """
        now = _now("microseconds")
        try:
            state = self._alter([set_new_property(STARTED, now), set_status("Running")], self._lease_seconds)
        except AttemptStopped:
            # The answer to the request before this one may have been lost.
            found = self._begun_at(now)
            if found is None:
                raise
            state = found
        self._thread.start()
        return state

    def _begun_at(self, moment: str) -> State | None:
        """The job, if it is this process that began its attempt, and if it has not ended."""
        try:
            found = self._transaction.describe(self._lease_seconds)
        except CatalogRefusal:
            return None
        return found if found.is_open and found.properties.get(STARTED) == moment else None

    def report(self, rows_committed: int, rows_total: int, **counters: int) -> None:
        """Notes how far the work has come; the next heartbeat tells it. Numbers never go back."""
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
        # An attempt before this one may have said why it gave up.
        cleared = [unset_property("reason")]
        given = [set_property(key, value) for key, value in (properties or {}).items()]
        self._alter([*cleared, *given, set_status(status)], self._lease_seconds)

    def give_up(self, reason: str) -> None:
        """Leaves the job open for another attempt, and says why. Raises AttemptStopped, CatalogUnavailable."""
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
        # A takeover waits from the moment at which the catalog noted this, which was not before.
        self._accepted_at = state.sent_at
        self._log_told = log
        return state

    def _why(self, refusal: CatalogRefusal) -> Stop:
        if refusal.status != HTTPStatus.CONFLICT:
            return Stop.LOST
        try:
            # Another attempt may run by now: what cannot be told at once is not waited for.
            status = self._transaction.describe(timeout_seconds=WHY_SECONDS).status
        except (CatalogRefusal, CatalogUnavailable):
            return Stop.LOST
        return Stop.CANCELED if status == "Canceled" else Stop.LOST


def _now(precision: str = "milliseconds") -> str:
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
