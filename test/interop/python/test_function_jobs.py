"""Refreshes of LanceDB's Functions as jobs on the Ray of a runner, requested by the unmodified client."""

import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import lance
import lancedb
import pyarrow as pa
import pytest
from catalog import Catalog
from jobs import ROWS, describe, values
from lancedb import col, udf
from runner import Runner, ended

WAIT = timedelta(minutes=9)


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
    opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(pa.table(rows))
    lance.dataset(namespace_client=catalog.client(), table_id=films).optimize.compact_files()
    for file in folder.iterdir():
        file.unlink()
    again = ended(catalog, runner, opened.refresh_column_async("length").id)
    assert (again["status"], again.get("reason")) == ("Succeeded", None)
    assert again["result"].items() >= {"rows_assigned": 3, "rows_failed": 1}.items()
    assert calls_of(folder) == ["Film 7", "Mirror", "Solaris", "Stalker", "closed"]
    lengths[3:5] = [len("Stalker"), len("Solaris")]
    assert values(catalog, films, "length") == [*lengths, len("Mirror")]


@udf(pip=["tiltyard-no-such-package"])
def without_package(title: str) -> str:
    return title


@udf(pip=["six"])
def with_package(title: str) -> str:
    return title


def test_packages_that_do_not_exist_fail_the_registration(catalog, runner, remote, films):
    where = {"namespace_path": films[:-1]}
    jobs = [remote.create_function_async(without_package, **where) for _ in range(2)]
    assert jobs[0].id == jobs[1].id
    with pytest.raises(Exception, match=r"(?s)tiltyard-no-such-package was not found.*in bake"):
        jobs[0].wait(WAIT)
    [version] = remote.list_functions(**where)
    assert version.disabled
    with pytest.raises(Exception, match="Register the function again"):
        remote.open_table(films[-1], **where).add_columns({"c": version(title=col("title"))})
    again = remote.create_function_async(without_package, **where)
    assert again.id != jobs[0].id
    again.cancel()


class SilentIndex(ThreadingHTTPServer):
    """An index of packages that never answers."""

    def __init__(self):
        self.asked, self.ends = threading.Event(), threading.Event()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.set()
                index.ends.wait()

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.ends.set()
        self.shutdown()


@pytest.mark.weekly
@pytest.mark.timeout(600)
def test_a_registration_survives_the_kill_of_its_runner(tmp_path):
    index = SilentIndex()
    silent = {
        "UV_DEFAULT_INDEX": f"http://127.0.0.1:{index.server_port}/simple",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    options = ("--standby-minutes", "0", "--lease-seconds", "10")
    with Catalog(tmp_path / "data") as catalog, Runner(catalog, tmp_path / "log", silent).start(*options) as killed:
        remote = lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)
        job = remote.create_function_async(with_package)
        assert index.asked.wait(WAIT.total_seconds()), killed.log.read_text()
        killed.kill()
        with Runner(catalog, tmp_path / "other").start(*options):
            version = job.wait(WAIT)
            found = describe(catalog, job.id)
            assert (version.version, version.disabled, found["status"]) == ("1", False, "Succeeded")
            assert found["attempt"] > 1
    index.close()
