"""Running jobs: a caller only sends a REST call, and the runner executes the job on a Ray of this machine."""

import contextlib
import json
import sqlite3
import re
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import Catalog, wait_until
from geneva.transformer import UnpackedUDF
from jobs import ROWS, alter, backfill, describe, jobs_of, values, write_films
from processes import ancestors_of, drivers_of, processes, ray_folders
from runner import JOB_SECONDS, Runner, ended


def udfs():
    """Nested functions are pickled by value, like those of a notebook, because workers have no module of the tests."""

    @geneva.udf(data_type=pa.int64())
    def title_length(title: str) -> int:
        return len(title)

    @geneva.udf(data_type=pa.int64())
    def broken(title: str) -> int:
        raise ValueError(f"no such film: {title}")

    @geneva.udf(data_type=pa.int64())
    def slow(title: str) -> int:
        import time

        time.sleep(1)
        return len(title)

    both = pa.struct([("vector", pa.list_(pa.float32(), 4)), ("title", pa.string())])

    @geneva.udf(data_type=both)
    def two(batch: pa.RecordBatch) -> pa.Array:
        titles = batch["title"].to_pylist()
        return pa.array([{"vector": [float(len(title))] * 4, "title": title.upper()} for title in titles], both)

    return {"two": two, "title_length": title_length, "broken": broken, "slow": slow}


def open_with_geneva(catalog, table):
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=catalog.properties)
    return db.open_table(table[-1], namespace=table[:-1])


