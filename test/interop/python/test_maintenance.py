"""Compaction, index building and clean-up as jobs on the Ray of a runner."""

import os
import time

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import folder_of
from jobs import ROWS, values
from runner import ended
from tiltyard.connection import Connection
from tiltyard.job import index
from tiltyard.job.clean_up import DAY_SECONDS, clean_up, expiry_millis
from tiltyard.job.compaction import require_own_indices
from tiltyard.job.geneva_checkpoints import delete_checkpoints, open_jobs
from tiltyard.job.job import Job, JobError


def post(catalog, table: list[str], what: str, **fields) -> str:
    return catalog.post(f"/management/v1/table/{'%24'.join(table)}/{what}", fields)["job_id"]


def done(catalog, runner, job: str) -> dict[str, int]:
    """Waits for the success of a job. Returns its results."""
    found = ended(catalog, runner, job)
    assert (found["status"], found.get("reason")) == ("Succeeded", None)
    return found["result"]


def opened(catalog, table: list[str]):
    return lance.dataset(namespace_client=catalog.client(), table_id=table)


def append(catalog, table: list[str], *ids: int) -> None:
    more = pa.table({"id": ids, "title": [f"Film {number}" for number in ids]})
    lance.write_dataset(more, namespace_client=catalog.client(), table_id=table, mode="append")


def test_fragments_are_compacted_through_the_catalog(catalog, runner, films):
    opened(catalog, films).delete("id >= 35")
    before = opened(catalog, films)
    result = done(catalog, runner, post(catalog, films, "compact"))
    after = opened(catalog, films)
    assert (len(before.get_fragments()), len(after.get_fragments())) == (4, 1)
    assert (result["fragments_removed"], result["fragments_added"]) == (4, 1)
    assert result["published_version"] == after.version == catalog.versions(films)[-1]["version"]
    assert values(catalog, films, "title") == [f"Film {number}" for number in range(35)]
    history = {version["lance_operation"]: version["num_rows"] for version in catalog.history(films)}
    assert [history[name] for name in ("Overwrite", "Delete", "Rewrite")] == [ROWS, 35, 35]
    # No work remains, so nothing is committed.
    assert "published_version" not in done(catalog, runner, post(catalog, films, "compact"))
    assert opened(catalog, films).version == after.version


def test_a_clone_is_not_compacted_while_it_has_an_index_of_its_source(tmp_path):
    lance.write_dataset(pa.table({"id": range(40)}), str(tmp_path / "source"), max_rows_per_file=10)
    lance.dataset(str(tmp_path / "source")).create_scalar_index("id", "BTREE")
    clone = lance.dataset(str(tmp_path / "source")).shallow_clone(str(tmp_path / "clone"), 2)
    with pytest.raises(JobError, match="the files of id_idx are those of the table that this one was cloned from"):
        require_own_indices(clone)
    clone.create_scalar_index("id", "BTREE", replace=True)
    require_own_indices(clone)


def test_an_index_is_built_from_segments(catalog, runner, films):
    result = done(catalog, runner, post(catalog, films, "build_index", column="id", index_type="BTREE"))
    dataset = opened(catalog, films)
    stats = dataset.stats.index_stats("id_idx")
    assert result["segments"] == 2
    assert (stats["num_indexed_rows"], stats["num_unindexed_rows"]) == (ROWS, 0)
    assert dataset.to_table(filter="id = 17")["title"].to_pylist() == ["Film 17"]
    # The rebuilt index contains the rows that were added since.
    append(catalog, films, 40, 41)
    done(catalog, runner, post(catalog, films, "build_index", column="id", index_type="BTREE"))
    assert opened(catalog, films).stats.index_stats("id_idx")["num_indexed_rows"] == ROWS + 2


def compact_files(path: str) -> None:
    lance.dataset(path).optimize.compact_files()


def overwrite(path: str) -> None:
    lance.write_dataset(pa.table({"id": range(40)}), path, mode="overwrite", max_rows_per_file=10)


