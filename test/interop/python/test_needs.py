"""Functions with requirements that no worker of the Ray cluster will ever meet."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import geneva
import lancedb
import pyarrow as pa
import pytest
from catalog import PROJECT, Catalog
from jobs import backfill, claim, describe, write_films
from tiltyard.job.job import JobError
from tiltyard.job.needs import GIB, WORKERS, Resources, require, workers
from tiltyard.job.ray_tasks import task_slots

SMALL = {WORKERS: json.dumps([{"name": "cpu", "cpus": 4, "gpus": 0, "memory_bytes": 3 * GIB}])}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """A catalog without a runner, which would claim the jobs of these tests."""
    with Catalog(tmp_path_factory.mktemp("data")) as running:
        yield running


def test_what_a_worker_has_is_enough():
    require("f", Resources(4, 0, 3 * GIB), workers(SMALL))
    require("f", Resources(), workers(SMALL))
    require("f", Resources(64, 8, 999 * GIB), None)


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (Resources(1, 0, 4 * GIB), "f needs 1 CPUs, 4 GiB, and no worker of this Ray cluster has that"),
        (Resources(1, 1, 0), "f needs 1 CPUs, 1 GPUs, and no worker"),
        (Resources(8, 0, 0), "(cpu: 4 CPUs, 3 GiB): name another one in the request's cluster"),
    ],
)
def test_what_no_worker_has_is_told(needs, told):
    with pytest.raises(JobError) as refused:
        require("f", needs, workers(SMALL))
    assert told in str(refused.value)


def test_no_worker_has_a_part_of_each_group():
    groups = [
        {"name": "a", "cpus": 8, "gpus": 0, "memory_bytes": GIB},
        {"name": "b", "cpus": 1, "gpus": 1, "memory_bytes": GIB},
    ]
    with pytest.raises(JobError):
        require("f", Resources(8, 1, 0), workers({WORKERS: json.dumps(groups)}))


def test_tasks_on_a_ray_that_makes_its_nodes_are_as_many_as_are_asked_for(monkeypatch):
    monkeypatch.setattr("ray.init", lambda **_: None)
    monkeypatch.setenv(WORKERS, SMALL[WORKERS])
    assert (task_slots(None), task_slots(20)) == (8, 20)
    monkeypatch.setenv(WORKERS, json.dumps([{"name": "idle", "cpus": 0, "gpus": 1, "memory_bytes": GIB}]))
    with pytest.raises(JobError, match="a task needs 1 CPUs"):
        task_slots(None)


def run_without_gpu(catalog, job: str) -> dict:
    """Runs the first attempt of a job as on a Ray cluster whose workers have no GPU. Returns the final state of the
    job."""
    claim(catalog, job)
    environment = {
        **os.environ,
        **SMALL,
        "PYTHONPATH": str(PROJECT / "runner/job"),
        "TILTYARD_CATALOG_URL": catalog.url,
        "TILTYARD_API_KEY": catalog.key,
        "TILTYARD_RAY_AUTOSCALES": "1",
    }
    attempt = [sys.executable, "-m", "tiltyard.job", job, "--attempt", "1"]
    ended = subprocess.run(attempt, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 3, ended.stderr
    found = describe(catalog, job)
    assert found["status"] == "Failed"
    return found


def test_a_job_whose_function_needs_a_gpu_fails_at_once_without_one(catalog, films):
    def on_gpu():
        @geneva.udf(data_type=pa.int64(), num_gpus=1)
        def length(title: str) -> int:
            return len(title)

        return length

    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=catalog.properties)
    db.open_table(films[-1], namespace=films[:-1]).add_columns({"length": on_gpu()})
    found = run_without_gpu(catalog, backfill(catalog, films, "length"))
    needs = "the function of length needs 1 CPUs, 1 GPUs, and no worker of this Ray cluster"
    assert needs in found["reason"]


def test_a_refresh_whose_lancedb_function_needs_a_gpu_fails_at_once_without_one(catalog, films):
    def size(title: str) -> int:
        return len(title)

    remote = lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    function = remote.create_function(lancedb.udf(size, gpu=True), namespace_path=films[:-1])
    table = remote.open_table(films[-1], namespace_path=films[:-1])
    table.add_columns({"size": function(title=lancedb.col("title"))})
    reason = run_without_gpu(catalog, table.refresh_column_async("size").id)["reason"]
    assert "size version 1 needs 1 CPUs, 1 GPUs, and no worker of this Ray cluster has that" in reason


def test_functions_with_a_gpu_have_as_many_workers_as_a_local_ray_has_gpus(monkeypatch):
    gpu = Resources(1, 1)
    monkeypatch.setattr("ray.init", lambda **_: None)
    monkeypatch.delenv(WORKERS, raising=False)
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 8.0, "GPU": 2.0, "memory": GIB})
    assert (task_slots(None, "f", gpu), task_slots(1, "f", gpu), task_slots(None)) == (2, 1, 7)
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 8.0, "memory": GIB})
    with pytest.raises(JobError, match="f needs 1 CPUs, 1 GPUs"):
        task_slots(None, "f", gpu)


def view_of_rows(db, name, query):
    @geneva.udtf(output_schema=pa.schema([("films", pa.int64())]), num_gpus=1)
    def count(source):
        yield pa.RecordBatch.from_pydict({"films": [source.count_rows()]})

    db.create_udtf_view(name, query, count)


def view_of_chunks(db, name, query):
    @geneva.chunker(output_schema=pa.schema([("word", pa.string())]), num_gpus=1)
    def words(title: str) -> Iterator[dict]:
        yield from ({"word": word} for word in title.split())

    db.create_udtf_view(name, query, words)


def view_of_columns(db, name, query):
    @geneva.udf(data_type=pa.int64(), num_gpus=1)
    def length(title: str) -> int:
        return len(title)

    db.create_materialized_view(name, query.select({"title": "title", "length": length}))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(view_of_rows, marks=pytest.mark.weekly),
        pytest.param(view_of_chunks, marks=pytest.mark.weekly),
        view_of_columns,
    ],
)
def test_a_refresh_whose_function_needs_a_gpu_fails_at_once_without_one(catalog, table, make):
    source = write_films(catalog, [f"source_{table[0]}"])
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    view = f"{make.__name__}_{table[0]}"
    make(db, view, db.open_table(source[0]).search(None).select(["id", "title"]))
    job = catalog.post(f"/v1/materialized_view/{view}/refresh")["job_id"]
    reason = run_without_gpu(catalog, job)["reason"]
    assert f"a function of the view {view} needs" in reason
    assert "1 GPUs, and no worker of this Ray cluster has that (cpu: 4 CPUs, 3 GiB)" in reason
