"""One attempt of a job (`python -m tiltyard.job`): its claim, its heartbeat and its end in the catalog."""

import http.server
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import lancedb
import pytest
from catalog import PROJECT, Catalog, wait_until
from jobs import ROWS, alter, backfill, claim, describe, write_films
from lance_namespace.errors import ServiceUnavailableError
from packaging.requirements import Requirement
from tiltyard.connection import Connection
from tiltyard.job import standby
from tiltyard.job.attempt import Attempt, AttemptStopped, Process, Stop
from tiltyard.job.catalog_job import CatalogJob, CatalogUnavailable
from tiltyard.job.failure import is_passing, reason_of
from tiltyard.job.job import JobError
from tiltyard.job.log_tail import LogTail
from tiltyard.job.ray_head import has_ray

PACKAGE = PROJECT / "runner/job"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """A catalog without a runner, which would claim the jobs of these tests."""
    with Catalog(tmp_path_factory.mktemp("data")) as running:
        yield running


def open_job(catalog, table: list[str]) -> str:
    """An open job that no runner executes, with a claimed first attempt."""
    db = lancedb.connect_namespace("rest", catalog.properties)
    db.open_table(table[-1], namespace_path=table[:-1]).add_columns(computed={"twice": "id * 2"})
    opened = backfill(catalog, table, "twice")
    claim(catalog, opened)
    return opened


@pytest.fixture
def job(catalog, films):
    return open_job(catalog, films)


class Stops:
    """The reasons why an attempt was stopped."""

    def __init__(self) -> None:
        self.told: list[Stop] = []
        self.happened = threading.Event()

    def __call__(self, stop: Stop) -> None:
        self.told.append(stop)
        self.happened.set()


def begin(catalog, job: str, lease_seconds: float = 20, number: int = 1) -> tuple[Attempt, Stops]:
    stops = Stops()
    attempt = Attempt(CatalogJob(Connection(catalog.url, catalog.key), job), number, lease_seconds, Process(stops))
    attempt.begin()
    return attempt, stops