@pytest.mark.parametrize("change", [compact_files, overwrite])
def test_an_index_is_built_again_when_another_writer_replaced_the_fragments_meanwhile(tmp_path, monkeypatch, change):
    path = str(tmp_path / "table")
    lance.write_dataset(pa.table({"id": range(40)}), path, max_rows_per_file=10)
    changes = [change]

    def run_here(task, items, at_once):
        yield from map(task, items)
        if changes:
            changes.pop()(path)

    monkeypatch.setattr(index, "open_table", lambda job: lance.dataset(path))
    monkeypatch.setattr(index, "open_dataset", lambda connection, table, version: lance.dataset(path, version))
    monkeypatch.setattr(index, "connection", lambda: None)
    monkeypatch.setattr(index, "task_slots", lambda wanted: 2)
    monkeypatch.setattr(index, "run_tasks", run_here)
    request = {"column": "id", "index_type": "BTREE"}
    index.build(Job("a", "BuildTableIndex", ["table"], request, None, 0, 1, "claim"), lambda *rows: None)
    stats = lance.dataset(path).stats.index_stats("id_idx")
    assert (stats["num_indexed_rows"], stats["num_unindexed_rows"]) == (40, 0)


def test_an_index_of_a_nested_or_quoted_column_has_the_name_that_lance_gives_it(catalog, runner, table):
    rows = pa.table({"x y": range(9), "s": [{"k": number, "d.e": number} for number in range(9)]})
    where = {"namespace_client": catalog.client(), "table_id": table}
    lance.write_dataset(rows, mode="create", max_rows_per_file=3, **where)
    types = {"`s`.`k`": "ZONEMAP", "`x y`": "BITMAP", "s.`d.e`": "ZONEMAP"}
    jobs = [post(catalog, table, "build_index", column=column, index_type=each) for column, each in types.items()]
    for job in jobs:
        done(catalog, runner, job)
    assert opened(catalog, table).stats.index_stats("x y_idx")["num_indexed_rows"] == 9
    found = opened(catalog, table).describe_indices()
    assert sorted((index.name, index.field_names) for index in found) == [
        ("s.`d.e`_idx", ["s.`d.e`"]),
        ("s.k_idx", ["s.k"]),
        ("x y_idx", ["x y"]),
    ]


def test_an_index_of_vectors_is_built_from_segments_that_share_a_model(catalog, runner, table):
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array([float(number % 97) for number in range(8_000)], pa.float32()), 8
    )
    rows = pa.table({"id": range(1_000), "vector": vectors})
    lance.write_dataset(rows, namespace_client=catalog.client(), table_id=table, mode="create", max_rows_per_file=250)
    fields = {"column": "vector", "index_type": "IVF_PQ", "num_partitions": 2, "num_sub_vectors": 4}
    done(catalog, runner, post(catalog, table, "build_index", **fields))
    dataset = opened(catalog, table)
    assert dataset.stats.index_stats("vector_idx")["num_indexed_rows"] == 1_000
    query = {"column": "vector", "q": rows["vector"][500].as_py(), "k": 5, "refine_factor": 20}
    assert dataset.to_table(nearest=query)["_distance"].to_pylist()[0] == 0


@pytest.mark.parametrize("ahead", ["node", "catalog"])
def test_a_clock_that_is_ahead_deletes_no_versions(ahead):
    now, later = 1_800_000_000, 1_834_560_000
    started_at_millis = (later if ahead == "catalog" else now) * 1_000
    job = Job("j", "CleanUpTable", ["t"], {"older_than_seconds": 60}, Connection("", ""), started_at_millis, 1, "c")
    assert expiry_millis(job, later if ahead == "node" else now) == (now - 60) * 1_000


def test_a_node_whose_clock_is_ahead_deletes_no_files():
    job = Job("j", "CleanUpTable", ["t"], {}, Connection("", ""), int((time.time() - 2 * DAY_SECONDS) * 1_000), 1, "c")
    with pytest.raises(JobError, match=r"the clock of this node is 2\.0 days ahead of that of the catalog"):
        clean_up(job, lambda *_: None)


