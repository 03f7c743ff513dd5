"""Backfills, compactions, index builds and clean-ups while each part is killed, and connections are reset, at random.

TILTYARD_TEST_CHAOS_BACKFILLS is their number, TILTYARD_TEST_CHAOS_SEED selects the faults. No backfill begins after
TILTYARD_TEST_CHAOS_SECONDS. With pytest's -s it prints each backfill at its end, and all of them at the end.
"""

import collections
import contextlib
import json
import os
import random
import threading
import time
from pathlib import Path

import lance
import pytest
from calls import ROWS, Calls, write_counted
from catalog import Catalog, wait_until
from jobs import ROWS as FILMS
from jobs import backfill, describe, values, write_films
from processes import (
    ancestors_of,
    busy_workers,
    descendants_of,
    drivers_of,
    kill_all,
    processes_of,
    ray_agents,
    ray_folders,
    ray_heads,
    raylets,
)
from resetting_proxy import ResettingProxy
from runner import Runner

BACKFILLS = int(os.environ.get("TILTYARD_TEST_CHAOS_BACKFILLS", "1"))
SEED = int(os.environ.get("TILTYARD_TEST_CHAOS_SEED", "53"))
FAULTS = ("driver", "worker", "agent", "raylet", "gcs", "all of Ray", "runner", "catalog", "connections")
FAULTS_OF_ONE = 2
# The probability that a piece of data is the last one of its connection, next to the faults above.
RESET_PROBABILITY = 0.002
# The share of the rows of all backfills that may be computed again.
RECOMPUTED_MAX = 0.1
BACKFILL_SECONDS = 900
SECONDS = int(os.environ.get("TILTYARD_TEST_CHAOS_SECONDS", str(BACKFILLS * BACKFILL_SECONDS)))
LEASE_SECONDS = "10"
# The disk space that the tables and the catalog may use for one backfill.
BYTES_OF_ONE = 20 * 2**20
# The number of attempts, because none of these faults is the fault of the job.
ATTEMPTS = "50"


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
        self._job = job
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            found = {each: ancestors_of(each) for each in drivers_of(self._job)}
            own = [each for each, ancestors in found.items() if ancestors and not found.keys() & set(ancestors)]
            if len(own) > self.most:
                self.most, self.at_a_time = len(own), [described(each) for each in own]

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()


class Yard:
    """A catalog and its runner, whose parts are killed and restarted unless another part restarts them.

    The runner and Ray's processes reach the catalog through a proxy, the test itself without it.
    """

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog(folder / "data").start()
        self.proxy = ResettingProxy(self.catalog.port, SEED, RESET_PROBABILITY)
        self.runner = Runner(self.catalog, folder / "runner.log", url=self.proxy.url)
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

    def inject(self, fault: str, jobs: list[str], chance: random.Random) -> None:
        assert self.runner.process is not None
        folders = {*self.ray_folders()}
        runner = self.runner.process.pid
        match fault:
            case "driver":
                kill_all([driver for job in jobs for driver in drivers_of(job)])
            case "worker" | "agent":
                found = busy_workers(runner) if fault == "worker" else ray_agents(runner)
                kill_all(chance.sample(found, k=min(1, len(found))))
            case "raylet":
                kill_all(raylets(runner))
            case "gcs":
                kill_all(ray_heads(runner))
            case "all of Ray":
                kill_all([*descendants_of(runner, lambda _: True), *processes_of(folders)])
            case "runner":
                self.runner.kill()
                self.start_runner()
            case "catalog":
                self.catalog.kill()
                self.catalog.start()
            case "connections":
                self.proxy.reset_all()

    def stop(self) -> None:
        self.runner.stop()
        self.proxy.close()
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


