"""Failures of jobs on a local Ray: each ends with a reason that says what happened. With pytest's -s it prints them."""

import functools
import json
import os
import re
import sys
import types
import urllib.error

import geneva
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from geneva.transformer import UDF
from jobs import backfill, describe, jobs_of, values, write_films
from processes import descendants_of, drivers_of, processes_of, ray_folders
from processes import kill_all as kill
from runner import JOB_SECONDS, Runner, ended

pytestmark = [pytest.mark.weekly, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    """A catalog and its runner. Two attempts show that a failure repeats."""
    folder = tmp_path_factory.mktemp("failures")
    with Catalog(folder / "data") as catalog, Runner(catalog, folder / "log") as runner:
        options = ["--standby-minutes", "0", "--attempts", "2", "--lease-seconds", "10"]
        yield catalog, runner.start(*options)
        runner.stop()


def functions() -> dict[str, UDF]:
    """Nested functions are pickled by value, because workers have no module of the tests."""
    number = functools.partial(geneva.udf, data_type=pa.int64())

    @number()
    def wrong_type(title: str) -> int:
        return title  # type: ignore[return-value]

    @number()
    def wrong_length(title: pa.Array) -> pa.Array:
        return pa.array([1] * (len(title) + 1))

    @number()
    def raises(title: str) -> int:
        raise ValueError(f"no such film: {title}")

    @number()
    def exits(title: str) -> int:
        os._exit(3)

    @number()
    def exits_once(title: str) -> int:
        return os._exit(3) if title == "Film 7" else len(title)

    @number()
    def is_killed(title: str) -> int:
        # The kernel does this to a process that exceeds the memory of its container.
        os.kill(os.getpid(), 9)
        return 0

    @number()
    def allocates_too_much(title: str) -> int:
        return len(bytearray(2**50))

    @number()
    def hangs(title: str) -> int:
        import time

        time.sleep(3_600)
        return 0

    @number()
    def is_slow(title: str) -> int:
        import time

        time.sleep(2)
        return len(title)

    @number()
    def imports_a_missing_package(title: str) -> int:
        import tiltyard_no_such_package

        return tiltyard_no_such_package.length(title)

    # Like a file next to the program that adds the column: pickles refer to it by its name.
    module = types.ModuleType("tiltyard_own_module")
    sys.modules[module.__name__] = module
    module.length = len  # type: ignore[attr-defined]

    @number()
    def needs_a_module_of_its_own(title: str) -> int:
        return module.length(title)

    @number()
    def length(title: str) -> int:
        return len(title)

    return {name: each for name, each in locals().items() if isinstance(each, UDF)}


def declared(catalog: Catalog, table: str, function: str) -> list[str]:
    """Creates a table of films with a column that has the name of the function that fills it."""
    films = write_films(catalog, table.split("$"))
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=catalog.properties)
    db.open_table(films[-1], namespace=films[:-1]).add_columns({function: functions()[function]})
    return films


REASONS = {
    "wrong_type": r"tried to convert to int64",
    "wrong_length": r"returned \d+ values for \d+ rows: return an array with a value or null for each row",
    "raises": r"ValueError: no such film: Film \d+",
    "exits": r"4 of 40 rows ended their process, more than 3. Does the function exit",
    "is_killed": r"4 of 40 rows ended their process, more than 3. Does the function exit",
    "allocates_too_much": r"MemoryError",
    "needs_a_module_of_its_own": r"needs the module tiltyard_own_module, which Ray does not have: add it to py_modules",
    "imports_a_missing_package": r"ModuleNotFoundError: No module named 'tiltyard_no_such_package'",
}


@pytest.mark.parametrize("function", REASONS)
def test_a_failing_function_ends_its_job_with_its_own_error(yard, function):
    catalog, runner = yard
    films = declared(catalog, function, function)
    expect_failed(catalog, runner, backfill(catalog, films, function), REASONS[function])


def test_a_row_that_ends_its_process_is_left_without_a_value_unless_the_request_forbids_that(yard):
    catalog, runner = yard
    films = declared(catalog, "exits_once", "exits_once")
    job = backfill(catalog, films, "exits_once", error_policy="fail")
    expect_failed(catalog, runner, job, "FatalWorkerExitError: its process ended. Does the function exit")
    found = ended(catalog, runner, backfill(catalog, films, "exits_once"))
    assert (found["status"], found["progress"]["rows_skipped_on_error"]) == ("Succeeded", 1)
    assert [number for number, value in enumerate(values(catalog, films, "exits_once")) if value is None] == [7]
    listed = catalog.get(f"/management/v1/job/{found['job_id'].replace('$', '%24')}/error/list")["errors"]
    assert [error["type"] for error in listed] == ["FatalWorkerExitError"]