def test_checkpoints_that_no_job_of_geneva_reads_are_deleted_and_its_open_jobs_are_found(catalog, films):
    db = geneva.connect(
        namespace_client_impl="rest", namespace_client_properties=catalog.properties, system_namespace=["__system"]
    )
    job = Job("j", "CleanUpTable", films, {}, Connection(catalog.url, catalog.key), 0, 1, "c")
    schema = opened(catalog, films).schema
    assert (open_jobs(job, schema), delete_checkpoints(job, schema)) == ([], {})

    @geneva.udf(data_type=pa.int64())
    def title_length(title: str) -> int:
        return len(title)

    db.open_table(films[-1], namespace=films[:-1]).add_columns({"title_length": title_length})
    folder = folder_of(opened(catalog, films).uri) / "_ckp"
    folder.mkdir()
    # A batch of the first fragment, which is not finished, and a batch of a fragment that does not exist.
    unfinished, orphan = (folder / f"udf-f_ver-1_col-c_frag-{number}_range-0-10.lance" for number in (0, 99))
    for file in (unfinished, orphan):
        file.touch()
    schema = opened(catalog, films).schema
    running = f"running-{films[0]}"
    db._history.launch(films[-1], "title_length", job_id=running)
    assert running in open_jobs(job, schema)
    db._history.set_failed(running, "it was killed")
    assert running not in open_jobs(job, schema)
    assert delete_checkpoints(job, schema) == {"checkpoints_deleted": 1}
    assert (unfinished.exists(), orphan.exists()) == (True, False)


def test_a_clean_up_leaves_records_and_files_that_agree(catalog, runner, films):
    for number in range(40, 46):
        append(catalog, films, number)
    opened(catalog, films).tags.create("kept", 3)
    branch = opened(catalog, films).create_branch("side", 5)
    location = folder_of(catalog.post(f"/v1/table/{'%24'.join(films)}/describe")["location"])
    opened(catalog, films).delete("id < 10")
    files = len(list((location / "data").iterdir()))
    done(catalog, runner, post(catalog, films, "compact"))
    latest = opened(catalog, films).version
    result = done(catalog, runner, post(catalog, films, "clean_up", older_than_seconds=0))
    versions = [each["version"] for each in catalog.versions(films)]
    assert versions == [3, 5, latest]
    assert result["versions_deleted"] == latest - 3
    assert len(list((location / "_versions").glob("*.manifest"))) == 3
    assert len(list((location / "data").iterdir())) < files + 1
    assert values(catalog, films, "title") == [f"Film {number}" for number in range(10, 46)]
    client = catalog.client()
    assert lance.dataset(namespace_client=client, table_id=films, version="kept").count_rows() == ROWS + 2
    assert branch.count_rows() == ROWS + 4
    # The next commit follows the latest.
    append(catalog, films, 46)
    assert catalog.versions(films)[-1]["version"] == latest + 1

    # Files without a version are deleted when no writer can still commit them, also when all versions stay.
    leftover, fresh = (location / "data" / f"{name}.lance" for name in ("leftover", "fresh"))
    for file in (leftover, fresh):
        file.write_bytes(bytes(100))
    eight_days_ago = time.time() - 8 * DAY_SECONDS
    os.utime(leftover, (eight_days_ago, eight_days_ago))
    result = done(catalog, runner, post(catalog, films, "clean_up"))
    assert (result["versions_deleted"], result["files_removed"]) == (0, 1)
    assert result["bytes_before"] - result["bytes_after"] == 100
    assert result["bytes_after"] == sum(each.stat().st_size for each in location.rglob("*") if each.is_file())
    assert (leftover.exists(), fresh.exists()) == (False, True)
    assert values(catalog, films, "title") == [f"Film {number}" for number in range(10, 47)]
