"""Tests that finished work is kept. The function itself counts the rows that are computed again."""

import signal
import time

import pytest
from calls import ROWS, ROWS_PER_FRAGMENT, Calls, move_ids, write_counted
from catalog import Catalog, wait_until
from jobs import backfill, values
from processes import drivers_of, geneva_drivers, kill_all, processes_of, ray_folders, ray_heads
from runner import JOB_SECONDS, Runner, ended

# The share of the rows that one interruption may cost.
RECOMPUTED_MAX = 0.1
# The silence of the catalog in seconds. The lease outlives it, and expires soon after the death of a runner.
PAUSE_SECONDS = 20
LEASE_SECONDS = 40
# No process waits for further jobs, because an interruption ends it, too.
OPTIONS = ("--num-cpus", "3", "--standby-minutes", "0", "--lease-seconds", str(LEASE_SECONDS), "--attempts", "50")


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("yard")
    with Catalog(folder / "data") as catalog, Runner(catalog, folder / "log").start(*OPTIONS) as runner:
        yield catalog, runner
        rays = {*ray_folders(runner.process.pid)}
        runner.stop()
        wait_until(lambda: not processes_of(rays), lambda: f"the end of {processes_of(rays)}", seconds=30)


def begin(catalog, table: str, calls: Calls) -> str:
    write_counted(catalog, table, calls)
    return backfill(catalog, [table], "double")


def wait_for(calls: Calls, share: float) -> None:
    wait_until(lambda: calls.count() > share * ROWS, f"the call for {share} of the rows", seconds=JOB_SECONDS)


def expect_all_rows(catalog, table: str, calls: Calls, interruptions: int) -> None:
    assert values(catalog, [table], "double") == [2 * number for number in range(ROWS)]
    calls_max = ROWS * (1 + RECOMPUTED_MAX * interruptions)
    assert calls.count() <= calls_max, f"{calls.count()} calls for {ROWS} rows"


@pytest.mark.weekly
@pytest.mark.timeout(3 * JOB_SECONDS)
def test_kills_of_each_part_a_cancellation_and_a_pause_of_the_catalog_recompute_few_rows(yard):
    catalog, runner = yard
    calls = Calls()
    job = begin(catalog, "killed", calls)
    counts = []

    def killed(share: float, kill) -> None:
        wait_for(calls, share)
        kill()
        counts.append(calls.count())

    def kill_runner() -> None:
        runner.kill()
        runner.start(*OPTIONS)

    killed(0.15, lambda: kill_all(drivers_of(job)))
    killed(0.3, kill_runner)
    killed(0.45, lambda: kill_all(ray_heads(runner.process.pid)))
    killed(0.5, lambda: kill_all(geneva_drivers(runner.process.pid)))
    killed(0.6, lambda: catalog.post(f"/management/v1/job/{job}/cancel"))
    wait_until(lambda: not drivers_of(job), "the end of the job's process", seconds=JOB_SECONDS)
    retried = catalog.post(f"/management/v1/job/{job}/retry")["job_id"]
    # The next attempt has begun to compute, and has more to do.
    killed(calls.count() / ROWS + 0.01, lambda: catalog.process.send_signal(signal.SIGSTOP))
    # The pause itself is the subject of the test.
    time.sleep(PAUSE_SECONDS)
    catalog.process.send_signal(signal.SIGCONT)
    found = ended(catalog, runner, retried)
    # A pause interrupts no attempt.
    assert (found["status"], found["attempt"], found.get("reason")) == ("Succeeded", 1, None)
    assert found["progress"]["compute_millis"] > 0
    # Geneva rounds the times of each task down, so that those of short stages may be 0.
    assert {f"{stage}_millis" for stage in ("plan", "read", "checkpoint", "write", "commit")} <= found["progress"].keys()
    print(f"calls at each interruption: {counts}, in all: {calls.count()} for {ROWS} rows", flush=True)
    expect_all_rows(catalog, "killed", calls, interruptions=len(counts))


def test_an_interrupted_backfill_replaces_the_values_of_all_changed_inputs(yard):
    catalog, runner = yard
    calls = Calls()
    rows = 12 * ROWS_PER_FRAGMENT
    write_counted(catalog, "moved", calls, rows)
    assert ended(catalog, runner, backfill(catalog, ["moved"], "double"))["status"] == "Succeeded"
    move_ids(catalog, "moved", 1_000)
    job = backfill(catalog, ["moved"], "double")
    wait_until(lambda: calls.count() > 1.5 * rows, "half of the calls", seconds=JOB_SECONDS)
    kill_all(drivers_of(job))
    found = ended(catalog, runner, job)
    assert (found["status"], found["attempt"], found["progress"]["replaces_values"]) == ("Succeeded", 2, 1)
    assert values(catalog, ["moved"], "double") == [2 * number for number in range(1_000, 1_000 + rows)]
    # The rows of the fragments that the first attempt committed are not computed again.
    assert calls.count() <= 2 * rows + 3 * ROWS_PER_FRAGMENT
