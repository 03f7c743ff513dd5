"""The last lines of a job's output, which the catalog shows to users without access to Ray."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import deque
from typing import TextIO

LINES = 40
LENGTH_MAX = 4_000
# Colors and other commands to a terminal.
CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Warnings that each worker of Geneva, or each of its commits, prints.
NOISE = re.compile(
    r"Table does not implement \d+ member\(s\) required by the installed lancedb"
    r"|\bBuilding manifest with DataReplacement operation\b"
)
# Variables of this process alone. The catalog shows the progress, so that Geneva's bars are no output of the job. Ray
# prints the errors of references that a failed job has left, in addition to its own error.
QUIET = {"TQDM_DISABLE": "1", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}


def quiet() -> None:
    """Silences packages that this process imports later."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


class LogTail:
    """Stores the last lines of standard output and standard error without secrets."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._lines: deque[str] = deque(maxlen=LINES)
        self._begun = ""

    def install(self) -> None:
        """Captures the further output of this process, to which Ray also prints the output of its workers."""
        sys.stdout = _Tee(sys.stdout, self)
        sys.stderr = _Tee(sys.stderr, self)

    def add(self, text: str) -> None:
        *lines, begun = (self._begun + text).split("\n")
        # Progress bars print many blank lines, which would displace the error of the job.
        shown = (self._masked(_shown(line)) for line in lines)
        self._lines.extend(line for line in shown if line.strip() and not NOISE.search(line))
        # A progress bar rewrites one line repeatedly and ends it only at the end.
        self._begun = begun if len(begun) <= LENGTH_MAX else self._masked(_shown(begun))

    def text(self) -> str:
        kept = [*self._lines, _shown(self._begun)] if self._begun else list(self._lines)
        return self._masked("\n".join(kept))

    def _masked(self, text: str) -> str:
        return text.replace(self._secret, "***")[-LENGTH_MAX:]


def _shown(line: str) -> str:
    """Returns the visible text of a rewritten line in a terminal, without colors."""
    return CONTROL.sub("", line.rstrip("\r").rsplit("\r", 1)[-1])


class _Tee:
    """A stream that also passes its text to a log tail.

    Its own errors, such as that of a full disk, are ignored: a job must neither fail for its output nor keep running.
    """

    def __init__(self, stream: TextIO, tail: LogTail) -> None:
        self._stream = stream
        self._tail = tail

    def write(self, text: str) -> int:
        self._tail.add(text)
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
