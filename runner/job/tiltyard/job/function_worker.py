"""A worker reads the inputs of rows, calls the function in its child process, and returns the values."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tiltyard.job.function_child import FunctionFailure, Start
from tiltyard.job.function_environment import Environment, Requirements
from tiltyard.job.function_process import FunctionProcess, ProcessEnded
from tiltyard.job.function_state import offset_of

# The number of processes that may end at the start of a function, and at the same row.
ENDS_MAX = 3
# The largest share of failed rows: among those of a refresh, and among those of a part that end their process. In each
# part, ENDED_ROWS_MIN rows may do so.
FAILED_SHARE_MAX = 0.05
ENDED_ROWS_MIN = 3
# The type of the error of such a row.
ENDED = "tiltyard.ProcessEnded"


def ended_rows_max(rows: int) -> int:
    """Returns how many of the rows may end their process."""
    return max(ENDED_ROWS_MIN, int(FAILED_SHARE_MAX * rows))


@dataclass(frozen=True)
class FunctionSpec:
    """A function with its inputs."""

    start: Start
    environment: dict[str, str]
    # The SQL of each input by its parameter, in the order of the parameters.
    inputs: dict[str, str]
    # The parameters that need a value: the function is not called for rows in which one of them is null.
    required: list[str]
    # None for the Python of the runner.
    requirements: Requirements | None = None
    # The function sees the GPU that Ray reserves for its worker.
    gpu: bool = False


@dataclass(frozen=True)
class Piece:
    """Some rows of a fragment that have a place in the work of one job."""

    fragment_id: int
    # Rows to retry are positions in the table, others are positions in the fragment; both without deleted rows.
    positions: Sequence[int]
    is_retry: bool


@dataclass(frozen=True)
class Computed:
    """The values of a piece."""

    piece: Piece
    # The addresses of the rows and their values as Arrow arrays.
    addresses: Any
    values: Any
    # The failed rows: the offset in the fragment, the type and the message.
    errors: list[dict[str, Any]]
    # The rows for which the function was called.
    evaluated: int
    # The bytes of the inputs and the values.
    size_bytes: int


@dataclass(frozen=True)
class Part:
    """The result of one request to a worker."""

    computed: list[Computed] = field(default_factory=list)
    seconds: float = 0.0
    # The reason why the function cannot be used at all.
    failure: str | None = None


class Worker:
    """Owns one child process, in which a class has one instance."""

    def __init__(self, spec: FunctionSpec, open_version: Callable[[int], Any]) -> None:
        self._spec = spec
        self._open_version = open_version
        self._secrets: dict[str, str] = {}
        self._dataset: Any = None
        self._process: FunctionProcess | None = None
        self._environment: Environment | None = None
        # The rows of the current part that may still end their process.
        self._ended_rows_left = 0

    def receive_secrets(self, *secrets: tuple[str, str]) -> None:
        """Receives the secrets with their environment variables, before the first rows."""
        self._secrets = dict(secrets)

    def compute(self, version: int, pieces: Sequence[Piece]) -> Part:
        if self._dataset is None or self._dataset.version != version:
            self._dataset = self._open_version(version)
        try:
            return self._part_of(pieces)
        except FunctionFailure as failure:
            return Part(failure=str(failure))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        if self._environment is not None:
            self._environment.close()

    def _started(self, starts: int = 1) -> FunctionProcess:
        if self._process is None:
            try:
                self._process = self._start()
            except ProcessEnded as failure:
                if starts == ENDS_MAX:
                    raise
                print(f"{failure}\nAnother process starts.", flush=True)
                return self._started(starts + 1)
        return self._process

    def _start(self) -> FunctionProcess:
        spec = self._spec
        environment = {**_visible_gpu(), **spec.environment} if spec.gpu else spec.environment
        if spec.requirements is None:
            return FunctionProcess(spec.start, environment, secrets=self._secrets)
        if self._environment is None:
            self._environment = Environment(spec.requirements)
        python = self._environment.python
        return FunctionProcess(spec.start, environment, secrets=self._secrets, python=python)

    def _part_of(self, pieces: Sequence[Piece]) -> Part:
        rows = sum(len(piece.positions) for piece in pieces)
        self._ended_rows_left = ended_rows_max(rows)
        self._started()
        begun = time.monotonic()
        computed = [self._compute(piece) for piece in pieces]
        return Part(computed, time.monotonic() - begun)

    def _values(self, rows: Any, ends: int = 0) -> tuple[Any, list[dict[str, Any]]]:
        """Returns the values of rows and their errors, as FunctionProcess.compute.

        When a process ends, another one computes the halves of its rows, so that only the row at fault fails. A row is
        at fault that ends several processes, because others may also kill a process.
        """
        import pyarrow as pa

        process = self._started()
        try:
            return process.compute(rows)
        except ProcessEnded as failure:
            self._process = None
            print(f"{failure}\nAnother process computes these rows again.", flush=True)
            if rows.num_rows == 0:
                raise
            if rows.num_rows > 1:
                middle = rows.num_rows // 2
                first, first_errors = self._values(rows.slice(0, middle))
                second, second_errors = self._values(rows.slice(middle))
                moved = [{**each, "row": each["row"] + middle} for each in second_errors]
                return pa.concat_arrays([first, second]), first_errors + moved
            if ends + 1 < ENDS_MAX:
                return self._values(rows, ends + 1)
            self._ended_rows_left -= 1
            if self._ended_rows_left < 0:
                raise
            return pa.nulls(1, self._spec.start.field.type), [{"row": 0, "type": ENDED, "message": str(failure)}]

    def _compute(self, piece: Piece) -> Computed:
        import pyarrow as pa

        table = self._read(piece)
        addresses = table["_rowaddr"].combine_chunks()
        inputs = table.select(list(self._spec.inputs))
        called = self._called_rows(inputs)
        if called is not None:
            inputs = inputs.take(called)
        batch = pa.record_batch([each.combine_chunks() for each in inputs.columns], schema=inputs.schema)
        values, errors = self._values(batch)
        rows = list(range(table.num_rows)) if called is None else called.to_pylist()
        if called is not None:
            places = {row: place for place, row in enumerate(rows)}
            values = values.take(pa.array([places.get(row) for row in range(table.num_rows)], pa.int64()))
        return Computed(
            piece,
            addresses,
            values,
            [{**each, "row": offset_of(addresses[rows[each["row"]]].as_py())} for each in errors],
            len(rows),
            table.nbytes + values.nbytes,
        )

    def _read(self, piece: Piece) -> Any:
        columns = {**self._spec.inputs, "_rowaddr": "_rowaddr"}
        if piece.is_retry:
            return self._dataset.take(piece.positions, columns=columns)
        fragment = self._dataset.get_fragment(piece.fragment_id)
        scanner = fragment.scanner(
            columns=self._spec.inputs,
            offset=piece.positions[0],
            limit=len(piece.positions),
            with_row_address=True,
        )
        return scanner.to_table()

    def _called_rows(self, inputs: Any) -> Any:
        """Returns the positions of the rows with all required values; None if these are all rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        incomplete = [each for each in self._spec.required if inputs[each].null_count]
        if not incomplete:
            return None
        is_called = pc.is_valid(inputs[incomplete[0]])
        for name in incomplete[1:]:
            is_called = pc.and_(is_called, pc.is_valid(inputs[name]))
        return pa.array(pc.indices_nonzero(is_called).to_pylist(), pa.int64())


def _visible_gpu() -> dict[str, str]:
    """Returns the variable by which Ray assigns a GPU to its worker."""
    return {name: value for name, value in os.environ.items() if name == "CUDA_VISIBLE_DEVICES"}
