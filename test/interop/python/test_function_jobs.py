"""Refreshes of LanceDB's Functions as jobs on the Ray of a runner, requested by the unmodified client."""

from pathlib import Path

import lance
import pyarrow as pa
from jobs import ROWS, values
from lancedb import col, udf
from runner import ended


@udf(pip=["six==1.16.0"])
class length:
    """Counts its calls in a file of its process, and kills the first worker. Its package has another version in the runner's Python."""

    def __init__(self, folder: str):
        import os

        import six

        assert six.__version__ == "1.16.0"
        self.killed = f"{folder}-killed"
        self.calls = open(f"{folder}/{os.getpid()}", "a")

    def __call__(self, title: str) -> int:
        import os
        import signal

        print(title, file=self.calls, flush=True)
        if title == "Film 20" and not os.path.exists(self.killed):
            open(self.killed, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
        print(f"computes {title}")
        if title == "Film 7":
            raise ValueError(f"no such film: {title}")
        return len(title)

    def close(self):
        print("closed", file=self.calls, flush=True)


def calls_of(folder: Path) -> list[str]:
    return sorted(line for file in folder.iterdir() for line in file.read_text().splitlines())


def test_a_function_is_called_for_rows_without_a_current_value_only(catalog, runner, remote, films, tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    where = {"namespace_path": films[:-1]}
    opened = remote.open_table(films[-1], **where)
    opened.add_columns({"length": remote.create_function(length, **where)(title=col("title"), folder=str(folder))})
    job = opened.refresh_column_async("length").id
    found = ended(catalog, runner, job)
    assert (found["status"], found.get("reason"), found["attempt"]) == ("Succeeded", None, 1)
    counts = {"rows_assigned": ROWS - 1, "rows_failed": 1, "rows_remaining": 0}
    assert found["result"].items() >= counts.items()
    assert (found["progress"]["rows_committed"], found["progress"]["rows_total"]) == (ROWS, ROWS)
    titles = {number: f"Film {number}" for number in range(ROWS)}
    lengths = [None if number == 7 else len(title) for number, title in titles.items()]
    assert values(catalog, films, "length") == lengths
    # The rows of the killed worker were computed by another one.
    assert set(calls_of(folder)) == {*titles.values(), "closed"}
    [error] = opened.function_errors(job_id=job).records
    assert (error.error_type, error.error_message) == ("builtins.ValueError", "no such film: Film 7")
    # The output of the function is in the log of the job.
    log = catalog.get(f"/management/v1/job/{job.replace('$', '%24')}/log")["lines"]
    assert any("computes Film" in line for line in log), log

    # A compaction, an update, an upsert and an append leave only the changed rows, and the failed one.
    lance.dataset(namespace_client=catalog.client(), table_id=films).optimize.compact_files()
    opened.update(where="id = 3", values={"title": "Stalker"})
    rows = {"id": [4, ROWS], "title": ["Solaris", "Mirror"]}
    opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table(rows)
    )
    lance.dataset(namespace_client=catalog.client(), table_id=films).optimize.compact_files()
    for file in folder.iterdir():
        file.unlink()
    again = ended(catalog, runner, opened.refresh_column_async("length").id)
    assert (again["status"], again.get("reason")) == ("Succeeded", None)
    assert again["result"].items() >= {"rows_assigned": 3, "rows_failed": 1}.items()
    assert calls_of(folder) == ["Film 7", "Mirror", "Solaris", "Stalker", "closed"]
    lengths[3:5] = [len("Stalker"), len("Solaris")]
    assert values(catalog, films, "length") == [*lengths, len("Mirror")]
