"""The program of a child process that calls one function for a job. It needs only Python and pyarrow.

The job runs this file with `python -I` in an empty folder. Requests arrive on standard input and answers leave on
standard output, as frames: one byte with the kind, eight with the length, and the payload. The function itself gets
neither: it reads an empty input, and its output is the standard error of this process.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import importlib
import json
import os
import re
import resource
import select
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

HEADER = struct.Struct(">cQ")
FRAME_BYTES_MAX = 2**30
# The kinds of frames: of the job, and of this program.
START, CALL, END = b"S", b"C", b"E"
READY, VALUES, FAILED = b"R", b"V", b"F"

# The name of the module, which clients reserve.
MODULE = "user_function"
# A column of the answer for each row that was not computed: its kind of error and the text.
ERRORS = b"errors"
MESSAGE_LENGTH_MAX = 4_000
# The largest number of rows of one call with arrays.
CALL_ROWS_MAX = 1_024
SHOWN_LENGTH_MAX = 100
# Options of Linux's prctl.
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
# The kind of the error of a row whose value must not be null.
NULL_ERROR = "builtins.ValueError"

# Shorter secrets are not redacted, because they also occur in other texts.
REDACTED_LENGTH_MIN = 4

Style = Literal["row", "arrays", "batch"]


class FunctionFailure(Exception):
    """The function cannot be used at all. Its text is a sentence for the user."""


@dataclass(frozen=True)
class Start:
    """The first request: a function and its instance."""

    # The name and the version, for errors.
    title: str
    entrypoint: str
    # The source files by path. That of the function is MODULE.
    files: dict[str, str]
    parameters: list[str]
    # Arguments of a class.
    initialization: dict[str, Any]
    # An Arrow schema with one field: the type of a value.
    output: str
    # The environment variables with secrets.
    secrets: Sequence[str] = ()

    @property
    def field(self) -> Any:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.output))).field(0)

    @property
    def redaction(self) -> Redaction:
        return Redaction(os.environ[each] for each in self.secrets)


class Redaction:
    """Replaces secrets in texts: values, their single lines, and values in Base64 or escaped like in Python or JSON."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form for secret in secrets for form in _forms_of(secret) if len(form) >= REDACTED_LENGTH_MIN}
        forms = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None
        self._length_max = len(forms[0]) if forms else 1

    def of(self, text: str) -> str:
        return self._pattern.sub("***", text) if self._pattern else text

    def split(self, text: str) -> tuple[str, str]:
        """Returns a redacted text and its end, which may be the beginning of a secret."""
        redacted = self.of(text)
        end = max(0, len(redacted) - self._length_max + 1)
        return redacted[:end], redacted[end:]


def _forms_of(secret: str) -> list[str]:
    encoded = [function(secret.encode()).decode() for function in (base64.b64encode, base64.urlsafe_b64encode)]
    escaped = [repr(secret)[1:-1], json.dumps(secret)[1:-1]]
    return [secret, *(line.strip() for line in secret.splitlines()), *(each.rstrip("=") for each in encoded), *escaped]


