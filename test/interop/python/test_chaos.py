"""Backfills while the runner, the job, the Ray head and the catalog are killed at random.

TILTYARD_TEST_CHAOS_BACKFILLS is their number, TILTYARD_TEST_CHAOS_SEED selects the kills. With pytest's -s it prints
each backfill at its end, and all of them at the end of the test.
"""

import collections
import contextlib
import json
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
from processes import drivers_of, processes
from runner import Runner

BACKFILLS = int(os.environ.get("TILTYARD_TEST_CHAOS_BACKFILLS", "1"))
SEED = int(os.environ.get("TILTYARD_TEST_CHAOS_SEED", "45"))
KILLS_OF_ONE = 2
BACKFILL_SECONDS = 300
LEASE_SECONDS = "5"
# The number of attempts, because none of these kills is the fault of the job.
ATTEMPTS = "50"


def slow_length():
    @geneva.udf(data_type=pa.int64())
    def length(title: str) -> int:
        import time

        time.sleep(0.2)
        return len(title)

    return length


def described(pid: int) -> str:
    with contextlib.suppress(OSError):
        return f"{pid} of {ancestors_of(pid)}: {Path(f'/proc/{pid}/cmdline').read_text().replace(chr(0), ' ')}"
    return f"{pid}, gone"


class Watch:
    """Counts continuously how many processes run a job at the same time.

    A forked child has the same arguments until it executes another program, and does not count. A process that exits
    before its ancestors are read was such a child, because a run that is not killed lasts longer than one pass.
    """

    def __init__(self, job: str) -> None:
        self.most = 0
        # The processes that ran at the same time.
        self.at_a_time: list[str] = []
        self.forks = 0
        self._job = job
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            found = {each: ancestors_of(each) for each in drivers_of(self._job)}
            own = [each for each, ancestors in found.items() if ancestors and not found.keys() & set(ancestors)]
            self.forks += len(found) - len(own)
            if len(own) > self.most:
                self.most, self.at_a_time = len(own), [described(each) for each in own]

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()


class Yard:
    """A catalog and its runner, whose parts are killed and restarted unless another part restarts them."""

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
        """Returns the Ray heads of this runner only, because others may run on this machine."""
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
            # The name of the program is in parentheses and may contain any characters.
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
    killed: collections.Counter[str] = collections.Counter()
    attempts = 0
    began = time.monotonic()
    for number in range(BACKFILLS):
        story, made = run_one(yard, number, chance)
        killed.update(story)
        attempts += made
    seconds = round(time.monotonic() - began)
    print(f"{BACKFILLS} backfills, {killed.total()} kills {dict(killed)}, {attempts} attempts, {seconds} s", flush=True)


def run_one(yard: Yard, number: int, chance: random.Random) -> tuple[list[str], int]:
    """Fills one table while parts are killed. Returns the killed parts and the number of the job's attempts."""
    films = write_films(yard.catalog, [f"films_{number}"])
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=yard.catalog.properties)
    db.open_table(films[0]).add_columns({"length": slow_length()})
    began = time.monotonic()
    # With one applier and small checkpoints, kills occur between checkpoints.
    job = backfill(yard.catalog, films, "length", concurrency=1, max_checkpoint_size=5)
    story: list[str] = []

    def told() -> str:
        seconds = round(time.monotonic() - began)
        found = json.dumps(describe(yard.catalog, job), indent=1)
        return f"backfill {number} after {seconds} s, {story} killed: {found}\n{yard.runner.log.read_text()[-4_000:]}"

    with Watch(job) as watch:
        for _ in range(KILLS_OF_ONE):
            wait_until(lambda: drivers_of(job) or has_ended(yard.catalog, job), told, seconds=120)
            # The time of the kill is random too.
            time.sleep(chance.uniform(0, 12))
            what = chance.choice(["runner", "job", "ray", "catalog"])
            if has_ended(yard.catalog, job):
                break
            yard.kill(what, job)
            story.append(what)
        wait_until(lambda: has_ended(yard.catalog, job), told, seconds=BACKFILL_SECONDS)
    found = describe(yard.catalog, job)
    attempt = found["attempt"]
    seconds = round(time.monotonic() - began)
    print(f"{number}: {', '.join(story)} killed, attempt {attempt}, {seconds} s, {watch.forks} forks seen", flush=True)
    assert (found["status"], found.get("reason")) == ("Succeeded", None), told()
    assert values(yard.catalog, films, "length") == [len(f"Film {each}") for each in range(ROWS)], told()
    assert watch.most == 1, f"{watch.most} processes at a time, {watch.at_a_time}: {told()}"
    return story, attempt


def has_ended(catalog, job: str) -> bool:
    return describe(catalog, job)["status"] not in ("Queued", "Running")
