"""A way to a server on which requests come to grief: test/support/faulty-proxy.ts."""

import contextlib
import json
import os
import subprocess

from catalog import PROJECT


class FaultyProxy:
    """
    Counts what comes to grief. The faults: `refused` (the server never hears of it), `failed` (it is answered 500, and the
    server never hears of it), `answerLost`, `hangs`.
    """

    def __init__(self, program: subprocess.Popen):
        self.program = program
        self.url = self._read()

    def befall(self, fault: str, method: str, path: str) -> None:
        """What befalls the requests of a method whose path matches a regular expression, from now on."""
        self._tell({"rule": {"fault": fault, "method": method, "path": path}})

    def lift(self) -> int:
        """From now on all goes well. Returns how many requests came to grief under the last rule."""
        return self._tell({"rule": None})

    def count(self) -> int:
        """How many requests have come to grief under the rule."""
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
def faulty_proxy(url: str):
    """A proxy in front of a server, until the end of the block."""
    program = [os.environ["TILTYARD_TEST_NODE"], str(PROJECT / "test/support/faulty-proxy-program.ts"), url]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        # It ends with its standard input.
        yield FaultyProxy(running)
