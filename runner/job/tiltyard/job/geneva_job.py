"""Backfills of UDF columns and refreshes of views, which Geneva executes on Ray."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from tiltyard.job import needs
from tiltyard.job.geneva_errors import (
    name_table_in_errors,
    require_few_skipped,
    skipped_rows_max,
    with_error_policy,
)
from tiltyard.job.geneva_failed_rows import failed_rows
from tiltyard.job.geneva_functions import (
    accept_functions_of_batches,
    function_of_column,
    missing_module,
    require_workers_for_column,
    require_workers_for_view,
)
from tiltyard.job.geneva_resume import checkpoint_size_max, commit_granularity, rows_of_backfill
from tiltyard.job.geneva_table import open_with_geneva
from tiltyard.job.job import Job, JobError, Report, Result

POLL_SECONDS = 1.0
# The time for the counters at the end, which are the progress of the finished job.
LAST_POLL_SECONDS = 10.0
# Geneva's counter of the rows that it left without a value.
SKIPPED = "rows_skipped_on_error"
# Geneva's counters that are reported, and their names in the progress of a job. Times are sums over all workers.
COUNTERS = {
    "rows_checkpointed": "rows_checkpointed",
    "rows_ready_for_commit": "rows_ready_for_commit",
    "tasks_completed": "tasks_completed",
    SKIPPED: SKIPPED,
    "cnt_geneva_workers_active": "workers_active",
    "cnt_geneva_workers_pending": "workers_pending",
    "plan_read_time_ms": "plan_millis",
    "read_io_time_ms": "read_millis",
    "udf_processing_time": "compute_millis",
    "batch_checkpointing_time": "checkpoint_millis",
    "writer_write_time": "write_millis",
    "commit_time_ms": "commit_millis",
    "commit_conflict_retries": "commit_retries",
}
# A count of the progress, 1 for a backfill that also computes rows with a value, because the function or its inputs
# have changed.
REPLACES_VALUES = "replaces_values"
# Geneva's counters of the rows of whole fragments.
ROW_COUNTERS = ("rows_checkpointed", "rows_ready_for_commit", "rows_committed")
# The memory that Geneva reserves for an applier whose UDF specifies none.
APPLIER_MEMORY_BYTES = 4 * 2**30
APPLIER_MEMORY = "JOB__APPLIER_DEFAULT_MEMORY_BYTES"

# A variable that the runner sets for a job on a Ray with an autoscaler.
AUTOSCALES = "TILTYARD_RAY_AUTOSCALES"
# The defaults of Geneva for a request, and the CPUs that it needs in addition to its appliers.
CONCURRENCY = 8
DRIVER_CPUS = 1
REFUSED_ADMISSION = "ResourcesUnavailableError"
# The text of Geneva's error for a function whose modules are missing. It does not name them.
UNREADABLE_FUNCTION = "Failed to unmarshal UDF"

# The fields of AlterTableBackfillColumns that are equally named parameters of Geneva's backfill. `cluster` and
# `manifest` are for the runner.
BACKFILL_ARGUMENTS = (
    "concurrency",
    "intra_applier_concurrency",
    "min_checkpoint_size",
    "max_checkpoint_size",
    "read_version",
    "task_size",
    "num_frags",
    "checkpoint_size",
    "commit_granularity",
    "batch_checkpoint_flush_interval_seconds",
)
CHECKPOINT_SIZES = {"checkpoint_size", "min_checkpoint_size", "max_checkpoint_size"}
REFRESH_ARGUMENTS = (
    "src_version",
    "max_rows_per_fragment",
    "concurrency",
    "intra_applier_concurrency",
    "source_task_size",
    "output_limit",
)


def backfill(job: Job, report: Report) -> Result:
    """Fills a UDF column where it is null, or where the request specifies. Continues from checkpoints of the same job
    id."""
    parameters = job.parameters
    from tiltyard.job.geneva_checked_function import checked

    table = _open_table(job)
    function = function_of_column(table, parameters["column"])
    require_workers_for_column(parameters["column"], function)
    arguments = _arguments(job, BACKFILL_ARGUMENTS)
    source_version = table.version
    failed = failed_rows(job, table) if "failed_rows_of" in parameters else None
    if failed is not None and failed.rows == 0:
        return {**failed.result, "source_version": source_version}
    where = parameters.get("where") if failed is None else failed.where
    # The version of the request lacks the rows that earlier attempts have committed.
    if job.attempt > 1:
        arguments.pop("read_version", None)
    version = arguments.get("read_version", source_version)
    selected = rows_of_backfill(table, parameters["column"], version, where, REPLACES_VALUES in job.progress)
    if selected.where is not None:
        arguments["where"] = selected.where
    if selected.replaces_values:
        report = _marked(report, int(min(selected.count, table.count_rows())))
    arguments.setdefault("commit_granularity", commit_granularity(table))
    if not CHECKPOINT_SIZES & arguments.keys():
        bound = checkpoint_size_max(table, parameters["column"])
        arguments.update({} if bound is None else {"max_checkpoint_size": bound})
    if function is not None and "error_policy" in parameters:
        arguments["udf"] = checked(with_error_policy(function, parameters))
    # Geneva accepts no function for one of several columns that share a function.
    elif function is not None and table._get_unpack_backfill_context(parameters["column"]) is None:
        arguments["udf"] = checked(function)

    rows = table.count_rows()
    skipped_max = skipped_rows_max(function, parameters, rows)

    def run(fitted: dict[str, Any]) -> None:
        running = table.backfill_async(parameters["column"], job_id=job.id, **fitted)
        poll = CounterPoll(lambda: running.future.job_tracker)

        def look(counters: Counters, resources: dict[str, int]) -> None:
            _report(_of_selected(counters, selected.count), report, resources)
            require_few_skipped(counters.get(SKIPPED, {}).get("n", 0), rows, skipped_max)

        while not running.done(timeout=POLL_SECONDS):
            look(poll.read(), _resources())
        running.result()
        look(poll.read_last(), {})

    try:
        _run_fitted(run, arguments)
    except Exception as error:
        if function is None and UNREADABLE_FUNCTION in str(error):
            raise _unreadable(table, parameters["column"]) from error
        raise
    finally:
        name_table_in_errors(job)
    table.checkout_latest()
    result = {"source_version": source_version, "published_version": table.version}
    return result if failed is None else {**result, **failed.result}


def _marked(report: Report, rows: int) -> Report:
    """Reports that the backfill replaces values of some rows, so that the next attempt replaces the rest of them."""

    def marked(rows_committed: int, rows_total: int, **counters: int) -> None:
        report(rows_committed, rows_total, **counters, **{REPLACES_VALUES: 1})

    marked(0, rows)
    return marked


def refresh(job: Job, report: Report) -> Result:
    """Updates a view to the state of its source."""
    table = _open_table(job)
    require_workers_for_view(table)
    arguments = _arguments(job, REFRESH_ARGUMENTS)
    source_version = table.version
    with _reports_of_refresh(job, report):
        _run_fitted(lambda fitted: table.refresh(job_id=job.id, **fitted), arguments)
    table.checkout_latest()
    rows = table.count_rows()
    report(rows, rows)
    return {"source_version": source_version, "published_version": table.version}


def _unreadable(table: Any, column: str) -> JobError:
    return JobError(
        f"the function of {column} needs the module {missing_module(table, column)}, which Ray does not have: add it "
        "to py_modules or pip of a manifest, or define all of the function in the notebook or script that adds it"
    )


@contextlib.contextmanager
def _reports_of_refresh(job: Job, report: Report) -> Iterator[None]:
    """Reports the progress of a refresh from another thread, because Geneva's call returns at the end only."""
    import ray
    from geneva.runners.ray.naming import job_tracker_name

    poll = CounterPoll(lambda: ray.get_actor(job_tracker_name(job.id)))
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(POLL_SECONDS):
            _report(poll.read(), report, _resources())

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _arguments(job: Job, names: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments of Geneva: those with names, and those that the request's schema lacks. Geneva raises for
    those that it lacks, too."""
    named = {name: value for name, value in job.parameters.items() if name in names}
    return {**job.parameters.get("options", {}), **named}


def prepare() -> None:
    """Imports Geneva's parts that a job uses. Raises ImportError without Geneva."""
    import geneva
    import geneva.runners.ray.pipeline  # noqa: F401


def _open_table(job: Job) -> Any:
    import ray

    # Ray would run Geneva's driver again after the death of its process, without the filter that excludes finished
    # rows. The next attempt at the job has that filter.
    os.environ["RAY_TASK_MAX_RETRIES"] = "0"
    ray.init(ignore_reinit_error=True, log_to_driver=True)
    _limit_reserved_memory(ray.nodes())
    table = open_with_geneva(job)
    accept_functions_of_batches()
    return table


def _run_fitted(run: Callable[[dict[str, Any]], None], arguments: dict[str, Any]) -> None:
    """Runs with as many appliers as this Ray has resources for. Geneva rejects a job immediately if not even one fits.

    A Ray that creates nodes on demand has resources for all of them.
    """
    import ray

    if os.environ.get(AUTOSCALES) == "1":
        return run(arguments)
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1) - DRIVER_CPUS))
    concurrency = min(arguments.get("concurrency", CONCURRENCY), cpus)
    while True:
        try:
            return run({**arguments, "concurrency": concurrency, "_admission_strict": True})
        except Exception as error:
            if type(error).__name__ != REFUSED_ADMISSION or concurrency == 1:
                raise
        # Only the rejection reveals the resources that Geneva reserves in addition to CPUs.
        concurrency //= 2


