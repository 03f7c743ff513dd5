"""Keeps the work of earlier attempts by frequent commits and by a filter that excludes finished rows."""

from __future__ import annotations

import math
import re
from typing import Any

# The number of commits of a backfill. A failed attempt loses about one of these parts.
COMMITS = 20
# The minimum number of checkpoints of a backfill, and the limits of their rows.
CHECKPOINTS = 50
CHECKPOINT_ROWS_MIN = 10
CHECKPOINT_ROWS_MAX = 20_000
# The attributes of a function that determine its checkpoints.
FUNCTION_SIZES = ("checkpoint_size", "batch_size", "min_checkpoint_size", "max_checkpoint_size")

SOURCE_FILES = re.compile(r"_srcfiles-([0-9a-f]+)_frag-\d+$")


def commit_granularity(table: Any) -> int:
    """Returns the number of fragments per commit. Geneva's own default is 64, which is one commit for most tables."""
    return max(1, len(table.to_lance().get_fragments()) // COMMITS)


def checkpoint_size_max(table: Any, column: str) -> int | None:
    """Returns the largest number of rows per checkpoint, or None if the function of the column specifies its own.

    Geneva enlarges checkpoints up to ten seconds of work, which an interruption loses, and which show no progress.
    """
    try:
        from geneva.runners.ray.pipeline import fetch_udf

        function = table._conn._packager.unmarshal(fetch_udf(table, column))
        if any(getattr(function, name, None) is not None for name in FUNCTION_SIZES):
            return None
        return int(min(CHECKPOINT_ROWS_MAX, max(CHECKPOINT_ROWS_MIN, table.count_rows() // CHECKPOINTS)))
    except Exception as error:
        print(f"the size of checkpoints of {column} is that of Geneva: {error}", flush=True)
        return None


def rows_of_backfill(table: Any, column: str, version: int, where: str | None) -> tuple[str | None, float]:
    """Returns the filter of a backfill, or None if Geneva chooses the rows itself, and the number of these rows.

    Geneva computes all rows if the inputs of a column have changed, which it checks in the first fragment only. An
    interrupted backfill may have finished other fragments first, which Geneva mistakes for such a change. The filter
    then selects the rows without a value. The number is infinite if it is unknown.
    """
    try:
        selected = where
        if where is None:
            where, selected = _filter_of_rest(table, column, version)
        return where, table.to_lance().checkout_version(version).count_rows(selected)
    except Exception as error:
        print(f"the rows of {column} without a value cannot be found: {error}", flush=True)
        return where, math.inf


def _filter_of_rest(table: Any, column: str, version: int) -> tuple[str | None, str | None]:
    """Returns the filter for Geneva and that of the rows which Geneva then selects."""
    import pyarrow as pa
    from geneva.apply.blob_range import default_resume_predicate

    function, selected, function_changed, inputs_changed = table._resolve_backfill_context(
        column, udf=None, where=None, read_version=version
    )
    field = table.schema.field(column)
    has_own_filter = pa.types.is_struct(field.type) or table._get_unpack_backfill_context(column) is not None
    if has_own_filter or function_changed or not inputs_changed or not _is_up_to_date(table, column, function):
        return None, selected
    rest = str(default_resume_predicate(column, field))
    return rest, rest


def _is_up_to_date(table: Any, column: str, function: Any) -> bool:
    """Reports whether each fragment with values of the column was computed from its current inputs."""
    from geneva.checkpoint_utils import hash_source_files
    from geneva.runners.ray.pipeline import _get_relevant_field_ids, get_source_data_files

    dataset = table.to_lance()
    keys = table.get_reference().open_checkpoint_store().list_keys(prefix="udf-")
    computed = {match[1] for key in keys if f"_col-{column}_" in key and (match := SOURCE_FILES.search(key))}
    inputs = _get_relevant_field_ids(dataset, function.input_columns)
    output = dataset.lance_schema.field(column).id()
    filled = [each for each in dataset.get_fragments() if any(output in file.fields for file in each.data_files())]
    return all(hash_source_files(get_source_data_files(each, inputs)) in computed for each in filled)