class Function:
    """A loaded function, or an instance of a class."""

    def __init__(self, start: Start) -> None:
        self._title = start.title
        self._redaction = start.redaction
        self._parameters = start.parameters
        self._field = start.field
        found = _loaded(start)
        if isinstance(found, type):
            self._call = self._instance_of(found, start.initialization)
            self.style = _style_of(found.__call__, start)
        else:
            self._call = found
            self.style = _style_of(found, start)

    def _instance_of(self, kind: type, initialization: dict[str, Any]) -> Callable[..., Any]:
        # A null stands for the default of the parameter.
        arguments = {name: value for name, value in initialization.items() if value is not None}
        try:
            instance: Callable[..., Any] = kind(**arguments)
        except Exception as error:
            traceback.print_exc()
            raise FunctionFailure(f"__init__ of {self._title} failed: {_shown(error, self._redaction)}") from None
        return instance

    def compute(self, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Returns an array of values, and the errors of the rows whose value is null. Raises FunctionFailure."""
        return self._compute_rows(rows) if self.style == "row" else self._compute_arrays(rows)

    def close(self) -> None:
        close = getattr(self._call, "close", None)
        if callable(close):
            close()

    def _compute_rows(self, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
        columns = [column.to_pylist() for column in rows.columns]
        names, call = self._parameters, self._call
        values: list[Any] = []
        errors: list[dict[str, Any]] = []
        for offset, row in enumerate(zip(*columns, strict=True)):
            try:
                value = call(**dict(zip(names, row, strict=True)))
            except Exception as error:
                value = None
                errors.append({"row": offset, **_error_of(error, self._redaction)})
            else:
                if missing := self._missing_in(value):
                    value = None
                    errors.append({"row": offset, "type": NULL_ERROR, "message": missing})
            values.append(value)
        return self._array_of(values), errors

    def _missing_in(self, value: Any) -> str | None:
        """Returns the error of a value that is null, or that has a field without a value. Raises FunctionFailure."""
        if value is None:
            return None if self._field.nullable else f"{self._title} returned None"
        kind = self._field.type
        if not pa.types.is_struct(kind):
            return None
        if not isinstance(value, dict):
            raise FunctionFailure(self._wrong(value))
        fields = {kind.field(number).name: kind.field(number) for number in range(kind.num_fields)}
        if unknown := [name for name in value if name not in fields]:
            raise FunctionFailure(f"{self._title} returned the field {unknown[0]!r}, which its output does not declare")
        missing = [name for name, each in fields.items() if value.get(name) is None and not each.nullable]
        return f"{self._title} returned no value for the field {missing[0]!r}" if missing else None

    def _array_of(self, values: list[Any]) -> Any:
        kind = self._field.type
        try:
            array = pa.array(values, kind)
        except Exception:
            wrong = [each for each in values if not _fits(each, kind)]
            raise FunctionFailure(self._wrong(wrong[0] if wrong else values)) from None
        if isinstance(array, pa.ChunkedArray):
            raise FunctionFailure(f"{self._title} returned more than 2 GiB for {len(values)} rows")
        return array

    def _wrong(self, value: Any) -> str:
        shown = f"{self._redaction.of(repr(value))[:SHOWN_LENGTH_MAX]} of the type {type(value).__name__}"
        return f"{self._title} returned {shown}, and its output is {self._field.type}"

    def _compute_arrays(self, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
        chunks = []
        errors: list[dict[str, Any]] = []
        for start in range(0, rows.num_rows, CALL_ROWS_MAX):
            part = rows.slice(start, CALL_ROWS_MAX)
            try:
                returned = self._call_with(part)
            except Exception as error:
                chunks.append(pa.nulls(part.num_rows, self._field.type))
                told = _error_of(error, self._redaction)
                errors += [{"row": start + offset, **told} for offset in range(part.num_rows)]
                continue
            chunks.append(self._checked(returned, part.num_rows))
            if not self._field.nullable and chunks[-1].null_count:
                told = {"type": NULL_ERROR, "message": f"{self._title} returned a null"}
                missing = chunks[-1].is_null().to_pylist()
                errors += [{"row": start + offset, **told} for offset, is_null in enumerate(missing) if is_null]
        return pa.concat_arrays(chunks) if chunks else pa.array([], self._field.type), errors

    def _call_with(self, part: Any) -> Any:
        if self.style == "batch":
            return self._call(part)
        return self._call(**dict(zip(self._parameters, part.columns, strict=True)))

    def _checked(self, returned: Any, count: int) -> Any:
        kind = self._field.type
        array = _as_array(returned, kind)
        if array is None:
            raise FunctionFailure(self._wrong(returned))
        if len(array) != count:
            raise FunctionFailure(f"{self._title} returned {len(array)} values for {count} rows")
        if array.type.equals(kind):
            return array
        refused = FunctionFailure(f"{self._title} returned values of the type {array.type}, and its output is {kind}")
        # A cast would also parse texts.
        if not pa.types.is_null(array.type) and _is_text(array.type) != _is_text(kind):
            raise refused
        try:
            return array.cast(kind)
        except pa.ArrowException:
            raise refused from None


def _loaded(start: Start) -> Any:
    for path, text in start.files.items():
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(MODULE), start.entrypoint)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise FunctionFailure(
            f"the source of {start.title} cannot be loaded: {_shown(error, start.redaction)}"
        ) from None


def _style_of(function: Any, start: Start) -> Style:
    """Reads the kind of calls from the annotations, as text, because the source does not import all of their names."""
    annotations = getattr(function, "__annotations__", {})
    kinds = {_last_name(annotations.get(parameter, "")) for parameter in start.parameters}
    if kinds == {"RecordBatch"} and len(start.parameters) == 1:
        return "batch"
    if kinds == {"Array"}:
        return "arrays"
    if kinds & {"RecordBatch", "Array"}:
        raise FunctionFailure(f"{start.title} mixes parameters of rows and of arrays")
    return "row"


def _last_name(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    # Under postponed evaluation, an annotation that is text itself keeps its quotes.
    return text.strip().strip("'\"").rsplit(".", 1)[-1]


def _as_array(returned: Any, kind: Any) -> Any:
    if isinstance(returned, pa.ChunkedArray):
        return returned.combine_chunks()
    if isinstance(returned, pa.RecordBatch) and pa.types.is_struct(kind):
        return returned.to_struct_array()
    return returned if isinstance(returned, pa.Array) else None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _fits(value: Any, kind: Any) -> bool:
    try:
        pa.array([value], kind)
    except Exception:
        return False
    return True


def _error_of(error: BaseException, redaction: Redaction) -> dict[str, str]:
    kind = type(error)
    # A truncated secret would not be found any more.
    message = redaction.of(_text_of(error).encode("utf-8", "backslashreplace").decode())
    return {"type": f"{kind.__module__}.{kind.__qualname__}", "message": message[:MESSAGE_LENGTH_MAX]}


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its text cannot be shown"


def _shown(error: BaseException, redaction: Redaction) -> str:
    return f"{type(error).__name__}: {_error_of(error, redaction)['message']}"


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Returns the kind and the payload. Raises EOFError at the end, ValueError for other bytes than a frame."""
    kind, length = HEADER.unpack(_exactly(stream, HEADER.size))
    if kind not in (START, CALL, END, READY, VALUES, FAILED) or length > FRAME_BYTES_MAX:
        raise ValueError(f"these bytes are no frame: {kind!r} and {length} bytes")
    return kind, _exactly(stream, length)


def write_frame(stream: BinaryIO, kind: bytes, payload: bytes) -> None:
    if len(payload) > FRAME_BYTES_MAX:
        raise ValueError(f"{len(payload)} bytes are more than the {FRAME_BYTES_MAX} of a frame")
    stream.write(HEADER.pack(kind, len(payload)))
    stream.write(payload)
    stream.flush()


def _exactly(stream: BinaryIO, length: int) -> bytes:
    read = stream.read(length)
    if len(read) < length:
        raise EOFError("the stream ended")
    return read


def as_bytes(batch: Any) -> bytes:
    """Returns an Arrow stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def as_batch(payload: bytes) -> Any:
    return pa.ipc.open_stream(payload).read_next_batch()


def _answer(function: Function, payload: bytes) -> bytes:
    values, errors = function.compute(as_batch(payload))
    schema = pa.schema([pa.field("value", values.type)], {ERRORS: json.dumps(errors).encode()})
    return as_bytes(pa.record_batch([values], schema))


def _end_with(parent: int) -> None:
    """Ends this process and its children as soon as the job has closed its end of the pipe."""
    poll = select.poll()
    poll.register(parent, 0)
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Returns the pipes of the job, which neither the function nor its programs get."""
    requests, answers = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    os.dup2(2, 1)
    cast(TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)
    return os.fdopen(requests, "rb"), os.fdopen(answers, "wb")


def _confine() -> None:
    """Prevents this process and its programs from gaining privileges, for example by sudo, and from writing their
    memory, which contains secrets, to a file. Other processes of a user that is not root cannot read the environment
    of this one. Without memory, Linux ends them first."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def main() -> None:
    requests, answers = _take_pipes()
    _confine()
    threading.Thread(target=_end_with, args=(requests.fileno(),), daemon=True).start()
    _, payload = read_frame(requests)
    try:
        function = Function(Start(**json.loads(payload)))
        write_frame(answers, READY, b"")
        while True:
            kind, payload = read_frame(requests)
            if kind == END:
                return function.close()
            write_frame(answers, VALUES, _answer(function, payload))
    except FunctionFailure as failure:
        write_frame(answers, FAILED, str(failure).encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