def _limit_reserved_memory(nodes: list[dict[str, Any]]) -> None:
    """Disables the memory reservation of appliers if no node has enough memory for an applier and Geneva's own
    reservation."""
    present = [node["Resources"].get("memory", 0) for node in nodes if node["Alive"]]
    found = needs.workers()
    largest = max(present if found is None else [each.memory_bytes for each in found.values()], default=0)
    if largest < 2 * APPLIER_MEMORY_BYTES:
        os.environ.setdefault(APPLIER_MEMORY, "0")


Counters = dict[str, dict[str, int]]


class CounterPoll:
    """Reads Geneva's counters, with at most one request at a time. A failure is no error of the job."""

    def __init__(self, tracker: Callable[[], Any]) -> None:
        """The tracker is an actor, which may not exist yet."""
        self._tracker = tracker
        self._requested: Any = None

    def read(self, timeout_seconds: float = 0) -> Counters:
        """Returns the counters, or none if they have not arrived in time."""
        import ray

        try:
            if self._requested is None:
                self._requested = self._tracker().get_all.remote()
            arrived, _ = ray.wait([self._requested], timeout=timeout_seconds)
            if not arrived:
                return {}
            requested, self._requested = self._requested, None
            return cast(Counters, ray.get(requested))
        except Exception:
            self._requested = None
            return {}

    def read_last(self) -> Counters:
        """Returns the counters at the end. A request that is still open may be answered with earlier ones."""
        self._requested = None
        return self.read(LAST_POLL_SECONDS)