def run(catalog, job: str, number: int = 1, **environment: str) -> subprocess.CompletedProcess:
    """Runs the command without a Ray, which a computed column does not need."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
    settings = {"TILTYARD_CATALOG_URL": catalog.url, "TILTYARD_API_KEY": catalog.key, **environment}
    return subprocess.run(
        [sys.executable, "-m", "tiltyard.job", job, "--attempt", str(number)],
        cwd=PACKAGE,
        env={**inherited, **{name: value for name, value in settings.items() if value}},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_attempt_moves_its_job_on_and_tells_how_far_it_is(catalog, job):
    attempt, stops = begin(catalog, job)
    assert describe(catalog, job)["status"] == "Running"
    attempt.report(10, 40, tasks_completed=1)

    def told():
        return describe(catalog, job)["progress"].get("rows_committed")

    wait_until(lambda: told() == 10, "the next heartbeat")
    alter(catalog, job, {"setPropertyAction": {"key": "reason", "value": "an attempt before this one fell over"}})
    # A decreasing number, as after a restart from checkpoints, is not reported.
    attempt.report(5, 40)
    attempt.end("Succeeded")
    found = describe(catalog, job)
    assert (found["status"], found["progress"]["rows_committed"]) == ("Succeeded", 10)
    assert "reason" not in found
    assert stops.told == []


def test_the_rate_includes_rows_that_are_computed_and_not_committed_yet(catalog, job):
    attempt, _ = begin(catalog, job)
    attempt.report(0, 40)
    attempt.report(0, 40, rows_checkpointed=20)
    attempt.end("Succeeded")
    progress = describe(catalog, job)["progress"]
    assert progress["rows_committed"] == 0
    assert progress["rows_per_second"] > 0


def test_an_attempt_counts_the_rows_that_an_earlier_one_has_finished(catalog, job):
    first, _ = begin(catalog, job)
    first.report(10, 40)
    first.abandon("its worker died")
    claim(catalog, job, after=1)
    second, _ = begin(catalog, job, number=2)
    # The plan of another attempt has only the rows without a value.
    second.report(5, 30, rows_checkpointed=20)
    second.end("Succeeded")
    progress = describe(catalog, job)["progress"]
    assert [progress[name] for name in ("rows_committed", "rows_checkpointed", "rows_total")] == [15, 30, 40]


def test_a_paused_attempt_stops_with_its_next_heartbeat(catalog, job):
    attempt, stops = begin(catalog, job)
    catalog.post(f"/management/v1/job/{job.replace('$', '%24')}/pause")
    assert stops.happened.wait(timeout=10)
    assert stops.told == [Stop.PAUSED]
    # Its last commit was already done.
    attempt.end("Succeeded")
    assert describe(catalog, job)["status"] == "Succeeded"


def test_a_heartbeat_finds_that_the_job_was_canceled(catalog, job):
    attempt, stops = begin(catalog, job)
    alter(catalog, job, {"setStatusAction": {"status": "Canceled"}})
    assert stops.happened.wait(timeout=10)
    assert stops.told == [Stop.CANCELED]
    with pytest.raises(AttemptStopped, match="canceled"):
        attempt.end("Succeeded")


def test_an_attempt_that_was_taken_over_stops_and_changes_nothing(catalog, job):
    attempt, stops = begin(catalog, job)
    claim(catalog, job, after=1)
    assert stops.happened.wait(timeout=10)
    assert stops.told == [Stop.LOST]
    with pytest.raises(AttemptStopped, match="no longer"):
        attempt.end("Failed", "of the former attempt")
    found = describe(catalog, job)
    assert (found["status"], found.get("reason")) == ("Running", None)


def test_of_two_processes_of_one_attempt_one_begins(catalog, job):
    first, stops = begin(catalog, job)
    with pytest.raises(AttemptStopped, match="no longer"):
        begin(catalog, job)
    first.end("Succeeded")
    assert stops.told == []


def test_an_attempt_begins_although_the_answer_to_that_was_lost(catalog, job):
    class Lossy(CatalogJob):
        """Repeats its first and its last request, as after lost responses."""

        def start(self, request, retry_seconds):
            super().start(request, retry_seconds)
            return super().start(request, retry_seconds)

        def finish(self, request, retry_seconds):
            super().finish(request, retry_seconds)
            return super().finish(request, retry_seconds)

    attempt = Attempt(Lossy(Connection(catalog.url, catalog.key), job), 1, 20, Process(Stops()))
    assert attempt.begin()["status"] == "Running"
    attempt.end("Succeeded")


def test_an_attempt_outlives_a_catalog_that_is_away_for_less_than_its_lease(tmp_path):
    with Catalog(tmp_path) as catalog:
        job = open_job(catalog, write_films(catalog, ["films"]))
        attempt, stops = begin(catalog, job, lease_seconds=60)
        catalog.kill()
        attempt.report(7, 40)
        catalog.start()
        wait_until(lambda: describe(catalog, job)["progress"].get("rows_committed") == 7, "a heartbeat")
        attempt.end("Succeeded")
        assert stops.told == []


def test_an_attempt_stops_when_no_heartbeat_is_accepted_for_the_length_of_its_lease(tmp_path):
    with Catalog(tmp_path) as catalog:
        job = open_job(catalog, write_films(catalog, ["films"]))
        _, stops = begin(catalog, job, lease_seconds=1)
        catalog.kill()
        assert stops.happened.wait(timeout=30)
        assert stops.told == [Stop.LOST]
        catalog.start()


def test_an_attempt_stops_in_time_when_the_catalog_is_silent(tmp_path):
    with Catalog(tmp_path) as catalog:
        job = open_job(catalog, write_films(catalog, ["films"]))
        begun = time.monotonic()
        _, stops = begin(catalog, job, lease_seconds=6)
        assert catalog.process is not None
        # The process accepts connections but does not respond.
        catalog.process.send_signal(signal.SIGSTOP)
        try:
            assert stops.happened.wait(timeout=30)
            # The runner supersedes an attempt after one and a half leases.
            assert time.monotonic() - begun < 1.5 * 6
        finally:
            catalog.process.send_signal(signal.SIGCONT)
        assert stops.told == [Stop.LOST]


def test_an_attempt_whose_ray_is_gone_stops_when_its_lease_has_ended(catalog, job):
    stops = Stops()
    with socket.create_server(("127.0.0.1", 0)) as head:
        environment = {"RAY_ADDRESS": f"127.0.0.1:{head.getsockname()[1]}"}
        assert has_ray(environment)
    requests = CatalogJob(Connection(catalog.url, catalog.key), job)
    attempt = Attempt(requests, 1, 1, Process(stops, has_ray=lambda: has_ray(environment)))
    begun = attempt.begin()["heartbeat"]
    assert stops.happened.wait(timeout=10)
    assert stops.told == [Stop.LOST]
    # It sent no further heartbeat, so another attempt can supersede it.
    assert describe(catalog, job)["heartbeat"] == begun
    assert has_ray({})


def test_a_heartbeat_that_fails_unexpectedly_does_not_keep_an_attempt_running_after_its_lease(catalog, job):
    def no_memory() -> str:
        raise MemoryError

    stops = Stops()
    attempt = Attempt(CatalogJob(Connection(catalog.url, catalog.key), job), 1, 1, Process(stops, log=no_memory))
    attempt.begin()
    assert stops.happened.wait(timeout=10)
    assert stops.told == [Stop.LOST]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full fails like a full disk")
def test_a_full_disk_for_the_output_neither_keeps_a_stopped_attempt_running_nor_fails_it():
    program = [
        "import threading",
        "from tiltyard.job.__main__ import _leave",
        "from tiltyard.job.attempt import Stop",
        "from tiltyard.job.log_tail import LogTail",
        "LogTail('secret-key').install()",
        "print('output', flush=True)",
        "thread = threading.Thread(target=_leave, args=[Stop.LOST])",
        "thread.start()",
        "thread.join()",
    ]
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", "; ".join(program)], cwd=PACKAGE, stdout=full, stderr=full, check=False)
    assert done.returncode == 5


def test_the_log_keeps_little_of_long_lines():
    tail = LogTail("secret-key")
    for _ in range(50):
        tail.add("x" * 1_000_000 + "secret-key\n")
    assert sum(map(len, tail._lines)) <= 40 * 4_000
    assert "secret-key" not in tail.text()


def test_the_command_runs_a_job_to_its_end(catalog, job, films):
    done = run(catalog, job)
    assert (done.returncode, describe(catalog, job)["status"]) == (0, "Succeeded"), done.stderr
    progress = describe(catalog, job)["progress"]
    assert (progress["rows_committed"], progress["rows_total"]) == (ROWS, ROWS)


def test_the_command_runs_nothing_without_its_claim(catalog, job):
    done = run(catalog, job, number=2)
    assert (done.returncode, describe(catalog, job)["status"]) == (5, "Queued"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_process_of_an_attempt_leaves_its_job_to_another_attempt(catalog, job, number):
    # A service manager sends the signal to all processes of its runner at the same time.
    program = """
