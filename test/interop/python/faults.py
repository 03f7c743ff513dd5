"""Faults injected into a catalog's steps in its store: in files, in S3 or in Google Cloud Storage."""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from catalog import PROJECT

FINAL_MANIFEST = r"/_versions/\d{20}\.manifest(\?|$)"
STAGED_MANIFEST = r"\.manifest-"

S3_STEPS = {
    "place": ("PUT", FINAL_MANIFEST),
    "look": ("HEAD", FINAL_MANIFEST),
    "unstage": ("DELETE", STAGED_MANIFEST),
    "delete folder": ("POST", r"[?&]delete"),
}
GCS_STEPS = {
    "place": ("POST", rf"/rewriteTo/.*{FINAL_MANIFEST}"),
    "look": ("GET", FINAL_MANIFEST),
    "unstage": ("DELETE", STAGED_MANIFEST),
    "delete folder": ("DELETE", r"/o/"),
}
FILE_STEPS = {
    "place": ("linkSync", FINAL_MANIFEST),
    "look": ("lstatSync", FINAL_MANIFEST),
    "unstage": ("unlink", STAGED_MANIFEST),
    "delete folder": ("rm", r""),
}


class Faults:
    """
    The faults of a catalog's steps: `refused` (the store does not receive it), `failed` (the store says that it
    failed), `answerLost` (the store did it), `hangs`. The steps: `place` (the manifest gets its final name), `look`
    (whether one exists), `unstage` (the staged manifest is deleted), `delete folder`.
    """

    def inject(self, fault: str, step: str) -> None:
        """Sets the fault of a step."""
        raise NotImplementedError

    def lift(self) -> int:
        """Removes the rule. Returns the number of steps that failed under the last rule."""
        raise NotImplementedError

    def count(self) -> int:
        """Returns the number of steps that failed under the rule."""
        raise NotImplementedError


class FaultyProxy(Faults):
    """A proxy that injects faults into requests: test/support/faulty-proxy.ts."""

    def __init__(self, program: subprocess.Popen, steps: dict[str, tuple[str, str]]):
        self.program = program
        self.steps = steps
        self.url = self._read()

    def inject(self, fault: str, step: str) -> None:
        method, path = self.steps[step]
        self._tell({"rule": {"fault": fault, "method": method, "path": path}})

    def lift(self) -> int:
        return self._tell({"rule": None})

    def count(self) -> int:
        return self._tell({})

    def _tell(self, command: dict) -> int:
        assert self.program.stdin is not None
        print(json.dumps(command), file=self.program.stdin, flush=True)
        return int(self._read())

    def _read(self) -> str:
        assert self.program.stdout is not None
        line = self.program.stdout.readline().strip()
        assert line, "the proxy ended"
        return line


@contextlib.contextmanager
def faulty_proxy(url: str, steps: dict[str, tuple[str, str]]):
    """Runs a proxy in front of a server until the end of the block."""
    program = [os.environ["TILTYARD_TEST_NODE"], str(PROJECT / "test/support/faulty-proxy-program.ts"), url]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        # The proxy exits with its standard input.
        yield FaultyProxy(running, steps)


@dataclass
class FaultyFiles(Faults):
    """A file system whose calls fail: test/support/faulty-files.ts."""

    folder: Path
    """Returns the environment that passes the rule to the catalog's process."""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._put(None)

    @property
    def environment(self) -> dict[str, str]:
        module = (PROJECT / "test/support/faulty-files.ts").as_uri()
        return {"NODE_OPTIONS": f"--import {module}", "FAULTY_FILES_DIR": str(self.folder)}

    def inject(self, fault: str, step: str) -> None:
        call, path = FILE_STEPS[step]
        self._put({"fault": fault, "call": call, "path": path})

    def lift(self) -> int:
        struck = self.count()
        self._put(None)
        return struck

    def count(self) -> int:
        return len((self.folder / "struck").read_text())

    def _put(self, rule: dict | None) -> None:
        """Replaces the rule atomically by a rename and resets the count."""
        (self.folder / "struck").write_text("")
        fresh = self.folder / "rule.new"
        fresh.write_text(json.dumps(rule))
        fresh.rename(self.folder / "rule")
