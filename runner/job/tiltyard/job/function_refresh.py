"""The refresh of a Function's columns: plans the rows, distributes them to workers, and commits their values."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Protocol

from tiltyard.job.conflicts import CONFLICT
from tiltyard.job.function_state import (
    Fields,
    FragmentWork,
    Record,
    current_records,
    field_ids,
    offset_of,
    work_of,
)
from tiltyard.job.function_values import write_values
from tiltyard.job.function_worker import FAILED_SHARE_MAX, Computed, Part, Piece
from tiltyard.job.job import JobError, Report, Result, rows_before

# A part begins with few rows, so that a function that fails or is slow shows it soon, and grows up to a duration.
PART_ROWS_FIRST = 10
PART_ROWS_MAX = 1_000_000
PART_SECONDS = 10.0
GROWTH_MAX = 16
# The bytes of the inputs and the values of a part, which its worker has in memory. Arrow's arrays of texts have at most
# 2 GiB.
PART_BYTES_MAX = 2**28
# Parts are shares of all rows, so that the end of a worker costs few of them, except for parts of a short duration.
PARTS_OF_WORKER = 100
PART_SECONDS_MIN = 0.5
# The share of the elapsed time between two commits, and its limits. It is also a multiple of the duration of a commit,
# which writes whole columns of the changed fragments.
COMMIT_SHARE = 0.03
COMMIT_SECONDS_MIN = 1.0
COMMIT_SECONDS_MAX = 60.0
COMMIT_FACTOR = 10
# The bytes of values that wait for a commit.
PENDING_BYTES_MAX = 2**28
# FAILED_SHARE_MAX is a share of the rows that are computed for the first time, and of all rows. So rows that fail again
# and again end no refresh of others. It is also checked before the end, from a number of rows on.
CHECKED_ROWS_MIN = 1_000
# Other writers change fragments while their rows are computed. The changed fragments are planned again.
PLANS_MAX = 10
CONFLICTS_MAX = 10
# The remaining time for which a further worker is started.
WORKER_SECONDS = 5.0


class Pool(Protocol):
    """Workers that compute parts."""

    @property
    def is_idle(self) -> bool:
        """Reports whether a worker waits for a part."""

    @property
    def is_busy(self) -> bool:
        """Reports whether a part is computed."""

    @property
    def slots(self) -> int:
        """Returns the largest number of workers."""

    def submit(self, version: int, pieces: Sequence[Piece]) -> None:
        """Starts a part of a version of the table on a waiting worker."""

    def next(self) -> Part:
        """Waits for the next part."""

    def grow(self, workers: int) -> None:
        """Starts workers up to a number."""


class RecordState(Protocol):
    """Stores what a version of the table contains."""

    def __call__(
        self, version: int, records: Mapping[int, Record], removed: Sequence[int], errors: Sequence[dict[str, Any]]
    ) -> None: ...


@dataclass(frozen=True)
class Columns:
    """The columns of a function."""

    # The paths of the inputs.
    inputs: list[str]
    # The field of the result by output column; `$value` is the whole result.
    outputs: dict[str, str]

    def fields_of(self, dataset: Any) -> Fields:
        """Raises JobError if a column does not exist."""
        try:
            return Fields(field_ids(dataset, self.inputs), field_ids(dataset, self.outputs))
        except KeyError as error:
            raise JobError(f"the column {error.args[0]} does not exist") from None

    def values_of(self, computed: Computed) -> Any:
        """Returns a table with the addresses of rows and the values of the output columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = computed.values
        columns = {
            column: values if result == WHOLE_VALUE else pc.struct_field(values, [result])
            for column, result in self.outputs.items()
        }
        return pa.table({"_rowaddr": computed.addresses, **columns})


WHOLE_VALUE = "$value"


class FragmentProgress:
    """The rows of a fragment that were computed in the order of the fragment."""

    def __init__(self, work: FragmentWork) -> None:
        self.files = work.files
        self._work = work
        self._next = work.missing.start
        self._rows = work.computed_rows
        # The finished pieces behind the first unfinished one: the end and the number of rows up to it.
        self._ahead: dict[int, tuple[int, int]] = {}

    def finish(self, computed: Computed) -> None:
        if computed.piece.is_retry:
            return
        positions = computed.piece.positions
        rows = offset_of(computed.addresses[-1].as_py()) + 1
        self._ahead[positions[0]] = (positions[-1] + 1, rows)
        while self._next in self._ahead:
            self._next, self._rows = self._ahead.pop(self._next)

    @property
    def record(self) -> Record:
        is_complete = self._next >= self._work.missing.stop
        return Record(self.files.signature, self._work.physical_rows if is_complete else self._rows)


