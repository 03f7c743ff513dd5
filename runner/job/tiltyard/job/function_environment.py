"""The Python environment of a Function's child, which uv creates.

All packages are wheels, so that none of their code runs before the child does.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiltyard.job.function_child import FunctionFailure
from tiltyard.job.job import Job, JobError, Report, Result

# The package that the program of the child needs itself.
OWN_PACKAGE = "pyarrow"
LINES_SHOWN = 15
# The cores that uv uses all the time at most.
CPUS_MAX = 8


@dataclass(frozen=True)
class Limits:
    """The limits of one run of uv. Packages of a GPU have about 8 GiB. Only Linux shows the memory and the bytes."""

    seconds: float = 1_800.0
    memory_bytes: int = 4 * 2**30
    written_bytes: int = 20 * 2**30
    # The time between two checks.
    pause_seconds: float = 0.2


@dataclass(frozen=True)
class Requirements:
    """The exact packages of one Function, which all its workers install."""

    # The name and the version of the function, for errors.
    title: str
    python_version: str
    pins: str


def bake(job: Job, _: Report) -> Result:
    """Installs the packages of a new version of a function once, and thereby into uv's cache. Raises JobError.

    Nothing of the environment remains: each refresh resolves the packages again.
    """
    parameters = job.parameters
    title = f"{job.table[-1]} version {parameters['version']}"
    try:
        requirements = resolved(title, parameters["python_version"], parameters["packages"])
        if requirements is None:
            return {}
        print("installing", ", ".join(requirements.pins.split()), flush=True)
        Environment(requirements).close()
    except FunctionFailure as failure:
        raise JobError(str(failure)) from None
    return {"packages": len(requirements.pins.split())}


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


def _uv(arguments: Sequence[str], text: str, what: str, limits: Limits = Limits()) -> str:
    """Runs uv with a text as its standard input. Returns its standard output. Raises FunctionFailure."""
    try:
        import uv

        program = uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        raise FunctionFailure(f"{what}: the runner's Python has no uv. Run: pip install uv") from None
    # Users of this machine could write a uv.toml into a parent of the working folder, such as /tmp.
    command = [program, *arguments, "--quiet", "--no-progress", "--no-python-downloads", "--no-config"]
    # No package needs the connection to the catalog.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
    pipe = subprocess.PIPE
    begun = time.monotonic()
    unsent: str | None = text
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, text=True) as process:
        if sys.platform == "linux":
            # This limit of all threads also holds after the end of this process.
            cpu_seconds = 1 + int(limits.seconds * CPUS_MAX)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        while True:
            try:
                printed, errors = process.communicate(unsent, limits.pause_seconds)
                break
            except subprocess.TimeoutExpired:
                unsent = None
                excess = _excess(process.pid, time.monotonic() - begun, limits)
                if excess is None:
                    continue
                process.kill()
                raise FunctionFailure(f"{what}: uv was stopped because it {excess}") from None
    if process.returncode != 0:
        lines = "\n".join(errors.strip().splitlines()[-LINES_SHOWN:]) or f"uv ended with {process.returncode}"
        raise FunctionFailure(f"{what}:\n{lines}")
    return printed


def _excess(process: int, seconds: float, limits: Limits) -> str | None:
    """Returns the limit that a process exceeds; None if it exceeds none."""
    if seconds > limits.seconds:
        return f"took longer than {limits.seconds:g} seconds"
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        io = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
    except (OSError, IndexError):
        return None
    if pages * os.sysconf("SC_PAGE_SIZE") > limits.memory_bytes:
        return f"used more than {limits.memory_bytes / 2**30:g} GiB of memory"
    if int(io["wchar"]) > limits.written_bytes:
        return f"wrote more than {limits.written_bytes / 2**30:g} GiB"
    return None
