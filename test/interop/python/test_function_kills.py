"""Refreshes of LanceDB's Functions whose processes are killed. The function itself counts its calls."""

import time
from pathlib import Path

import lance
import lancedb
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from jobs import values
from lancedb import col, udf
from processes import (
    busy_workers,
    descendants_of,
    drivers_of,
    kill_all,
    processes_of,
    ray_folders,
    raylets,
)
from runner import JOB_SECONDS, Runner, ended

ROWS = 20_000
FRAGMENTS = 20
# The share of all rows that the kills together may cost.
REPEATED_MAX = 0.05
# No process waits for further jobs, because a kill ends it, too.
OPTIONS = ("--num-cpus", "3", "--standby-minutes", "0", "--lease-seconds", "10", "--attempts", "50")


@udf
class twice:
    def __init__(self, folder: str):
        import os

        self.calls = open(f"{folder}/{os.getpid()}", "a")

    def __call__(self, id: int) -> int:
        import time

        print(id, file=self.calls, flush=True)
        time.sleep(0.01)
        return 2 * id


def children_of(runner: int) -> list[int]:
    """Returns the processes that call functions."""
    return descendants_of(runner, lambda arguments: any(each.endswith("/function_child.py") for each in arguments))


@pytest.mark.weekly
@pytest.mark.timeout(2 * JOB_SECONDS)
def test_kills_of_each_process_repeat_few_calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()

    def calls() -> list[int]:
        return [int(line) for file in folder.iterdir() for line in file.read_text().splitlines()]

    with Catalog(tmp_path / "data") as catalog, Runner(catalog, tmp_path / "log").start(*OPTIONS) as runner:
        rows = pa.table({"id": pa.array(range(ROWS), pa.int64())})
        where = {"namespace_client": catalog.client(), "table_id": ["numbers"]}
        lance.write_dataset(rows, mode="create", max_rows_per_file=ROWS // FRAGMENTS, **where)
        remote = lancedb.connect("db://numbers", api_key=catalog.key, host_override=catalog.url)
        numbers = remote.open_table("numbers")
        numbers.add_columns({"twice": remote.create_function(twice)(id=col("id"), folder=str(folder))})
        job = numbers.refresh_column_async("twice").id
        rays: set[Path] = set()

        def owner() -> int:
            assert runner.process is not None
            return runner.process.pid

        def restart_runner() -> None:
            runner.kill()
            runner.start(*OPTIONS)

        kills = {
            "child": lambda: kill_all(children_of(owner())[:1]),
            "worker": lambda: kill_all(busy_workers(owner())[:1]),
            "driver": lambda: kill_all(drivers_of(job)),
            "raylet": lambda: kill_all(raylets(owner())),
            "runner": restart_runner,
        }
        begun = time.monotonic()
        for number, (name, kill) in enumerate(kills.items(), 1):
            share = number / (len(kills) + 1)
            wait_until(lambda: len(set(calls())) > share * ROWS, f"{share:.0%} of the calls", seconds=JOB_SECONDS)
            rays.update(ray_folders(owner()))
            found = calls()
            print(
                f"{name} killed after {len(found)} calls, {len(found) - len(set(found))} of them repeated", flush=True
            )
            kill()
        result = ended(catalog, runner, job)
        found = calls()
        repeated = len(found) - len(set(found))
        print(f"{repeated} of {len(found)} calls repeated in {time.monotonic() - begun:.0f} s", result, flush=True)
        assert (result["status"], result.get("reason")) == ("Succeeded", None)
        assert values(catalog, ["numbers"], "twice") == [2 * number for number in range(ROWS)]
        assert result["result"].items() >= {"rows_assigned": ROWS, "rows_failed": 0, "rows_remaining": 0}.items()
        assert repeated <= REPEATED_MAX * ROWS
        rays.update(ray_folders(owner()))
        runner.stop()
        wait_until(lambda: not processes_of(rays), lambda: f"the end of {processes_of(rays)}", seconds=60)