class Queue:
    """The rows that no worker has yet."""

    def __init__(self, work: Sequence[FragmentWork]) -> None:
        self._waiting: deque[Piece] = deque()
        for each in work:
            if each.failed:
                retried = [each.begin + position for position in each.failed]
                self._waiting.append(Piece(each.fragment_id, retried, is_retry=True))
            if each.missing:
                self._waiting.append(Piece(each.fragment_id, each.missing, is_retry=False))
        self.rows = sum(each.rows for each in work)

    def take(self, rows: int) -> list[Piece]:
        """Removes the next rows, which may belong to several fragments."""
        taken: list[Piece] = []
        while rows > 0 and self._waiting:
            piece = self._waiting.popleft()
            first, rest = piece.positions[:rows], piece.positions[rows:]
            if rest:
                self._waiting.appendleft(Piece(piece.fragment_id, rest, piece.is_retry))
            taken.append(Piece(piece.fragment_id, first, piece.is_retry))
            rows -= len(first)
            self.rows -= len(first)
        return taken


class Refresh:
    """One attempt to fill the columns of a function."""

    def __init__(
        self, columns: Columns, open_latest: Callable[[], Any], pool: Pool, record: RecordState, report: Report
    ) -> None:
        self._columns = columns
        self._open_latest = open_latest
        self._pool = pool
        self._record = record
        self._report = report
        self._rows_total = 0
        self._part_rows = PART_ROWS_FIRST
        self._rows_per_second = 0.0
        self._bytes_per_row = 0.0
        # The rows of all parts that were computed for the first time, and the failed ones among them.
        self._evaluated = 0
        self._evaluated_failed = 0
        self._retried_failed = 0
        # The rows that were computed before this attempt.
        self._known = 0
        # The committed rows: all of them, those with a value, and those with an error.
        self._done = 0
        self._assigned = 0
        self._failed = 0
        self._first_error: str | None = None
        self._published: int | None = None
        # The addresses of rows that have no value after this attempt.
        self._tried: set[int] = set()
        self._pending: list[Computed] = []
        self._begun_at = self._committed_at = time.monotonic()
        self._commit_seconds = 0.0
        # A fragment was changed by another writer, so that the rest is planned again.
        self._is_outdated = False

    def run(self, records: Mapping[int, Record], rows_of_job: int = 0) -> Result:
        """Computes all rows without a current value. Raises JobError. The result counts the rows of all attempts."""
        dataset = self._open_latest()
        source_version = dataset.version
        for number in range(PLANS_MAX):
            dataset = dataset if number == 0 else self._open_latest()
            fields = self._columns.fields_of(dataset)
            current = current_records(dataset, fields, records)
            gone = sorted(records.keys() - current.keys())
            moved = {key: record for key, record in current.items() if records.get(key) != record}
            if gone or moved:
                self._record(dataset.version, moved, gone, [])
            work = work_of(dataset, fields, list(self._columns.outputs), current, self._tried)
            if number == 0:
                self._known = sum(each.missing.start for each in work)
            records = self._compute(dataset, work, current)
            if not self._is_outdated:
                break
            print("other writers changed rows of this refresh, which are planned again", flush=True)
        result = {
            "rows_assigned": rows_before(rows_of_job, self._rows_total) + self._assigned,
            "rows_failed": self._failed,
            "rows_remaining": self._rows_total - self._assigned - self._failed,
            "source_version": source_version,
        }
        return result if self._published is None else {**result, "published_version": self._published}

    def _compute(self, dataset: Any, work: Sequence[FragmentWork], records: Mapping[int, Record]) -> dict[int, Record]:
        """Computes the rows of a plan, until all are done or another writer changed one of their fragments."""
        self._is_outdated = False
        self._progress = {each.fragment_id: FragmentProgress(each) for each in work}
        self._records = dict(records)
        queue = Queue(work)
        self._rows_total = self._done + queue.rows
        self._report(self._done, self._rows_total)
        try:
            while (queue.rows and not self._is_outdated) or self._pool.is_busy:
                while queue.rows and self._pool.is_idle and not self._is_outdated:
                    self._pool.submit(dataset.version, queue.take(self._rows_of_next_part(queue)))
                self._add(self._pool.next(), queue)
                if self._is_commit_due():
                    self._publish()
            self._require_few_errors()
        finally:
            self._publish()
        return self._records

    def _rows_of_next_part(self, queue: Queue) -> int:
        slots = self._pool.slots
        share = max(PART_ROWS_FIRST, ceil(queue.rows / slots))
        bound = max(
            self._rows_per_second * PART_SECONDS_MIN, self._rows_total / slots / PARTS_OF_WORKER, PART_ROWS_FIRST
        )
        fitting = PART_BYTES_MAX / max(self._bytes_per_row, 1)
        return max(1, min(self._part_rows, share, PART_ROWS_MAX, int(bound), int(fitting)))

    def _add(self, part: Part, queue: Queue) -> None:
        if part.failure is not None:
            raise JobError(part.failure)
        rows = sum(len(each.piece.positions) for each in part.computed)
        self._rows_per_second = rows / max(part.seconds, 0.001)
        self._bytes_per_row = sum(each.size_bytes for each in part.computed) / max(rows, 1)
        wanted = PART_SECONDS * self._rows_per_second
        self._part_rows = max(1, int(min(max(wanted, rows / GROWTH_MAX), rows * GROWTH_MAX)))
        self._pool.grow(ceil(queue.rows * part.seconds / max(rows, 1) / WORKER_SECONDS))
        for each in part.computed:
            self._pending.append(each)
            if each.piece.is_retry:
                self._retried_failed += len(each.errors)
            else:
                self._evaluated += each.evaluated
                self._evaluated_failed += len(each.errors)
            for error in each.errors[:1]:
                self._first_error = self._first_error or f"{error['type']}: {error['message']}"
        if self._evaluated >= CHECKED_ROWS_MIN:
            self._require_few(self._evaluated_failed, self._evaluated)

    def _require_few_errors(self) -> None:
        self._require_few(self._evaluated_failed, self._evaluated)
        self._require_few(self._evaluated_failed + self._retried_failed, self._evaluated + self._known)

    def _require_few(self, failed: int, rows: int) -> None:
        if failed > FAILED_SHARE_MAX * rows:
            raise JobError(f"{failed:,} of {rows:,} rows failed, more than {FAILED_SHARE_MAX:.0%}: {self._first_error}")

    def _is_commit_due(self) -> bool:
        waited = time.monotonic() - self._committed_at
        pending = sum(each.values.nbytes for each in self._pending)
        share = COMMIT_SHARE * (time.monotonic() - self._begun_at)
        pause = max(COMMIT_SECONDS_MIN, min(share, COMMIT_SECONDS_MAX), COMMIT_FACTOR * self._commit_seconds)
        return pending > PENDING_BYTES_MAX or waited > pause

    def _publish(self) -> None:
        """Commits the pending values and records them. Drops those of fragments that another writer changed."""
        if not self._pending:
            return
        begun = time.monotonic()
        for number in range(1, CONFLICTS_MAX + 1):
            dataset = self._open_latest()
            fields = self._columns.fields_of(dataset)
            kept = self._current(dataset, fields)
            values = self._values_of(dataset, fields, kept)
            try:
                dataset = write_values(dataset, values) if values else dataset
                break
            except Exception as error:
                if number == CONFLICTS_MAX or not CONFLICT.search(str(error)):
                    raise
        self._pending = []
        self._published = dataset.version if values else self._published
        self._finish(dataset, fields, kept)
        self._committed_at = time.monotonic()
        self._commit_seconds = self._committed_at - begun

    def _current(self, dataset: Any, fields: Fields) -> list[Computed]:
        """Returns the pending values whose inputs and former values are still the same."""
        present = {each.fragment_id: each for each in dataset.get_fragments()}
        kept = []
        for computed in self._pending:
            fragment = present.get(computed.piece.fragment_id)
            expected = self._progress[computed.piece.fragment_id].files
            if fragment is not None and fields.files_of(fragment.metadata) == expected:
                kept.append(computed)
            else:
                self._is_outdated = True
        return kept

    def _values_of(self, dataset: Any, fields: Fields, kept: Sequence[Computed]) -> dict[int, Any]:
        """Returns the values to write by fragment. Null values replace only existing ones."""
        import pyarrow as pa

        outputs = set(fields.outputs)
        tables: dict[int, list[Any]] = {}
        for each in kept:
            fragment_id = each.piece.fragment_id
            has_values = any(outputs & set(file.fields) for file in dataset.get_fragment(fragment_id).metadata.files)
            values = self._columns.values_of(each)
            if each.piece.is_retry or not has_values:
                values = values.filter(each.values.is_valid())
            if values.num_rows:
                tables.setdefault(fragment_id, []).append(values)
        return {fragment_id: pa.concat_tables(found).combine_chunks() for fragment_id, found in tables.items()}

    def _finish(self, dataset: Any, fields: Fields, kept: Sequence[Computed]) -> None:
        """Records the values that a version of the table has."""
        errors = []
        for each in kept:
            fragment_id = each.piece.fragment_id
            self._progress[fragment_id].finish(each)
            errors += [{"fragment_id": fragment_id, **error} for error in each.errors]
            self._done += len(each.addresses)
            self._assigned += each.evaluated - len(each.errors)
            self._failed += len(each.errors)
            self._tried.update(each.addresses.filter(each.values.is_null()).to_pylist())
        changed = {}
        for fragment_id in {each.piece.fragment_id for each in kept}:
            progress = self._progress[fragment_id]
            outputs = fields.files_of(dataset.get_fragment(fragment_id).metadata).outputs
            progress.files = replace(progress.files, outputs=outputs)
            changed[fragment_id] = progress.record
        self._records.update(changed)
        self._record(dataset.version, changed, [], errors)
        self._report(self._done, self._rows_total)
