"""Keeps the work of earlier attempts by frequent commits and by a filter that excludes finished rows."""

from __future__ import annotations

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


def filter_of_rest(table: Any, column: str) -> str | None:
    """Returns the filter for the rows without a value, or None if Geneva chooses the rows itself.

    Geneva computes all rows if the inputs of a column have changed, which it checks in the first fragment only. An
    interrupted backfill may have finished other fragments first, which Geneva mistakes for such a change.
    """
    try:
        return _filter_of_rest(table, column)
    except Exception as error:
        print(f"the finished rows of {column} cannot be found: {error}", flush=True)
        return None


def _filter_of_rest(table: Any, column: str) -> str | None:
    import pyarrow as pa
    from geneva.apply.blob_range import default_resume_predicate
    from geneva.apply.utils import detect_backfill_mismatches
    from geneva.runners.ray.pipeline import fetch_udf

    field = table.schema.field(column)
    if pa.types.is_struct(field.type) or table._get_unpack_backfill_context(column) is not None:
        return None
    function = table._conn._packager.unmarshal(fetch_udf(table, column))
    function_changed, inputs_changed = detect_backfill_mismatches(table, column, function, table.version)
    if function_changed or not inputs_changed or not _is_up_to_date(table, column, function):
        return None
    return str(default_resume_predicate(column, field))


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