import os, ray, sys, tiltyard.job.__main__ as command
def work(job, report):
    ray.init(num_cpus=1, include_dashboard=False)
    os.kill(os.getpid(), int(sys.argv[2]))
    ray.get(ray.remote(lambda: None).remote())
command.work_of = lambda job: work
command.run(["--attempt", "1", sys.argv[1]])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, job, str(int(number))],
        cwd=PACKAGE,
        env={**os.environ, "TILTYARD_CATALOG_URL": catalog.url, "TILTYARD_API_KEY": catalog.key},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = describe(catalog, job)
    assert (done.returncode, found["status"], found.get("reason")) == (128 + number, "Running", None), done.stderr


def test_a_process_that_waited_starts_again_if_packages_were_installed_meanwhile(tmp_path, monkeypatch):
    arguments = ["--attempt", "1", "--lease-seconds", "60", "--", "ns$1"]
    (tmp_path / "attempt.json").write_text(json.dumps(arguments))
    found = iter([{("lance-1.dist-info", 1)}, {("lance-2.dist-info", 2)}])
    executed = []
    monkeypatch.setattr(standby, "_installed", lambda: next(found))
    monkeypatch.setattr(os, "execv", lambda program, command: executed.append((program, command)) or sys.exit())
    with pytest.raises(SystemExit):
        standby.main(tmp_path)
    assert executed == [(sys.executable, [sys.executable, "-m", "tiltyard.job", *arguments])]


def test_the_command_reads_its_key_from_a_file_and_shows_it_nowhere(catalog, job, tmp_path):
    file = tmp_path / "key"
    file.write_text(catalog.key + "\n")
    done = run(catalog, job, TILTYARD_API_KEY="", TILTYARD_API_KEY_FILE=str(file))
    assert done.returncode == 0, done.stderr
    assert catalog.key not in done.stdout + done.stderr


def test_the_last_lines_of_a_job_are_in_the_catalog_without_its_key(catalog, job):
    assert run(catalog, job).returncode == 0
    assert "AlterTableBackfillColumns" in catalog.get(f"/management/v1/job/{job.replace('$', '%24')}/log")["lines"][0]
    tail = LogTail("secret-key")
    for number in range(100):
        tail.add(f"line {number} with secret-")
        tail.add("key\n")
    assert tail.text().splitlines() == [f"line {number} with ***" for number in range(60, 100)]


