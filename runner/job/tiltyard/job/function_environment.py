"""The Python environment of a Function's child, which uv creates.

All packages are wheels, so that none of their code runs before the child does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiltyard.job.function_child import FunctionFailure

# The package that the program of the child needs itself.
OWN_PACKAGE = "pyarrow"
SECONDS_MAX = 1_800.0
LINES_SHOWN = 15


@dataclass(frozen=True)
class Requirements:
    """The exact packages of one Function, which all its workers install."""

    # The name and the version of the function, for errors.
    title: str
    python_version: str
    pins: str


def resolved(title: str, python_version: str, packages: Sequence[str]) -> Requirements | None:
    """Resolves the packages of a function; None if it uses the Python of the runner. Raises FunctionFailure."""
    if not packages and python_version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return None
    what = f"the packages of {title} for Python {python_version} were not found"
    arguments = ["pip", "compile", "-", "--python", python_version, "--only-binary", ":all:"]
    pins = _uv([*arguments, "--no-header", "--no-annotate"], "\n".join([OWN_PACKAGE, *packages]), what)
    return Requirements(title, python_version, pins)


class Environment:
    """A Python with the packages of one Function in a temporary folder of the job."""

    def __init__(self, requirements: Requirements) -> None:
        """Installs the packages. Raises FunctionFailure."""
        # Ray deletes the folder of a job even if its processes were killed.
        self._folder = tempfile.TemporaryDirectory(prefix="python-", dir=Path.cwd(), ignore_cleanup_errors=True)
        self.python = os.path.join(self._folder.name, "bin", "python")
        what = f"the packages of {requirements.title} were not installed"
        try:
            _uv(["venv", "--allow-existing", "--python", requirements.python_version, self._folder.name], "", what)
            install = ["pip", "install", "--python", self.python, "--no-deps", "--only-binary", ":all:"]
            _uv([*install, "--requirements", "-"], requirements.pins, what)
        except FunctionFailure:
            self.close()
            raise

    def close(self) -> None:
        self._folder.cleanup()


def _uv(arguments: Sequence[str], text: str, what: str) -> str:
    """Runs uv with a text as its standard input. Returns its standard output. Raises FunctionFailure."""
    try:
        import uv

        program = uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        raise FunctionFailure(f"{what}: the runner's Python has no uv. Run: pip install uv") from None
    command = [program, *arguments, "--quiet", "--no-progress", "--no-python-downloads"]
    # No package needs the connection to the catalog.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
    try:
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise FunctionFailure(f"{what} within {SECONDS_MAX:g} seconds") from None
    if done.returncode != 0:
        lines = "\n".join(done.stderr.strip().splitlines()[-LINES_SHOWN:])
        raise FunctionFailure(f"{what}:\n{lines}")
    return done.stdout
