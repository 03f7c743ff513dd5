"""Backfills, compactions, index builds and clean-ups while the runner, the job, the Ray head and the catalog are killed at random.

TILTYARD_TEST_CHAOS_BACKFILLS is their number, TILTYARD_TEST_CHAOS_SEED selects the kills. With pytest's -s it prints
each backfill at its end, and all of them at the end of the test.
"""

import collections
import contextlib
import json
import os
import random
import threading
import time
from pathlib import Path

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from jobs import ROWS, backfill, describe, values, write_films
from processes import ancestors_of, drivers_of, kill_all, processes_of, ray_folders, ray_heads
from runner import Runner

BACKFILLS = int(os.environ.get("TILTYARD_TEST_CHAOS_BACKFILLS", "1"))
SEED = int(os.environ.get("TILTYARD_TEST_CHAOS_SEED", "45"))
KILLS_OF_ONE = 2
BACKFILL_SECONDS = 900
LEASE_SECONDS = "5"
# The disk space that the tables and the catalog may use for one backfill.
BYTES_OF_ONE = 20 * 2**20
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
        self.runners: list[int] = []
        self.jobs: list[str] = []
        # All Rays that have run.
        self.rays: set[Path] = set()
        self.start_runner()

    def start_runner(self) -> None:
        self.runner.start("--num-cpus", "4", "--lease-seconds", LEASE_SECONDS, "--attempts", ATTEMPTS)
        assert self.runner.process is not None
        self.runners.append(self.runner.process.pid)

    def ray_folders(self) -> list[Path]:
        found = [folder for runner in self.runners for folder in ray_folders(runner)]
        self.rays.update(found)
        return found

    def kill(self, what: str, jobs: list[str]) -> None:
        assert self.runner.process is not None
        self.ray_folders()
        match what:
            case "runner":
                self.runner.kill()
                self.start_runner()
            case "catalog":
                self.catalog.kill()
                self.catalog.start()
            case "job":
                kill_all([driver for job in jobs for driver in drivers_of(job)])
            case "ray":
                kill_all(ray_heads(self.runner.process.pid))

    def stop(self) -> None:
        self.runner.stop()
        self.catalog.stop()


@pytest.fixture
def yard(tmp_path):
    yard = Yard(tmp_path)
    yield yard
    yard.ray_folders()
    yard.stop()
    assert yard.ray_folders() == []
    assert [driver for job in yard.jobs for driver in drivers_of(job)] == []
    wait_until(lambda: not processes_of(yard.rays), lambda: f"the end of {processes_of(yard.rays)}", seconds=30)


@pytest.mark.timeout(BACKFILLS * BACKFILL_SECONDS + 120)
def test_jobs_succeed_while_anything_is_killed(yard, tmp_path):
    chance = random.Random(SEED)
    killed: collections.Counter[str] = collections.Counter()
    attempts = 0
    began = time.monotonic()
    for number in range(BACKFILLS):
        story, made = run_one(yard, number, chance)
        killed.update(story)
        attempts += made
        used = sum(file.stat().st_size for file in (tmp_path / "data").rglob("*") if file.is_file())
        assert used < (number + 1) * BYTES_OF_ONE, f"{used} bytes after {number + 1} backfills"
        assert len(yard.ray_folders()) <= 1
        # The Rays that were killed left no processes, and folders of finished processes were deleted.
        wait_until(lambda: not processes_of(yard.rays - {*yard.ray_folders()}), "the end of killed Rays")
        wait_until(lambda: len(standby_folders(yard)) <= 1, "the end of processes that waited")
    seconds = round(time.monotonic() - began)
    print(f"{BACKFILLS} backfills, {killed.total()} kills {dict(killed)}, {attempts} attempts, {seconds} s", flush=True)


def standby_folders(yard: Yard) -> list[Path]:
    return [standby for ray in yard.ray_folders() for standby in ray.glob("standby-*")]


