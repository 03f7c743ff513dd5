"""Writes the values of a Function into fragments and commits them.

A fragment gets one new data file with all its values of the changed columns, whether these columns had no file, an own
one, or shared one with others after an upsert or a compaction. Lance's `update_columns` does that by the addresses of
rows. The commit is Lance's operation Update: it survives concurrent appends and changes of other fragments, and
conflicts with those of the same fragments.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

WRITERS = 4


def write_values(dataset: Any, values: Mapping[int, Any]) -> Any:
    """Commits tables with the addresses and the values of rows by fragment. Returns the dataset of the new version.

    Rows without a new value keep the one that they have. Raises Lance's error of a conflict.
    """
    from lance import LanceDataset, LanceOperation

    def written(fragment_id: int) -> tuple[Any, list[int]]:
        changed: tuple[Any, list[int]] = dataset.get_fragment(fragment_id).update_columns(
            values[fragment_id], left_on="_rowaddr"
        )
        return changed

    with ThreadPoolExecutor(WRITERS) as writers:
        changed = list(writers.map(written, values))
    update = LanceOperation.Update(
        updated_fragments=[metadata for metadata, _ in changed],
        fields_modified=sorted({field for _, fields in changed for field in fields}),
        update_mode="rewrite_columns",
    )
    return LanceDataset.commit(dataset, update, read_version=dataset.version)