def test_a_view_whose_function_ends_its_process_is_not_refreshed(yard):
    catalog, runner = yard
    write_films(catalog, ["source"])
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    query = db.open_table("source").search(None).select({"id": "id", "title": "title", "exits": functions()["exits"]})
    db.create_materialized_view("view", query, with_no_data=False)
    [job] = jobs_of(catalog, ["view"])
    expect_failed(catalog, runner, job, "FatalWorkerExitError: its process ended. Does the function exit")


def test_a_job_that_hangs_ends_at_its_timeout(yard):
    catalog, runner = yard
    films = declared(catalog, "hangs", "hangs")
    expect_failed(catalog, runner, backfill(catalog, films, "hangs", timeout_seconds=30), "30 s, its timeout_seconds")


def test_rows_that_are_slower_than_genevas_limit_are_not_taken_for_a_crash(yard):
    catalog, runner = yard
    films = declared(catalog, "is_slow", "is_slow")
    manifest = json.dumps({"env_vars": {"GENEVA_APPLIER_WORKER_STALL_TIMEOUT_S": "5"}})
    several = {"intra_applier_concurrency": 2, "error_policy": "fail"}
    job = backfill(catalog, films, "is_slow", manifest=manifest, **several)
    expect_failed(catalog, runner, job, "some rows were not done after 5 s. Set the limit in seconds with GENEVA_")


def test_a_package_that_cannot_be_installed_is_named_by_pip(yard):
    catalog, runner = yard
    films = declared(catalog, "package", "length")
    manifest = json.dumps({"pip": ["tiltyard-no-such-package"]})
    job = backfill(catalog, films, "length", manifest=manifest)
    expect_failed(catalog, runner, job, "No matching distribution found for tiltyard-no-such-package")


def test_pip_together_with_conda_is_refused_before_there_is_a_job(yard):
    catalog, _ = yard
    films = declared(catalog, "pip_and_conda", "length")
    manifest = json.dumps({"pip": ["six"], "conda": {"dependencies": ["six"]}})
    with pytest.raises(urllib.error.HTTPError) as refused:
        backfill(catalog, films, "length", manifest=manifest)
    assert (refused.value.code, "either with pip or with conda" in refused.value.read().decode()) == (400, True)


def test_a_job_whose_table_is_dropped_says_so(yard):
    catalog, runner = yard
    films = declared(catalog, "dropped", "hangs")
    job = running(catalog, backfill(catalog, films, "hangs"))
    catalog.post("/v1/table/dropped/drop")
    expect_failed(catalog, runner, job, "the table dropped was dropped")


def test_a_job_whose_principal_lost_its_roles_says_so(yard):
    catalog, runner = yard
    catalog.post("/v1/namespace/left/create")
    films = declared(catalog, "left$films", "hangs")
    grant = {"namespace": ["left"], "role": "writer"}
    leaver = catalog.post("/management/v1/api_key/create", {"principal": "leaver", "grant": grant})
    path = f"/v1/table/{'%24'.join(films)}/backfill_column"
    job = running(catalog, catalog.post(path, {"column": "hangs", "concurrency": 1}, key=leaver["key"])["job_id"])
    catalog.post("/management/v1/namespace/left/grant/revoke", {"principal": "leaver"})
    expect_failed(catalog, runner, job, r"leaver may no longer write left\$films")


def test_a_job_survives_a_catalog_that_is_down_and_a_ray_that_dies(yard):
    catalog, runner = yard
    films = declared(catalog, "survives", "length")
    job = backfill(catalog, films, "length")
    wait_until(lambda: drivers_of(job), "the process of the job", seconds=JOB_SECONDS)
    catalog.kill()
    catalog.start()
    kill([*descendants_of(runner.process.pid, lambda _: True), *processes_of({*ray_folders(runner.process.pid)})])
    found = ended(catalog, runner, job)
    assert (found["status"], found.get("reason")) == ("Succeeded", None)
    assert None not in values(catalog, films, "length")


def running(catalog: Catalog, job: str) -> str:
    """Waits until a job computes."""
    wait_until(
        lambda: "started_at_millis" in describe(catalog, job) and drivers_of(job), "the start", seconds=JOB_SECONDS
    )
    return job


def expect_failed(catalog: Catalog, runner: Runner, job: str, reason: str) -> None:
    found = ended(catalog, runner, job)
    print(f"\n{found['objects']}: {found['status']}: {found.get('reason')}")
    assert found["status"] == "Failed", found
    assert re.search(reason, found["reason"]), found["reason"]
