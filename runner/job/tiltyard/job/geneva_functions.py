"""The functions that a job of Geneva runs, and the check whether a worker of its Ray has enough resources for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiltyard.job import needs

# The metadata keys of a view's schema with its definition.
VIEW_UDTF = b"geneva::view::udtf"
VIEW_CHUNKER = b"geneva::view::chunker"
VIEW_QUERY = b"geneva::view::query"


def require_workers_for_column(column: str, function: Any | None) -> None:
    """Raises JobError for a function that no worker has resources for."""
    _require(f"the function of {column}", lambda: _present(function))


def function_of_column(table: Any, column: str) -> Any | None:
    """Returns the function of a column; None if only its workers have the modules of it."""
    from geneva.runners.ray.pipeline import fetch_udf

    return table._conn._packager.unmarshal(fetch_udf(table, column))


def missing_module(table: Any, column: str) -> str | None:
    """Returns the module that this process lacks to read the function of a column."""
    from geneva.runners.ray.pipeline import fetch_udf
    from ray import cloudpickle

    try:
        cloudpickle.loads(table._conn._packager.backend(fetch_udf(table, column)).udf_pickle)
    except ModuleNotFoundError as error:
        return error.name
    return None


def require_workers_for_view(table: Any) -> None:
    """Checks a view like a column. A view has a function that creates its rows, functions that fill its columns, or
    none."""
    _require(f"a function of the view {table.name}", lambda: _of_view(table))


def accept_functions_of_batches() -> None:
    """Lets Geneva update the record of a job whose function reads a whole `pa.RecordBatch` and thus names no columns.

    The client of the remote mode has created the record. Lance cannot write the empty list of columns into it.
    """
    from geneva.jobs.jobs import JobStateManager

    launch = JobStateManager.launch

    def launch_without_columns(self: Any, *names: Any, input_columns: Any = None, **fields: Any) -> Any:
        return launch(self, *names, input_columns=input_columns or None, **fields)

    JobStateManager.launch = launch_without_columns


def _require(what: str, read: Callable[[], list[Any]]) -> None:
    found = needs.workers()
    if found is None:
        return
    try:
        functions = read()
    except Exception as error:
        print(f"{what} cannot be read: {error}", flush=True)
        return
    for function in functions:
        needs.require(what, needs.needs_of(function), found)


def _of_view(table: Any) -> list[Any]:
    from geneva.packager import ChunkerSpec, UDTFSpec, unmarshal_chunker, unmarshal_udtf
    from geneva.query import GenevaQuery

    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    if VIEW_UDTF in metadata:
        return _present(unmarshal_udtf(UDTFSpec.from_json(metadata[VIEW_UDTF].decode())))
    if VIEW_CHUNKER in metadata:
        return _present(unmarshal_chunker(ChunkerSpec.from_json(metadata[VIEW_CHUNKER].decode())))
    if VIEW_QUERY not in metadata:
        return []
    query = GenevaQuery.model_validate_json(metadata[VIEW_QUERY].decode())
    return [each.udf for each in query.extract_column_udfs(table._conn._packager)]


def _present(function: Any) -> list[Any]:
    return [] if function is None else [function]