@pytest.mark.weekly
@pytest.mark.timeout(BACKFILLS * BACKFILL_SECONDS + 120)
def test_jobs_succeed_and_recompute_few_rows_while_anything_fails(yard, tmp_path):
    chance = random.Random(SEED)
    injected: collections.Counter[str] = collections.Counter()
    attempts = calls = 0
    began = time.monotonic()
    deck: list[str] = []
    backfills = 0
    while backfills < BACKFILLS and time.monotonic() - began < SECONDS:
        number, backfills = backfills, backfills + 1
        if len(deck) < FAULTS_OF_ONE:
            # Each fault occurs equally often.
            deck = chance.sample(FAULTS, len(FAULTS))
        story, made, called = run_one(yard, number, [deck.pop() for _ in range(FAULTS_OF_ONE)], chance)
        injected.update(story)
        attempts += made
        calls += called
        used = sum(file.stat().st_size for file in (tmp_path / "data").rglob("*") if file.is_file())
        assert used < (number + 1) * BYTES_OF_ONE, f"{used} bytes after {number + 1} backfills"
        assert len(yard.ray_folders()) <= 1
        # The Rays that were killed left no processes, and folders of finished processes were deleted.
        wait_until(lambda: not processes_of(yard.rays - {*yard.ray_folders()}), "the end of killed Rays")
        wait_until(lambda: len(standby_folders(yard)) <= 1, "the end of processes that waited")
    seconds = round(time.monotonic() - began)
    recomputed = calls / (backfills * ROWS) - 1
    print(
        f"{backfills} backfills, {injected.total()} faults {dict(injected)}, {yard.proxy.resets} resets, "
        f"{attempts} attempts, {recomputed:.1%} recomputed, {seconds} s",
        flush=True,
    )
    assert recomputed <= RECOMPUTED_MAX


def standby_folders(yard: Yard) -> list[Path]:
    return [standby for ray in yard.ray_folders() for standby in ray.glob("standby-*")]


def run_one(yard: Yard, number: int, faults: list[str], chance: random.Random) -> tuple[list[str], int, int]:
    """Fills one table and looks after others while faults are injected. Returns the injected faults, the number of
    attempts and the number of the function's calls."""
    calls = Calls()
    table = f"counted_{number}"
    write_counted(yard.catalog, table, calls)
    began = time.monotonic()
    job = backfill(yard.catalog, [table], "double", concurrency=2)
    jobs = [job, *look_after(yard.catalog, number)]
    yard.jobs += jobs
    story: list[str] = []

    def told() -> str:
        seconds = round(time.monotonic() - began)
        found = json.dumps(describe(yard.catalog, job), indent=1)
        return f"backfill {number} after {seconds} s, {story} injected: {found}\n{yard.runner.log.read_text()[-4_000:]}"

    with Watch(job) as watch:
        # The time of a fault is random, too: at the start of an attempt, or during the work.
        for fault, share in zip(faults, sorted(chance.uniform(-0.3, 0.9) for _ in faults), strict=True):
            wait_until(
                lambda share=share: (drivers_of(job) and calls.count() >= share * ROWS) or has_ended(yard.catalog, job),
                told,
                seconds=BACKFILL_SECONDS,
            )
            time.sleep(chance.uniform(0, 5))
            if has_ended(yard.catalog, job):
                break
            story.append(f"{fault} at {calls.count()}")
            yard.inject(fault, jobs, chance)
        for each in jobs:
            wait_until(lambda each=each: has_ended(yard.catalog, each), told, seconds=BACKFILL_SECONDS)
    attempts = [attempts_of(yard.catalog, each) for each in jobs]
    seconds = round(time.monotonic() - began)
    counts = [len(each) for each in attempts]
    print(f"{number}: {', '.join(story)}; attempts {counts}, {calls.count()} calls, {seconds} s", flush=True)
    for each in attempts[0]:
        print(f"   {(each.get('reason') or 'succeeded')[:200]!r}", flush=True)
    for each in jobs:
        ended = describe(yard.catalog, each)
        assert (ended["status"], ended.get("reason")) == ("Succeeded", None), f"{ended}: {told()}"
    assert values(yard.catalog, [table], "double") == [2 * each for each in range(ROWS)], told()
    assert watch.most == 1, f"{watch.most} processes at a time, {watch.at_a_time}: {told()}"
    for each, made in zip(jobs, attempts, strict=True):
        found = describe(yard.catalog, each)
        started = sum("started_at_millis" in attempt for attempt in made)
        assert found["attempt"] - found["interruptions"] <= started, f"{found} {made}: {told()}"
    expect_looked_after(yard.catalog, number)
    return [each.partition(" at ")[0] for each in story], sum(counts), calls.count()


def attempts_of(catalog: Catalog, job: str) -> list[dict]:
    return catalog.get(f"/management/v1/job/{job}/attempt/list")["attempts"]


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
        assert titles == [f"Film {each}" for each in range(FILMS)]
    assert len(compacted.get_fragments()) == 1
    assert indexed.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    assert indexed.to_table(filter="id = 17")["title"].to_pylist() == ["Film 17"]
    versions = [each["version"] for each in catalog.versions([f"clean_up_{number}"])]
    assert versions == [cleaned.version]


def has_ended(catalog, job: str) -> bool:
    return describe(catalog, job)["status"] not in ("Queued", "Running")
