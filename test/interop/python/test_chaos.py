"""Backfills while the runner, the job, the Ray head and the catalog are killed at random.

TILTYARD_TEST_CHAOS_BACKFILLS says how many, TILTYARD_TEST_CHAOS_SEED which kills.
"""

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import geneva
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from jobs import ROWS, backfill, describe, values, write_films
from runner import Runner

BACKFILLS = int(os.environ.get("TILTYARD_TEST_CHAOS_BACKFILLS", "2"))
SEED = int(os.environ.get("TILTYARD_TEST_CHAOS_SEED", "17"))
KILLS_OF_ONE = 2
BACKFILL_SECONDS = 300
LEASE_SECONDS = "5"
# None of these kills is the job's own fault.
ATTEMPTS = "50"


def slow_length():
    @geneva.udf(data_type=pa.int64())
    def length(title: str) -> int:
        import time

        time.sleep(0.1)
        return len(title)

    return length


def processes(is_meant) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if is_meant(process.joinpath("cmdline").read_text().split("\0")):
                found.append(int(process.name))
    return found


def drivers_of(job: str) -> list[int]:
    return processes(lambda arguments: arguments[1:4] == ["-m", "tiltyard.job", job])


class Watch:
    """Counts how many processes run a job at a time, all the while."""

    def __init__(self, job: str) -> None:
        self.most = 0
        self._job = job
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            self.most = max(self.most, len(drivers_of(self._job)))

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()


class Yard:
    """A catalog and its runner, whose parts are killed and, where nothing else does, started again."""

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog(folder / "data").start()
        self.runner = Runner(self.catalog, folder / "runner.log")
        self.start_runner()

    def start_runner(self) -> None:
        self.runner.start("--lease-seconds", LEASE_SECONDS, "--attempts", ATTEMPTS)

    def kill(self, what: str, job: str) -> None:
        match what:
            case "runner":
                self.runner.kill()
                self.start_runner()
            case "catalog":
                self.catalog.kill()
                self.catalog.start()
            case "job":
                self._kill_all(drivers_of(job))
            case "ray":
                self._kill_all(self._ray_heads())

    def _ray_heads(self) -> list[int]:
        """Of this runner: others may run on this machine."""
        assert self.runner.process is not None
        ours = self.runner.process.pid
        heads = processes(lambda arguments: arguments[0].endswith("/gcs_server"))
        return [head for head in heads if ours in ancestors_of(head)]

    def stop(self) -> None:
        self.runner.stop()
        self.catalog.stop()

    @staticmethod
    def _kill_all(pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def ancestors_of(pid: int) -> list[int]:
    found = []
    while pid > 1:
        try:
            # The name of the program is in parentheses and may have any characters.
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


@pytest.fixture
def yard(tmp_path):
    yard = Yard(tmp_path)
    yield yard
    yard.stop()


@pytest.mark.timeout(BACKFILLS * BACKFILL_SECONDS + 120)
def test_backfills_succeed_while_anything_is_killed(yard):
    chance = random.Random(SEED)
    for number in range(BACKFILLS):
        films = write_films(yard.catalog, [f"films_{number}"])
        db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=yard.catalog.properties)
        db.open_table(films[0]).add_columns({"length": slow_length()})
        job = backfill(yard.catalog, films, "length")
        kills = [chance.choice(["runner", "job", "ray", "catalog"]) for _ in range(KILLS_OF_ONE)]
        with Watch(job) as watch:
            for kill in kills:
                wait_until(lambda: drivers_of(job) or has_ended(yard.catalog, job), "a process of the job", seconds=120)
                # When it happens is left to chance, too.
                time.sleep(chance.uniform(0, 6))
                yard.kill(kill, job)
            wait_until(lambda: has_ended(yard.catalog, job), "the end of the job", seconds=BACKFILL_SECONDS)
        properties = describe(yard.catalog, job)["properties"]
        told = f"backfill {number}, {kills}: {yard.runner.log.read_text()[-2_000:]}"
        attempts = [name for name in properties if name.startswith("attempt.")]
        print(f"backfill {number}: {', '.join(kills)} killed, {attempts}", flush=True)
        assert (describe(yard.catalog, job)["status"], properties.get("reason")) == ("Succeeded", None), told
        assert values(yard.catalog, films, "length") == [len(f"Film {each}") for each in range(ROWS)], told
        assert watch.most == 1, told


def has_ended(catalog, job: str) -> bool:
    return describe(catalog, job)["status"] not in ("Queued", "Running")