def test_of_a_line_that_is_written_over_the_log_keeps_what_a_terminal_shows():
    tail = LogTail("secret-key")
    tail.add("ends as Windows does\r\n")
    for percent in range(100_000):
        tail.add(f"\rdone: {percent / 1000:.0f}%")
    assert tail.text() == "ends as Windows does\ndone: 100%"
    tail.add("\n")
    assert tail.text().splitlines() == ["ends as Windows does", "done: 100%"]


def test_the_log_has_no_colors():
    tail = LogTail("secret-key")
    tail.add("\x1b[36m(worker pid=1)\x1b[0m computed\x1b[K\n\x1b]8;;http://x\x07link\x1b[3")
    tail.add("1;1m begun")
    assert tail.text().splitlines() == ["(worker pid=1) computed", "link begun"]


def test_the_log_has_no_blank_lines_of_progress_bars():
    tail = LogTail("secret-key")
    tail.add("ValueError: no such film\n")
    for percent in range(100):
        tail.add(f"\x1b[1mrows\x1b[0m: {percent}%\x1b[A\x1b[A\n\n\n" if percent == 0 else "\n\x1b[A\n")
    assert tail.text().splitlines() == ["ValueError: no such film", "rows: 0%"]


def test_the_log_has_no_warnings_that_each_worker_of_geneva_prints():
    tail = LogTail("secret-key")
    tail.add("(pid=1) Table does not implement 1 member(s) required by the installed lancedb (0.40.0): a.\n")
    tail.add("(pid=2) [WARN lance_table] Building manifest with DataReplacement operation. Use with caution.\n")
    tail.add("(pid=2) computed\n")
    assert tail.text() == "(pid=2) computed"


def test_an_error_that_names_a_file_whose_name_is_no_text_is_told(catalog, job):
    attempt, stops = begin(catalog, job)
    attempt.end("Failed", "no file caf\udce9.png")
    found = describe(catalog, job)
    assert (found["status"], found["reason"]) == ("Failed", "no file caf\\udce9.png")
    assert stops.told == []


def test_an_answer_that_breaks_off_is_none(catalog, job):
    class HalfAnswer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.send_header("content-length", "100")
            self.end_headers()
            self.wfile.write(b'{"status"')

    with http.server.HTTPServer(("127.0.0.1", 0), HalfAnswer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        half = CatalogJob(Connection(f"http://127.0.0.1:{server.server_port}", catalog.key), job)
        with pytest.raises(CatalogUnavailable, match="no response from the catalog"):
            half.heartbeat({"attempt": 1}, 10)
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "page"), [(404, "<h1>404 Not Found</h1>"), (403, '{"message": "blocked"}'), (408, ""), (200, "{}")]
)
def test_an_attempt_outlives_answers_of_a_gateway_that_the_catalog_did_not_send(catalog, job, status, page):
    answered = threading.Semaphore(0)

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())
            answered.release()

    with http.server.HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stops = Stops()
        requests = CatalogJob(Connection(catalog.url, catalog.key), job)
        attempt = Attempt(requests, 1, 60, Process(stops))
        attempt.begin()
        requests._connection = Connection(f"http://127.0.0.1:{server.server_port}", catalog.key)
        for _ in range(2):
            assert answered.acquire(timeout=30)
        server.shutdown()
    requests._connection = Connection(catalog.url, catalog.key)
    attempt.end("Succeeded")
    assert (describe(catalog, job)["status"], stops.told) == ("Succeeded", [])


def test_a_redirect_gets_no_key(catalog, job):
    received = []

    class Redirect(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(302)
            self.send_header("location", f"http://127.0.0.1:{self.server.server_port}/login")
            self.end_headers()

        def do_GET(self):
            received.append(self.headers["x-api-key"])
            self.send_response(200)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", 0), Redirect) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        redirected = CatalogJob(Connection(f"http://127.0.0.1:{server.server_port}", catalog.key), job)
        with pytest.raises(CatalogUnavailable, match="HTTP 302"):
            redirected.heartbeat({"attempt": 1}, 10)
        server.shutdown()
    assert received == []


def test_a_column_that_is_gone_is_told_in_a_sentence(catalog, films, job):
    lancedb.connect_namespace("rest", catalog.properties).open_table(films[-1], namespace_path=films[:-1]).restore(1)
    assert run(catalog, job).returncode == 3
    assert describe(catalog, job)["reason"] == f"JobError: {'$'.join(films)} has no column twice"


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"TILTYARD_CATALOG_URL": ""}, "TILTYARD_CATALOG_URL is not set"),
        ({"TILTYARD_API_KEY": ""}, "set TILTYARD_API_KEY, or TILTYARD_API_KEY_FILE"),
        ({"TILTYARD_API_KEY": "", "TILTYARD_API_KEY_FILE": "/nowhere"}, "TILTYARD_API_KEY_FILE: cannot be read"),
    ],
)
def test_the_command_says_which_setting_is_missing(catalog, job, environment, sentence):
    done = run(catalog, job, **environment)
    assert (done.returncode, describe(catalog, job)["status"]) == (2, "Queued")
    assert sentence in done.stderr


