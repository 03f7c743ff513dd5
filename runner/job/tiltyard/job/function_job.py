"""The refresh of the columns of a LanceDB Function on Ray."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tiltyard.connection import connection
from tiltyard.job import contracts, needs, ray_tasks
from tiltyard.job.catalog_job import CatalogJob, as_text
from tiltyard.job.function_child import MODULE, FunctionFailure, Start
from tiltyard.job.function_environment import Requirements, resolved
from tiltyard.job.function_process import schema_text
from tiltyard.job.function_refresh import WHOLE_VALUE, Columns, Refresh
from tiltyard.job.function_state import Record, quoted
from tiltyard.job.function_worker import FunctionSpec, Part, Piece, Worker
from tiltyard.job.job import Job, JobError, Report, Result
from tiltyard.job.table import open_dataset, open_table

# The largest numbers of records in one request. A character of an error may need 6 bytes, and a body has 4 MiB.
RECORDS_MAX = 1_000
ERRORS_MAX = 100
# The largest numbers of errors of rows that an attempt records. The catalog records the numbers of all failed rows.
ERRORS_OF_FRAGMENT_MAX = 100
ERRORS_OF_JOB_MAX = 1_000
ERROR_TYPE_LENGTH_MAX = 1_000
# The key of the metadata of a Function's output column.
BINDING = b"tiltyard.function_binding"
CLOSE_SECONDS = 15.0
# The number of workers that an attempt replaces after their end, such as that of a node.
LOST_WORKERS_MAX = 5


def refresh(job: Job, report: Report) -> Result:
    """Fills the rows of the Function's columns that have no current value. Continues from the catalog's records."""
    catalog = CatalogJob(job.connection, job.id)
    function = catalog.describe_function()
    dataset = open_table(job)
    _require_inputs(function, dataset)
    columns = Columns(
        [each["path"] for each in function["inputs"]],
        {each["column"]: each["result"] for each in function["outputs"]},
    )
    spec = _spec_of(function, dataset.schema, _requirements_of(function))
    records = {each["fragment_id"]: Record(each["signature"], each["rows"]) for each in function["fragments"]}
    # All workers of an attempt have the same values, also if a secret is altered meanwhile.
    secrets = catalog.read_secrets({"attempt": job.attempt, "claim": job.claim}) if function["secrets"] else {}
    resources = needs.Resources(cpus=1, gpus=1 if function["gpu"] else 0)
    slots = ray_tasks.task_slots(job.parameters.get("concurrency"), _title(function), resources)
    pool = RayPool(spec, job.table, slots, secrets, resources)
    try:
        recorder = Recorder(job, catalog)
        rows_of_job = job.progress.get("rows_total", 0)
        return Refresh(columns, lambda: open_table(job), pool, recorder, report).run(records, rows_of_job)
    finally:
        pool.close()


def _title(function: contracts.JobFunction) -> str:
    return f"{function['name']} version {function['version']}"


def _requirements_of(function: contracts.JobFunction) -> Requirements | None:
    try:
        found = resolved(_title(function), function["python_version"], function["packages"])
    except FunctionFailure as failure:
        raise JobError(str(failure)) from None
    if found is not None:
        print(f"{found.title} runs in Python {found.python_version} with {', '.join(found.pins.split())}", flush=True)
    return found


def _require_inputs(function: contracts.JobFunction, dataset: Any) -> None:
    """Raises JobError if an input is the output of a Function that was never refreshed."""
    for path in (each["path"] for each in function["inputs"]):
        column = path.split(".")[0].strip("`")
        if column not in _computed_columns(dataset.schema) or dataset.count_rows() == 0:
            continue
        if dataset.count_rows(f"{quoted(column)} IS NOT NULL") == 0:
            raise JobError(f"the column {column} is an input of {_title(function)} and has no values: refresh it first")


def _computed_columns(schema: Any) -> set[str]:
    """Returns the columns that Functions compute."""
    return {field.name for field in schema if BINDING in (field.metadata or {})}


def _spec_of(function: contracts.JobFunction, schema: Any, requirements: Requirements | None) -> FunctionSpec:
    start = Start(
        _title(function),
        function["entrypoint"],
        _files_of(function),
        [each["parameter"] for each in function["inputs"]],
        function["initialization"],
        schema_text(_output_of(function, schema)),
    )
    needed = {each["name"] for each in function["input_types"] if not each["nullable"]}
    # A null in the output of another Function means that its value is not known yet.
    computed = _computed_columns(schema)
    return FunctionSpec(
        start,
        function["env"],
        {each["parameter"]: quoted(each["path"]) for each in function["inputs"]},
        [
            each["parameter"]
            for each in function["inputs"]
            if each["parameter"] in needed or each["path"].split(".")[0].strip("`") in computed
        ],
        requirements,
        function["gpu"],
    )


def _files_of(function: contracts.JobFunction) -> dict[str, str]:
    text = base64.b64decode(function["content"]).decode()
    files: dict[str, str] = json.loads(text)["files"] if function["kind"] == "python_bundle" else {f"{MODULE}.py": text}
    return files


def _output_of(function: contracts.JobFunction, schema: Any) -> Any:
    """Returns a schema with one field for the result. Its types are those of the columns."""
    import pyarrow as pa

    columns = {each["result"]: schema.field(each["column"]).type for each in function["outputs"]}
    output = function["output"]
    if output["kind"] == "scalar":
        return pa.schema([pa.field("value", columns[WHOLE_VALUE], output["nullable"])])
    nullable = {each["name"]: each["nullable"] for each in output["fields"]}
    if WHOLE_VALUE in columns:
        kind = columns[WHOLE_VALUE]
        types = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
    else:
        types = columns
    fields = [pa.field(name, kind, nullable[name]) for name, kind in types.items()]
    return pa.schema([pa.field("value", pa.struct(fields), nullable=False)])


class Recorder:
    """Records fragments after their values, in as many requests as their limits require."""

    def __init__(self, job: Job, catalog: CatalogJob) -> None:
        self._job = job
        self._catalog = catalog
        # The failed rows of this attempt by fragment. An attempt computes those of earlier attempts again.
        self._failed: Counter[int] = Counter()
        self._recorded: Counter[int] = Counter()
        self._errors = 0

    def __call__(
        self, version: int, records: Mapping[int, Record], removed: Sequence[int], errors: Sequence[dict[str, Any]]
    ) -> None:
        fragments: list[contracts.FunctionFragment] = [
            {"fragment_id": fragment_id, "signature": each.signature, "rows": each.rows}
            for fragment_id, each in records.items()
        ]
        # A fragment counts as computed only after its errors are recorded.
        self._record_errors(version, errors)
        for first in range(0, max(len(fragments), len(removed)), RECORDS_MAX):
            last = first + RECORDS_MAX
            request = self._empty(version)
            request["fragments"], request["removed"] = fragments[first:last], list(removed[first:last])
            self._catalog.record_function(request)

    def _record_errors(self, version: int, errors: Sequence[dict[str, Any]]) -> None:
        recorded: list[contracts.FunctionRowError] = []
        for each in errors:
            fragment_id = each["fragment_id"]
            self._failed[fragment_id] += 1
            if self._recorded[fragment_id] < ERRORS_OF_FRAGMENT_MAX and self._errors < ERRORS_OF_JOB_MAX:
                self._recorded[fragment_id] += 1
                self._errors += 1
                recorded.append(_row_error(each))
        for first in range(0, len(recorded), ERRORS_MAX):
            self._catalog.record_function({**self._empty(version), "errors": recorded[first : first + ERRORS_MAX]})
        changed = sorted({each["fragment_id"] for each in errors})
        for first in range(0, len(changed), RECORDS_MAX):
            failed: list[contracts.FunctionFailures] = [
                {"fragment_id": fragment_id, "rows": self._failed[fragment_id]}
                for fragment_id in changed[first : first + RECORDS_MAX]
            ]
            self._catalog.record_function({**self._empty(version), "failed": failed})

    def _empty(self, version: int) -> contracts.RecordJobFunctionRequest:
        return {"attempt": self._job.attempt, "claim": self._job.claim, "version": version, "fragments": []}


def _row_error(error: dict[str, Any]) -> contracts.FunctionRowError:
    return {
        "fragment_id": error["fragment_id"],
        "row_offset": error["row"],
        "error_type": as_text(error["type"])[:ERROR_TYPE_LENGTH_MAX],
        "error_message": as_text(error["message"]),
    }


def open_version(table: list[str], version: int) -> Any:
    """Opens a version of the table on any node of the Ray."""
    return open_dataset(connection(), table, version)


class RayPool:
    """Actors with one worker each. The part of an actor that died is computed again by another one."""

    def __init__(
        self,
        spec: FunctionSpec,
        table: list[str],
        slots: int,
        secrets: Mapping[str, str],
        resources: needs.Resources,
    ) -> None:
        self.slots = slots
        self._resources = resources
        self._secrets = secrets
        self._spec = spec
        self._table = table
        self._idle: list[Any] = []
        # The actor and its request by the reference to the result.
        self._running: dict[Any, tuple[Any, int, Sequence[Piece]]] = {}
        self._lost = 0
        self.grow(1)

    @property
    def is_idle(self) -> bool:
        return bool(self._idle)

    @property
    def is_busy(self) -> bool:
        return bool(self._running)

    def submit(self, version: int, pieces: Sequence[Piece]) -> None:
        actor = self._idle.pop()
        self._running[actor.compute.remote(version, pieces)] = (actor, version, pieces)

    def next(self) -> Part:
        import ray

        while True:
            [done], _ = ray.wait(list(self._running))
            actor, version, pieces = self._running.pop(done)
            try:
                part: Part = ray.get(done)
            except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
                self._lost += 1
                if self._lost > LOST_WORKERS_MAX:
                    raise
                print(f"a worker ended, and another one computes its rows: {error}", flush=True)
                self._idle.append(self._start())
                self.submit(version, pieces)
                continue
            self._idle.append(actor)
            return part

    def grow(self, workers: int) -> None:
        while len(self._idle) + len(self._running) < min(workers, self.slots):
            self._idle.append(self._start())

    def _start(self) -> Any:
        import ray

        worker = ray.remote(num_cpus=self._resources.cpus, num_gpus=self._resources.gpus)(Worker)
        actor = worker.remote(self._spec, functools.partial(open_version, self._table))
        # Ray's head stores the arguments of constructors. It sends those of methods to the actor alone.
        actor.receive_secrets.remote(*self._secrets.items())
        return actor

    def close(self) -> None:
        """Lets instances close themselves. Ray ends the actors that still compute together with the job."""
        import ray

        with contextlib.suppress(Exception):
            ray.get([actor.close.remote() for actor in self._idle], timeout=CLOSE_SECONDS)