def test_a_rest_call_fills_a_udf_column_except_for_the_rows_whose_errors_are_recorded(catalog, runner, films):
    calls = Path(tempfile.mkdtemp(dir="/tmp"))
    repaired = calls / "repaired"

    @geneva.udf(data_type=pa.int64())
    def even_length(title: str) -> int:
        if repaired.exists():
            print("computed", title, flush=True)
            calls.joinpath(title).touch()
        elif int(title.split()[1]) % 2 == 1:
            raise ValueError(f"odd: {title}")
        return len(title)

    opened = open_with_geneva(catalog, films)
    opened.add_columns({"even_length": even_length})
    # The policy of the request replaces that of the function, which ends the job.
    job = backfill(catalog, films, "even_length", error_policy="skip", max_failed_rows=ROWS // 2)
    ended_job = ended(catalog, runner, job)
    assert (ended_job["status"], ended_job.get("reason")) == ("Succeeded", None)
    assert (ended_job["progress"]["rows_committed"], ended_job["progress"]["rows_total"]) == (ROWS, ROWS)
    lengths = [None if number % 2 == 1 else len(f"Film {number}") for number in range(ROWS)]
    assert values(catalog, films, "even_length") == lengths
    # Geneva commits past the catalog, which finds the writer of these versions.
    changes = catalog.get(f"/management/v1/namespace/{films[0]}/transaction/list?limit=100")["transactions"]
    writers = {each["principal"] for each in changes if each["operation"] == "AdoptTableVersion"}
    assert writers == {f"job:{job} for {ended_job['principal']}"}

    odd = {f"odd: Film {number}" for number in range(1, ROWS, 2)}
    recorded = open_with_geneva(catalog, films).get_errors(job_id=job)
    assert {error.error_message for error in recorded} == odd
    listed = catalog.get(f"/management/v1/job/{job.replace('$', '%24')}/error/list")["errors"]
    assert {error["message"] for error in listed} == odd
    assert {(error["type"], error["column"]) for error in listed} == {("ValueError", "even_length")}

    # A changed row, a deleted one and a new one are no failed rows of the job.
    repaired.touch()
    rows = lance.dataset(namespace_client=catalog.client(), table_id=films)
    rows.update({"title": "'Film 1 again'"}, where="id = 1")
    rows.delete("id = 3")
    new = pa.table({"id": [ROWS], "title": [f"Film {ROWS}"]})
    lance.write_dataset(new, namespace_client=catalog.client(), table_id=films, mode="append")
    path = f"/management/v1/job/{job.replace('$', '%24')}/retry"
    retried = ended(catalog, runner, catalog.post(path, {"failed_rows": True})["job_id"])
    assert (retried["status"], retried.get("reason")) == ("Succeeded", None)
    assert (retried["result"]["rows_retried"], retried["result"]["rows_not_retried"]) == (ROWS // 2 - 2, 2)
    computed = {each.name for each in calls.iterdir()} - {repaired.name}
    assert computed == {f"Film {number}" for number in range(5, ROWS, 2)}
    # The log has the output of the function, and no bars or warnings of Geneva.
    log = catalog.get(f"/management/v1/job/{retried['job_id'].replace('$', '%24')}/log")["lines"]
    assert sum("computed Film" in line for line in log) == len(computed)
    assert not [line for line in log if "it/s" in line or "DataReplacement" in line or "member(s)" in line]
    lengths = {number: len(f"Film {number}") for number in range(ROWS)} | {1: None, ROWS: None}
    del lengths[3]
    assert values(catalog, films, "even_length") == [lengths[number] for number in sorted(lengths)]


def test_a_job_counts_the_rows_that_it_computes_and_not_the_others_of_their_fragments(catalog, runner, films):
    open_with_geneva(catalog, films).add_columns({"title_length": udfs()["title_length"]})

    def rows_of(**fields) -> int:
        found = ended(catalog, runner, backfill(catalog, films, "title_length", **fields))
        assert (found["status"], found.get("reason")) == ("Succeeded", None)
        assert found["progress"]["rows_committed"] == found["progress"]["rows_total"]
        return found["progress"]["rows_total"]

    assert rows_of(where="id < 15") == 15
    assert rows_of() == ROWS - 15
    assert values(catalog, films, "title_length") == [len(f"Film {number}") for number in range(ROWS)]


def test_a_function_that_returns_too_few_values_fails_its_job(catalog, runner, films):
    @geneva.udf(data_type=pa.string())
    def short(title: pa.Array) -> pa.Array:
        return title[: len(title) - 1]

    open_with_geneva(catalog, films).add_columns({"short": short})
    found = ended(catalog, runner, backfill(catalog, films, "short"))
    assert (found["status"], found["attempt"]) == ("Failed", 1)
    reason = r"ValueError: the function short returned (\d+) values for (\d+) rows: return an array with a value or null for each row"
    [(returned, rows)] = re.findall(reason, found["reason"])
    assert int(returned) == int(rows) - 1
    assert values(catalog, films, "short") == [None] * ROWS


@pytest.mark.timeout(600)
def test_geneva_in_its_remote_mode_works_as_it_is(catalog, runner, table):
    """The client's database of LanceDB Cloud is this catalog."""
    films = write_films(catalog, [f"remote_{table[0]}"])
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    opened = db.open_table(films[0])
    functions = udfs()
    opened.add_columns(UnpackedUDF(functions["two"], "of_"))
    opened.backfill("of_vector")
    lengths = [len(f"Film {number}") for number in range(ROWS)]
    assert values(catalog, films, "of_vector") == [[float(length)] * 4 for length in lengths]
    assert values(catalog, films, "of_title") == [f"FILM {number}" for number in range(ROWS)]
    opened.add_columns({"broken": functions["broken"]})
    with pytest.raises(Exception, match=r"FAILED|no such film|failed"):
        opened.backfill("broken")
    # Geneva records the end of a job before the process of the job reports it to the catalog.
    failed = ended(catalog, runner, jobs_of(catalog, films)[0])
    assert failed["status"] == "Failed"
    assert failed["reason"].startswith("ValueError: no such film: Film ")
    # It was not retried, because it would have failed again.
    assert failed["attempt"] == 1

    # Another function of a column computes its rows again.
    @geneva.udf(data_type=pa.int64())
    def negative_length(title: str) -> int:
        return -len(title)

    opened.alter_columns({"path": "broken", "udf": negative_length})
    [job] = jobs_of(catalog, films, "?status=Queued,Running")
    found = ended(catalog, runner, job)
    assert (found["status"], found.get("reason")) == ("Succeeded", None)
    assert values(catalog, films, "broken") == [-length for length in lengths]


def test_geneva_waits_no_longer_for_a_job_that_was_canceled_before_anything_ran_it(tmp_path):
    with Catalog(tmp_path / "data") as catalog:
        films = write_films(catalog, ["films"])
        opened = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url).open_table(films[0])
        opened.add_columns({"title_length": udfs()["title_length"]})
        waiting = opened.backfill_async("title_length")
        catalog.post(f"/management/v1/job/{waiting.job_id}/cancel")
        with pytest.raises(Exception, match="canceled by development"):
            waiting.result()


def running_job(catalog, runner, films) -> str:
    """Starts a long job with one worker and waits for its first rows."""
    open_with_geneva(catalog, films).add_columns({"slow": udfs()["slow"]})
    job = backfill(catalog, films, "slow", concurrency=1)
    wait_until(lambda: checkpointed(catalog, job) > 0, "the first rows of the job", seconds=JOB_SECONDS)
    return job


def checkpointed(catalog, job: str) -> int:
    return describe(catalog, job)["progress"].get("rows_checkpointed", 0)


def driver_of(job: str) -> int:
    """Returns the process that runs a job."""
    found = drivers_of(job)
    assert found, f"no process runs {job}"
    return found[0]


def expect_hidden_keys(catalog, pid: int) -> None:
    """A job has a separate key, which is only in a file, and does not know that of the runner."""
    folder = Path(f"/proc/{pid}/cwd").resolve()
    environment = dict(each.partition("=")[::2] for each in Path(f"/proc/{pid}/environ").read_text().split("\0"))
    file = folder.joinpath(environment["TILTYARD_API_KEY_FILE"])
    key = file.read_text()
    assert key.startswith("tiltyard_")
    assert key != catalog.key
    assert catalog.key not in environment.values()
    session = next(parent for parent in folder.parents if parent.name.startswith("session_"))
    logs = [file for file in session.joinpath("logs").rglob("*") if file.is_file()]
    processes = list(Path("/proc").glob("[0-9]*/cmdline"))
    assert len(logs) > 0
    for file in [*logs, *processes]:
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            assert key.encode() not in content, f"the job's key is in {file}"
            assert catalog.key.encode() not in content, f"the runner's key is in {file}"


def test_a_job_that_is_paused_or_canceled_ends_within_ten_seconds_and_resumes_with_its_finished_rows(
    catalog, runner, films
):
    job = running_job(catalog, runner, films)
    pid = driver_of(job)
    expect_hidden_keys(catalog, pid)
    wait_until(lambda: describe(catalog, job)["progress"].get("workers_active") == 1, "a worker", seconds=JOB_SECONDS)
    progress = describe(catalog, job)["progress"]
    assert (progress["workers_pending"], progress["cpus"]) == (0, 3)
    assert 1 <= progress["cpus_reserved"] <= 3
    path = f"/management/v1/job/{job.replace('$', '%24')}"
    catalog.post(f"{path}/pause")
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the process", seconds=10)
    done = checkpointed(catalog, job)
    paused = describe(catalog, job)
    assert (paused["status"], paused["attempt"], paused["interruptions"]) == ("Running", 1, 1)
    catalog.post(f"{path}/resume")
    wait_until(lambda: checkpointed(catalog, job) > done, "further rows", seconds=JOB_SECONDS)
    assert describe(catalog, job)["attempt"] == 2
    pid = driver_of(job)
    alter(catalog, job, {"setStatusAction": {"status": "Canceled"}})
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the process", seconds=10)
    assert describe(catalog, job)["status"] == "Canceled"
    assert values(catalog, films, "slow").count(None) > 0


def test_a_resumed_job_of_genevas_client_computes_no_finished_row_again(catalog, runner, films, tmp_path):
    calls = tmp_path / "calls"

    @geneva.udf(data_type=pa.int64())
    def counted(title: str) -> int:
        import time

        time.sleep(0.5)
        with calls.open("a") as file:
            file.write(f"{title}\n")
        return len(title)

    opened = open_with_geneva(catalog, films)
    opened.add_columns({"counted": counted})
    # Geneva's client always sends the version that it knows.
    job = backfill(catalog, films, "counted", read_version=opened.version)
    wait_until(lambda: values(catalog, films, "counted").count(None) < ROWS, "the first commit", seconds=JOB_SECONDS)
    path = f"/management/v1/job/{job.replace('$', '%24')}"
    catalog.post(f"{path}/pause")
    wait_until(lambda: not drivers_of(job), "the end of the process")
    paused = values(catalog, films, "counted")
    assert paused.count(None) > 0
    catalog.post(f"{path}/resume")
    assert ended(catalog, runner, job)["attempt"] == 2
    assert values(catalog, films, "counted").count(None) == 0
    titles = calls.read_text().splitlines()
    finished = [f"Film {number}" for number, value in enumerate(paused) if value is not None]
    assert [title for title in finished if titles.count(title) != 1] == []


@pytest.mark.timeout(600)
def test_a_job_does_not_change_another_table_of_the_name_of_its_own(catalog, runner, films):
    job = running_job(catalog, runner, films)
    path = f"/v1/table/{'%24'.join(films)}"
    with pytest.raises(urllib.error.HTTPError) as refusal:
        catalog.post(f"{path}/rename", {"new_table_name": "renamed"})
    assert f"has the open job {job}" in json.load(refusal.value)["detail"]
    catalog.post(f"{path}/drop")
    write_films(catalog, films)
    found = ended(catalog, runner, job)
    dropped = f"the table {'$'.join(films)} was dropped, and another table has its name now"
    assert (found["status"], found["reason"]) == ("Failed", f"{dropped}: open a new job for that one")
    wait_until(lambda: not drivers_of(job), "the end of the process")
    assert [version["version"] for version in catalog.versions(films)] == [1]


@pytest.mark.weekly
@pytest.mark.timeout(600)
def test_a_process_that_waited_serves_one_job_in_workers_that_waited_and_leaves_nothing(tmp_path):
    @geneva.udf(data_type=pa.int64())
    def worker(title: str) -> int:
        import os

        return os.getpid()

    with Catalog(tmp_path / "data") as catalog, Runner(catalog, tmp_path / "log").start() as runner:
        films = write_films(catalog, ["films"])

        def waiting() -> list[Path]:
            found = [each for folder in ray_folders(runner.process.pid) for each in folder.glob("standby-*")]
            return [each for each in found if not each.joinpath("api-key").exists()]

        open_with_geneva(catalog, films).add_columns({"worker": worker})
        wait_until(lambda: len(waiting()) == 1, "a process for the next job", seconds=JOB_SECONDS)
        [own] = waiting()
        # Its folder is for its user only, and is deleted with the key after the job.
        assert own.stat().st_mode & 0o077 == 0
        command = ["-m", "tiltyard.job.standby", str(own)]
        wait_until(lambda: processes(lambda each: each[1:4] == command), "the process itself")
        [pid] = processes(lambda each: each[1:4] == command)
        wait_until(lambda: len(ready_workers(runner.process.pid)) >= 4, "workers", seconds=JOB_SECONDS)
        ready = ready_workers(runner.process.pid)
        job = backfill(catalog, films, "worker")
        wait_until(lambda: drivers_of(job), "the process of the job", seconds=JOB_SECONDS)
        # It starts anew, with the same id, if another test has installed a package.
        assert drivers_of(job) == [pid]
        assert ended(catalog, runner, job)["status"] == "Succeeded"
        assert set(values(catalog, films, "worker")) <= set(ready)
        left = [own, *(Path(f"/proc/{each}") for each in (pid, *ready))]
        wait_until(lambda: not any(each.exists() for each in left), "the end of both", seconds=60)
        wait_until(lambda: len(waiting()) == 1, "a process for a second job", seconds=JOB_SECONDS)
        assert waiting() != [own]
        runner.stop()


def ready_workers(runner: int) -> list[int]:
    """Returns the workers of a runner's Ray that have imported the packages and have no task."""
    idle = processes(lambda arguments: arguments[0] == "ray::IDLE")
    found = []
    for pid in idle:
        with contextlib.suppress(OSError):
            if runner in ancestors_of(pid) and "/lancedb/" in Path(f"/proc/{pid}/maps").read_text():
                found.append(pid)
    return found


def job_of_a_principal_without_rights(catalog) -> str:
    """Opens a job of a principal whose role is revoked before the job starts."""
    catalog.post("/v1/namespace/left/create")
    catalog.post("/v1/table/left%24films/declare")
    grant = {"namespace": ["left"], "role": "writer"}
    leaver = catalog.post("/management/v1/api_key/create", {"principal": "leaver", "grant": grant})
    job = catalog.post("/management/v1/table/left%24films/compact", key=leaver["key"])["job_id"]
    catalog.post("/management/v1/namespace/left/grant/revoke", {"principal": "leaver"})
    return job


def test_a_runner_fails_a_job_that_cannot_start_and_leaves_a_running_one_open_when_it_is_stopped(tmp_path):
    with Catalog(tmp_path / "data") as catalog:
        films = write_films(catalog, ["films"])
        left = job_of_a_principal_without_rights(catalog)
        with Runner(catalog, tmp_path / "log").start("--standby-minutes", "0") as runner:
            refused = ended(catalog, runner, left)
            assert (refused["status"], "leaver" in refused["reason"]) == ("Failed", True), refused
            job = running_job(catalog, runner, films)
            begun = time.monotonic()
            runner.stop()
            assert time.monotonic() - begun < 10
            assert ray_folders(runner.process.pid) == []
            assert drivers_of(job) == []
        left = describe(catalog, job)
        # The attempt does not count, because the runner handed it over.
        assert (left["status"], left["interruptions"]) == ("Running", 1)


def test_new_rows_are_filled_by_a_job_that_nobody_asks_for(catalog, runner, table):
    """One job fills both columns. Its commits add no rows and thus open no further jobs."""

    @geneva.udf(data_type=pa.int64(), auto_backfill=True)
    def title_length(title: str) -> int:
        return len(title)

    films = write_films(catalog, [f"automatic_{table[0]}"])
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    db.open_table(films[0]).add_columns({"title_length": title_length})
    for number in (ROWS, ROWS + 1):
        more = pa.table({"id": [number], "title": [f"Film {number}"]})
        lance.write_dataset(more, namespace_client=catalog.client(), table_id=films, mode="append")
    lengths = [len(f"Film {number}") for number in range(ROWS + 2)]
    wait_until(lambda: values(catalog, films, "title_length") == lengths, "the new rows", seconds=JOB_SECONDS)
    [job] = jobs_of(catalog, films)
    assert ended(catalog, runner, job)["status"] == "Succeeded"
    # When no task remains, the catalog has processed the commits of the job.
    wait_until(lambda: not waiting_tasks(catalog), "the catalog's look at all commits", seconds=JOB_SECONDS)
    assert jobs_of(catalog, films) == [job]


def waiting_tasks(catalog) -> int:
    with sqlite3.connect(f"file:{catalog.data_dir}/catalog.sqlite?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM tasks WHERE kind = 'automate'").fetchone()[0]
