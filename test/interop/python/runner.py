"""The runner as a process, as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path

from catalog import PROJECT, wait_until
from jobs import describe

JOB_SECONDS = 600


class Runner:
    """`tiltyard runner --local`, as a user starts it."""

    def __init__(
        self, catalog, log: Path, environment: dict[str, str] | None = None, url: str | None = None
    ) -> None:
        """Its environment is also that of its Ray. It calls the catalog at the URL, which is that of a proxy if given."""
        self.catalog = catalog
        self.url = url or catalog.url
        self.log = log
        self.environment = environment or {}
        self.process: subprocess.Popen | None = None

    def start(self, *options: str) -> "Runner":
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [os.environ["TILTYARD_TEST_NODE"], "client/main.ts", "runner", "--local", "--num-cpus", "3", *options],
                cwd=PROJECT,
                env={
                    **inherited,
                    **self.environment,
                    "PATH": path,
                    "TILTYARD_CATALOG_URL": self.url,
                    "TILTYARD_API_KEY": self.catalog.key,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_) -> None:
        self.kill()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0, self.log.read_text()


def ended(catalog, runner, job: str) -> dict:
    """Waits for the end of a job."""

    def is_final():
        assert runner.process.poll() is None, runner.log.read_text()
        return describe(catalog, job)["status"] not in ("Queued", "Running")

    wait_until(is_final, f"the end of the job {job}", seconds=JOB_SECONDS)
    return describe(catalog, job)