def run_one(yard: Yard, number: int, chance: random.Random) -> tuple[list[str], int]:
    """Fills one table and looks after another one while parts are killed. Returns the killed parts and the number of
    attempts."""
    films = write_films(yard.catalog, [f"films_{number}"])
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=yard.catalog.properties)
    db.open_table(films[0]).add_columns({"length": slow_length()})
    began = time.monotonic()
    # With one applier and small checkpoints, kills occur between checkpoints.
    job = backfill(yard.catalog, films, "length", concurrency=1, max_checkpoint_size=5)
    jobs = [job, *look_after(yard.catalog, number)]
    yard.jobs += jobs
    story: list[str] = []

    def told() -> str:
        seconds = round(time.monotonic() - began)
        found = json.dumps(describe(yard.catalog, job), indent=1)
        return f"backfill {number} after {seconds} s, {story} killed: {found}\n{yard.runner.log.read_text()[-4_000:]}"

    with Watch(job) as watch:
        for _ in range(KILLS_OF_ONE):
            wait_until(lambda: drivers_of(job) or has_ended(yard.catalog, job), told, seconds=300)
            # The time of the kill is random too.
            time.sleep(chance.uniform(0, 12))
            what = chance.choice(["runner", "job", "ray", "catalog"])
            if has_ended(yard.catalog, job):
                break
            yard.kill(what, jobs)
            story.append(what)
        for each in jobs:
            wait_until(lambda each=each: has_ended(yard.catalog, each), told, seconds=BACKFILL_SECONDS)
    attempts = [describe(yard.catalog, each)["attempt"] for each in jobs]
    seconds = round(time.monotonic() - began)
    print(
        f"{number}: {', '.join(story)} killed, attempts {attempts}, {seconds} s, {watch.forks} forks seen", flush=True
    )
    for each in jobs:
        ended = describe(yard.catalog, each)
        assert (ended["status"], ended.get("reason")) == ("Succeeded", None), f"{ended}: {told()}"
    assert values(yard.catalog, films, "length") == [len(f"Film {each}") for each in range(ROWS)], told()
    assert watch.most == 1, f"{watch.most} processes at a time, {watch.at_a_time}: {told()}"
    expect_looked_after(yard.catalog, number)
    return story, sum(attempts)


def look_after(catalog: Catalog, number: int) -> list[str]:
    """Opens one job of each kind that looks after a table, each on its own table."""
    kinds = {
        "compact": {},
        "build_index": {"column": "id", "index_type": "BTREE"},
        "clean_up": {"older_than_seconds": 0},
    }
    jobs = []
    for kind, fields in kinds.items():
        table = write_films(catalog, [f"{kind}_{number}"])
        # Versions that can be cleaned up.
        dataset = lance.dataset(namespace_client=catalog.client(), table_id=table)
        dataset.add_columns({"twice": "id * 2"})
        dataset.drop_columns(["twice"])
        jobs.append(catalog.post(f"/management/v1/table/{table[0]}/{kind}", fields)["job_id"])
    return jobs


def expect_looked_after(catalog: Catalog, number: int) -> None:
    """Requires the effect of each job, all rows, and a manifest for each recorded version."""
    compacted, indexed, cleaned = (
        lance.dataset(namespace_client=catalog.client(), table_id=[f"{kind}_{number}"])
        for kind in ("compact", "build_index", "clean_up")
    )
    for dataset in (compacted, indexed, cleaned):
        titles = dataset.to_table(columns=["id", "title"]).sort_by("id")["title"].to_pylist()
        assert titles == [f"Film {each}" for each in range(ROWS)]
    assert len(compacted.get_fragments()) == 1
    assert indexed.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    assert indexed.to_table(filter="id = 17")["title"].to_pylist() == ["Film 17"]
    versions = [each["version"] for each in catalog.versions([f"clean_up_{number}"])]
    assert versions == [cleaned.version]


def has_ended(catalog, job: str) -> bool:
    return describe(catalog, job)["status"] not in ("Queued", "Running")
