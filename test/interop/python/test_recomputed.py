"""Tests that finished work is kept. The function itself counts the rows that a second attempt computes again."""

import os
import signal
import tempfile
import time
from pathlib import Path

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from jobs import backfill, describe, values
from processes import drivers_of
from runner import JOB_SECONDS, Runner, ended

ROWS = 1_000
ROWS_PER_FRAGMENT = 50
# The silence of the catalog in seconds, longer than a restart of its node.
PAUSE_SECONDS = 40


class Calls:
    """The calls of a function by all its workers. Each worker has a file with a line for each call."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(dir="/tmp")

    def count(self) -> int:
        return sum(len(file.read_text().splitlines()) for file in Path(self.folder).iterdir())


def counted(calls: Calls):
    folder = calls.folder

    @geneva.udf(data_type=pa.int64())
    def double(id: int) -> int:
        import os
        import time

        with open(f"{folder}/{os.getpid()}", "a") as file:
            file.write(f"{id}\n")
        time.sleep(0.01)
        return 2 * id

    return double


@pytest.fixture
def yard(tmp_path):
    with Catalog(tmp_path / "data") as catalog:
        rows = pa.table({"id": range(ROWS)})
        lance.write_dataset(
            rows, mode="create", max_rows_per_file=ROWS_PER_FRAGMENT, namespace_client=catalog.client(), table_id=["t"]
        )
        runner = Runner(catalog, tmp_path / "log").start()
        yield catalog, runner
        runner.stop()


def begin(catalog, calls: Calls, share: float) -> str:
    """Opens a backfill and waits until a share of its rows is computed."""
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=catalog.properties)
    db.open_table("t").add_columns({"double": counted(calls)})
    job = backfill(catalog, ["t"], "double")
    wait_until(lambda: calls.count() > share * ROWS, "the first rows", seconds=JOB_SECONDS)
    return job


def expect_all_rows(catalog, runner, job: str, calls: Calls, attempt: int) -> None:
    found = ended(catalog, runner, job)
    assert found["status"] == "Succeeded", found
    assert found["attempt"] == attempt, found
    assert values(catalog, ["t"], "double") == [2 * number for number in range(ROWS)]
    assert calls.count() <= 1.1 * ROWS, f"{calls.count()} calls for {ROWS} rows"


def test_a_second_attempt_computes_only_what_the_first_one_has_not(yard):
    catalog, runner = yard
    calls = Calls()
    job = begin(catalog, calls, 0.7)
    os.kill(drivers_of(job)[0], signal.SIGKILL)
    expect_all_rows(catalog, runner, job, calls, attempt=2)


def test_a_retry_of_a_canceled_job_computes_only_what_is_missing(yard):
    catalog, runner = yard
    calls = Calls()
    job = begin(catalog, calls, 0.7)
    catalog.post(f"/management/v1/job/{job}/cancel")
    wait_until(lambda: not drivers_of(job), "the end of the job's process")
    retried = catalog.post(f"/management/v1/job/{job}/retry")["job_id"]
    expect_all_rows(catalog, runner, retried, calls, attempt=1)


def test_a_pause_of_the_catalog_costs_no_work(yard):
    catalog, runner = yard
    calls = Calls()
    job = begin(catalog, calls, 0.3)
    catalog.process.send_signal(signal.SIGSTOP)
    # The pause itself is the subject of the test.
    time.sleep(PAUSE_SECONDS)
    catalog.process.send_signal(signal.SIGCONT)
    expect_all_rows(catalog, runner, job, calls, attempt=1)
    assert describe(catalog, job)["status"] == "Succeeded"