def _report(counters: Counters, report: Report, resources: dict[str, int]) -> None:
    rows = counters.get("rows_committed") or _rows_of_batches(counters)
    if rows is None:
        return
    others = {name: counters[counter]["n"] for counter, name in COUNTERS.items() if counter in counters}
    report(rows["n"], rows["total"], **others, **resources)


def _of_selected(counters: Counters, selected: float) -> Counters:
    """Returns counters of the selected rows. Those of Geneva include the other rows of the same fragments."""

    def scaled(counter: dict[str, int]) -> dict[str, int]:
        total = int(min(counter["total"], selected))
        return {**counter, "n": counter["n"] * total // max(counter["total"], 1), "total": total}

    return {name: scaled(each) if name in ROW_COUNTERS else each for name, each in counters.items()}


def _rows_of_batches(counters: Counters) -> dict[str, int] | None:
    """Returns the rows that a chunker has produced. All rows are estimated from the finished batches of its source."""
    produced, batches = counters.get("rows_produced"), counters.get("batches")
    if produced is None or batches is None or batches["n"] == 0:
        return None
    return {"n": produced["n"], "total": produced["n"] * max(batches["n"], batches["total"]) // batches["n"]}


def _resources() -> dict[str, int]:
    """Returns the CPUs and GPUs of this Ray, and those that its tasks reserve; none if Ray does not respond."""
    import ray

    try:
        total, free = ray.cluster_resources(), ray.available_resources()
    except Exception:
        return {}
    present = [name for name in ("CPU", "GPU") if name in total]
    counts = {f"{name.lower()}s": round(total[name]) for name in present}
    return counts | {f"{name.lower()}s_reserved": round(total[name] - free.get(name, 0)) for name in present}
