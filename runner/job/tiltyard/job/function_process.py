"""The child process of a function from the perspective of a job's worker."""

from __future__ import annotations

import base64
import codecs
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, BinaryIO, cast

from tiltyard.job import function_child as child

# The time to load a module and its models. Calls have no limit except the timeout of the job.
START_SECONDS_MAX = 1_800.0
END_SECONDS_MAX = 10.0
STDERR_LINES = 10
LINE_LENGTH_MAX = 1_000
# The bytes of the rows of one request, much less than those of a frame.
REQUEST_BYTES = 2**26


class ProcessEnded(child.FunctionFailure):
    """The child ended while it started or computed, for example because the memory was exhausted."""


class FunctionProcess:
    """Starts the child and calls its function. Raises child.FunctionFailure when it cannot answer, and ProcessEnded
    if another process of it may do so.

    The child gets no environment except the function's own, no open files except its pipes, and an own session, which
    is killed as a whole.
    """

    def __init__(
        self,
        start: child.Start,
        environment: Mapping[str, str],
        start_seconds_max: float = START_SECONDS_MAX,
        secrets: Mapping[str, str] = MappingProxyType({}),
        python: str = sys.executable,
    ) -> None:
        self._title = start.title
        self._redaction = child.Redaction(secrets.values())
        # Ray deletes the folder of a job even if its processes were killed.
        self._folder = tempfile.TemporaryDirectory(prefix="function-", dir=os.getcwd(), ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [python, "-I", os.path.abspath(child.__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder.name,
            env={**environment, **secrets},
            start_new_session=True,
        )
        self._closed = False
        self._lines: deque[str] = deque(maxlen=STDERR_LINES)
        self._printer = threading.Thread(target=self._print, daemon=True)
        self._printer.start()
        request = {**asdict(start), "secrets": list(secrets)}
        # A child that does not start in time is killed, which ends the read.
        timer = threading.Timer(start_seconds_max, self._kill_group)
        timer.daemon = True
        timer.start()
        begun = time.monotonic()
        try:
            self._request(child.START, json.dumps(request).encode(), child.READY)
        except ProcessEnded:
            if time.monotonic() - begun < start_seconds_max:
                raise
            raise self._broken(f"did not start within {start_seconds_max:g} seconds") from None
        finally:
            timer.cancel()

    def compute(self, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Returns an array with a value for each row of a batch, and the errors with the positions of their rows."""
        import pyarrow as pa

        step = max(1, rows.num_rows * REQUEST_BYTES // max(1, rows.nbytes))
        arrays = []
        errors: list[dict[str, Any]] = []
        for first in range(0, max(1, rows.num_rows), step):
            part = rows.slice(first, step)
            payload = child.as_bytes(part)
            answer = self._request(child.CALL, payload, child.VALUES)
            try:
                batch = child.as_batch(answer)
                found = json.loads(batch.schema.metadata[child.ERRORS])
                errors += [self._row_error(first, **each) for each in found]
            except Exception:
                raise self._broken("answered with other bytes than values") from None
            if batch.num_rows != part.num_rows:
                raise self._broken(f"answered {batch.num_rows} values for {part.num_rows} rows")
            arrays.append(batch.column(0))
        return pa.concat_arrays(arrays), errors

    def _row_error(self, first: int, row: int, type: str, message: str) -> dict[str, Any]:
        redacted = self._redaction.of
        return {"row": first + row, "type": redacted(type), "message": redacted(message)}

    def close(self) -> None:
        """Lets an instance close itself, and ends the child with all its own children."""
        if self._closed:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            child.write_frame(self._requests, child.END, b"")
            self._process.wait(END_SECONDS_MAX)
        self._kill()

    @property
    def _requests(self) -> BinaryIO:
        return cast(BinaryIO, self._process.stdin)

    def _request(self, kind: bytes, payload: bytes, expected: bytes) -> bytes:
        try:
            child.write_frame(self._requests, kind, payload)
            answered, answer = child.read_frame(cast(BinaryIO, self._process.stdout))
        except ValueError as error:
            raise self._broken(f"broke its pipe: {error}") from None
        except (EOFError, OSError):
            raise self._ended() from None
        if answered == child.FAILED:
            self._kill()
            raise child.FunctionFailure(self._redaction.of(answer.decode()))
        if answered != expected:
            raise self._broken(f"answered {answered!r} instead of {expected!r}")
        return answer

    def _ended(self) -> child.FunctionFailure:
        try:
            code = self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return self._broken("closed its pipe")
        if code >= 0:
            return self._broken(f"exited with code {code}", ProcessEnded)
        hint = ": is the memory of the worker exhausted?" if code == -signal.SIGKILL else ""
        return self._broken(f"was killed by the signal {signal.Signals(-code).name}{hint}", ProcessEnded)

    def _broken(self, what: str, kind: type[child.FunctionFailure] = child.FunctionFailure) -> child.FunctionFailure:
        self._kill()
        lines = "\n".join(self._lines)
        return kind(f"the process of {self._title} {what}" + (f"\n{lines}" if lines else ""))

    def _kill(self) -> None:
        self._closed = True
        self._kill_group()
        self._process.wait()
        # Programs of the function may have left the session and still hold the pipe.
        self._printer.join(1)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._folder.cleanup()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _print(self) -> None:
        """Prints the output of the function, which Ray passes to the log of the job."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        begun = ""
        with cast(BinaryIO, self._process.stderr) as stream:
            while part := stream.readline(LINE_LENGTH_MAX):
                line = begun + decoder.decode(part)
                # The end of an incomplete line may be the beginning of a secret.
                line, begun = (line, "") if line.endswith("\n") else self._redaction.split(line)
                self._show(line)
        self._show(begun)

    def _show(self, line: str) -> None:
        if line:
            text = self._redaction.of(line).rstrip("\n")
            self._lines.append(text)
            # A function must not wait for its output, which no other thread reads, because the disk of the log is full.
            with contextlib.suppress(OSError):
                print(text, flush=True)


def schema_text(schema: Any) -> str:
    """Returns an Arrow schema as text, for the start of a child."""
    return base64.b64encode(schema.serialize()).decode()
