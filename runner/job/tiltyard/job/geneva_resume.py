"""Keeps the work of earlier attempts by frequent commits and by a filter that excludes finished rows."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tiltyard.job.function_state import OFFSET_BITS, field_ids

# The number of commits of a backfill. A failed attempt loses about one of these parts.
COMMITS = 20
# The minimum number of checkpoints of a backfill, and the limits of their rows.
CHECKPOINTS = 50
CHECKPOINT_ROWS_MIN = 10
CHECKPOINT_ROWS_MAX = 20_000
# The attributes of a function that determine its checkpoints.
FUNCTION_SIZES = ("checkpoint_size", "batch_size", "min_checkpoint_size", "max_checkpoint_size")

# The end of the name of a checkpoint of a whole fragment: a digest of the files of its inputs, and its id.
FRAGMENT_CHECKPOINT = re.compile(r"_srcfiles-([0-9a-f]+)_frag-(\d+)$")
READERS = 16


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


@dataclass(frozen=True)
class Rows:
    """The rows that a backfill computes."""

    # The filter for Geneva, or None if Geneva chooses the rows itself.
    where: str | None
    # Infinite if it is unknown.
    count: float
    # The backfill replaces existing values, because the function or its inputs have changed.
    replaces_values: bool


def rows_of_backfill(table: Any, column: str, version: int, where: str | None, replaces_values: bool) -> Rows:
    """Returns the rows of a backfill, and whether it replaces values, as an earlier attempt may have found out.

    Geneva computes all rows again if the function or its inputs have changed, which it sees by its checkpoints of the
    first fragment. An interrupted backfill may have finished this fragment, so that Geneva would leave the former
    values of the others; or all others, so that Geneva would compute them again. Without a filter of the request, the
    filter therefore selects the rows without a value and the fragments with outdated values.
    """
    try:
        dataset = table.to_lance().checkout_version(version)
        selected = where
        if where is None:
            where, selected, replaces_values = _rest(table, dataset, column, replaces_values)
        return Rows(where, dataset.count_rows(selected), replaces_values)
    except Exception as error:
        print(f"the rows of {column} without a current value cannot be found: {error}", flush=True)
        return Rows(where, math.inf, replaces_values)


def without_value(table: Any, column: str) -> str | None:
    """Returns the filter of rows without a value; None for a struct, which is never null as a whole."""
    import pyarrow as pa
    from geneva.apply.blob_range import default_resume_predicate

    group = table._get_unpack_backfill_context(column)
    if group is not None:
        return str(group.default_where)
    field = table.schema.field(column)
    return None if pa.types.is_struct(field.type) else str(default_resume_predicate(column, field))


def _rest(table: Any, dataset: Any, column: str, replaces_values: bool) -> tuple[str | None, str | None, bool]:
    """Returns the filter for Geneva, that of the rows which Geneva then selects, and whether these have values."""
    function, selected, function_changed, inputs_changed = table._resolve_backfill_context(
        column, udf=None, where=None, read_version=dataset.version
    )
    rest = without_value(table, column)
    # Geneva computes all rows of a struct without a checkpoint of their fragment.
    if rest is None:
        return None, selected, replaces_values
    replaces_values = replaces_values or function_changed or inputs_changed
    outdated = _outdated(table, dataset, column, function, replaces_values)
    if not outdated and not function_changed and not inputs_changed:
        return None, selected, replaces_values
    where = " OR ".join(f"({each})" for each in [rest, *_rows_of(outdated)])
    return where, where, replaces_values


def _rows_of(fragments: Sequence[int]) -> list[str]:
    """Returns filters of the rows of fragments with increasing ids."""
    ranges: list[list[int]] = []
    for each in fragments:
        if ranges and ranges[-1][1] == each:
            ranges[-1][1] += 1
        else:
            ranges.append([each, each + 1])
    return [f"_rowaddr >= {first << OFFSET_BITS} AND _rowaddr < {end << OFFSET_BITS}" for first, end in ranges]


def _outdated(table: Any, dataset: Any, column: str, function: Any, replaces_values: bool) -> list[int]:
    """Returns the fragments whose values were not computed by this function from their current inputs.

    A checkpoint of a whole fragment names the file with its values. Fragments without checkpoints, such as those of a
    compaction, are outdated if the backfill replaces values.
    """
    from geneva.checkpoint_utils import hash_source_files
    from geneva.runners.ray.pipeline import _get_relevant_field_ids, get_source_data_files

    store = table.get_reference().open_checkpoint_store()
    checkpoints = _checkpoints_of(store, table, column)
    inputs = _get_relevant_field_ids(dataset, function.input_columns)
    outputs = set(field_ids(dataset, [column]))

    def is_outdated(fragment: Any) -> bool:
        files = fragment.data_files()
        if not any(outputs & set(each.fields) for each in files):
            return False
        known = checkpoints[fragment.fragment_id]
        current = (function.checkpoint_version, hash_source_files(get_source_data_files(fragment, inputs)))
        if known.keys() <= {current} and not replaces_values:
            return False
        paths = {each.path for each in files}
        return not any(_file_of(store[name]) in paths for name in known.get(current, []))

    with ThreadPoolExecutor(READERS) as readers:
        fragments = dataset.get_fragments()
        found = zip(fragments, readers.map(is_outdated, fragments), strict=True)
        return sorted(fragment.fragment_id for fragment, is_found in found if is_found)


def _checkpoints_of(store: Any, table: Any, column: str) -> dict[int, dict[tuple[str, str], list[str]]]:
    """Returns the names of a column's checkpoints by fragment, version of the function and digest of the inputs."""
    from geneva.checkpoint import _parse_udf_version_from_fragment_checkpoint_key

    group = table._get_unpack_backfill_context(column)
    column = column if group is None else group.checkpoint_column
    found: dict[int, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    for name in store.list_keys(prefix="udf-"):
        version = _parse_udf_version_from_fragment_checkpoint_key(name, column)
        match = FRAGMENT_CHECKPOINT.search(name)
        if version is not None and match is not None:
            found[int(match[2])].setdefault((version, match[1]), []).append(name)
    return found


def _file_of(checkpoint: Any) -> str:
    return "".join(each for each in checkpoint["file"].to_pylist() if each is not None)