def test_what_may_pass_is_told_from_what_will_fail_again():
    import ray

    assert is_passing(ray.exceptions.WorkerCrashedError())
    assert is_passing(RuntimeError("lance error: connection refused"))
    assert is_passing(ray.exceptions.RayTaskError("f", "trace", OSError("timed out")))
    assert is_passing(ServiceUnavailableError('Connect, "Connection refused"'))
    reset = "Internal error: Failed to execute request: reqwest::Error { message: \"Connection reset by peer\" }"
    assert is_passing(ValueError(f"Namespace error: {reset}"))
    assert not is_passing(ValueError("Namespace error: Table not found: films"))
    assert not is_passing(ValueError("no such film"))
    assert not is_passing(ray.exceptions.RayTaskError("f", "trace", ValueError("no connection")))
    assert not is_passing(JobError("2 of 2 rows failed: httpx.ConnectError: error sending request"))
    task = RuntimeError("Error running task ScanTask(timeout=1) | caused by builtins.ValueError: no such film")
    assert not is_passing(task)
    assert reason_of(task) == "ValueError: no such film"


def test_the_reason_of_a_failure_has_all_lines_of_the_error():
    import ray

    error = ValueError("1 validation error for Film\nyear\n  must be a number\n    For further information visit a site")
    for failed in (error, ray.exceptions.RayTaskError("f", "trace", error)):
        assert reason_of(failed) == f"ValueError: {error}"
    task = 'ray.exceptions.RayTaskError(ValueError): applier.run()\n  File "a.py", line 1, in run\n    f()\n    ^^^\n'
    assert reason_of(RuntimeError(f"{task}ValueError: no film\n  look it up")) == "ValueError: no film\n  look it up"
    assert reason_of(ray.exceptions.RaySystemError("lost", "a stack\ntrace")).startswith("RaySystemError: ")
    assert reason_of(ValueError()) == "ValueError"
    lance = "Incompatible transaction: field 2 was dropped"
    located = OSError(f"{lance}, /home/runner/work/lance/rust/lance/src/io/commit.rs:1922:49")
    assert reason_of(located) == f"OSError: {lance}"

    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert (is_passing(Odd()), reason_of(Odd())) == (False, "Odd")
    without_geneva = JobError("pip install geneva")
    without_geneva.__cause__ = ImportError("No module named 'geneva'")
    assert reason_of(without_geneva) == "JobError: pip install geneva"
    # The attribute of Ray's errors is one of a function's error here, with another value.
    with_cause = ValueError("no film")
    with_cause.cause = "the year"
    for failed in (with_cause, ray.exceptions.RayTaskError("f", "trace", with_cause)):
        assert (is_passing(failed), reason_of(failed)) == (False, "ValueError: no film")
    # A word in another line does not mean that the error of a function is one of the network.
    assert not is_passing(RuntimeError("the connection of two scenes\nis wrong"))


def test_the_package_is_typed_and_makes_a_wheel(tmp_path):
    mypy = subprocess.run([sys.executable, "-m", "mypy"], cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert mypy.returncode == 0, mypy.stdout
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "check", PACKAGE, Path(__file__).parent / "jobs.py"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ruff.returncode == 0, ruff.stdout
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.iterdir()
    assert wheel.name == "tiltyard-0.1.0-py3-none-any.whl"
    # pip installs no release that cannot fill computed columns of local tables.
    [metadata] = importlib.metadata.distributions(path=[str(wheel)])
    allowed = {each.name: each.specifier for each in map(Requirement, metadata.requires)}["lancedb"]
    assert list(allowed.filter(["0.39.0", "0.40.0", "0.40.9", "0.41.0", "1.0.0"])) == ["0.40.0", "0.40.9"]
