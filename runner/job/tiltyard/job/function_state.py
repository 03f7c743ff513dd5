"""The rows of a table that a Function still has to compute.

The catalog stores for each fragment a signature of its inputs and the number of its rows that were computed from them.
Lance never changes a data file, so the files of the inputs are such a signature. An update or an upsert moves its rows
to a new fragment, which has no record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

# The largest number of versions in which compactions are searched.
VERSIONS_MAX = 1_024
# The lower bits of the address of a row: its offset within the fragment.
OFFSET_BITS = 32
OFFSET_MASK = 0xFFFF_FFFF


@dataclass(frozen=True)
class Record:
    """The computed rows of a fragment: those before an offset, including deleted ones."""

    signature: str
    rows: int


Records = Mapping[int, Record]


@dataclass(frozen=True)
class FragmentWork:
    """The rows of a fragment to compute, as positions among its rows without the deleted ones."""

    fragment_id: int
    signature: str
    # The number of rows of the table before this fragment, without deleted ones.
    begin: int
    # All rows of the fragment, including deleted ones, and those before the first uncomputed one.
    physical_rows: int
    computed_rows: int
    # Rows that were computed but have no value, because they failed.
    failed: Sequence[int]
    # The rows that were never computed from these inputs.
    missing: range

    @property
    def rows(self) -> int:
        return len(self.failed) + len(self.missing)


def field_ids(dataset: Any, paths: Iterable[str]) -> list[int]:
    """Returns the ids of the fields at paths with those of all their children. Raises KeyError."""
    found: list[int] = []
    for path in paths:
        field = dataset.lance_schema.field(path)
        if field is None:
            raise KeyError(path)
        waiting = [field]
        while waiting:
            each = waiting.pop()
            found.append(int(each.id()))
            waiting += each.children()
    return sorted(set(found))


def signature_of(fragment: Any, fields: Sequence[int]) -> str:
    """Returns a digest of the data files that contain the fields of a fragment (FragmentMetadata)."""
    files = [*fragment.files, *(each.data_file for each in fragment.overlays or [])]
    held = [(str(file.path), sorted(set(file.fields) & set(fields))) for file in files]
    return hashlib.sha256(json.dumps(sorted(each for each in held if each[1])).encode()).hexdigest()


def current_records(dataset: Any, fields: Sequence[int], records: Records) -> dict[int, Record]:
    """Returns the records of the dataset's fragments. Compactions move the records of fragments to their successors."""
    present = {fragment.fragment_id for fragment in dataset.get_fragments()}
    known = dict(records)
    for groups in _rewrites_of(dataset, records.keys() - present):
        for old, new in groups:
            _move(known, old, new, fields)
    return {fragment: record for fragment, record in known.items() if fragment in present}


def _rewrites_of(dataset: Any, gone: Collection[int]) -> list[list[tuple[Any, Any]]]:
    """Returns the groups of fragments of compactions, the oldest first, up to the one that removed the first fragment.

    Versions that no longer exist end the search, so that the fragments of earlier compactions count as new.
    """
    unexplained = set(gone)
    found: list[list[tuple[Any, Any]]] = []
    seen = 0
    # Version 1 is the first one. The catalog refuses to read an earlier one.
    versions = min(VERSIONS_MAX, dataset.version)
    while unexplained and seen < versions:
        asked = min(2 * seen + 1, versions)
        transactions = dataset.get_transactions(asked)
        for transaction in transactions[seen:]:
            if transaction is None or not unexplained:
                return found[::-1]
            if type(transaction.operation).__name__ == "Overwrite":
                return found[::-1]
            groups, removed = _effects_of(transaction.operation)
            if groups:
                found.append(groups)
            unexplained -= removed
        if len(transactions) < asked:
            break
        seen = len(transactions)
    return found[::-1]


def _effects_of(operation: Any) -> tuple[list[tuple[Any, Any]], set[int]]:
    """Returns the groups of a compaction, and the fragments that an operation removes."""
    groups = [(list(group.old_fragments), list(group.new_fragments)) for group in getattr(operation, "groups", [])]
    removed = {fragment.id for old, _ in groups for fragment in old}
    for name in ("removed_fragment_ids", "deleted_fragment_ids"):
        removed.update(getattr(operation, name, None) or [])
    return groups, removed


def _move(records: dict[int, Record], old: Sequence[Any], new: Sequence[Any], fields: Sequence[int]) -> None:
    """Moves the records of a group of fragments to the ones that replace them and have their rows in the same order."""
    computed = 0
    is_complete = True
    for fragment in old:
        record = records.pop(fragment.id, None)
        is_complete = is_complete and record == Record(signature_of(fragment, fields), fragment.physical_rows)
        if is_complete:
            computed += fragment.physical_rows - fragment.num_deletions
    for fragment in new:
        rows = min(computed, fragment.physical_rows)
        computed -= rows
        if rows > 0:
            records[fragment.id] = Record(signature_of(fragment, fields), rows)


def work_of(
    dataset: Any, fields: Sequence[int], outputs: Sequence[str], records: Records, tried: Collection[int] = frozenset()
) -> list[FragmentWork]:
    """Returns the rows of each fragment that were not computed from its current inputs, or that have no value.

    Rows whose addresses were already tried are not tried again.
    """
    found = []
    begin = 0
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        signature = signature_of(metadata, fields)
        record = records.get(fragment.fragment_id)
        computed = record.rows if record is not None and record.signature == signature else 0
        live = fragment.count_rows()
        failed, first = _failed_rows(fragment, outputs, computed, tried) if computed else ([], 0)
        rest = range(first, live)
        found.append(
            FragmentWork(fragment.fragment_id, signature, begin, metadata.physical_rows, computed, failed, rest)
        )
        begin += live
    return found


def _failed_rows(fragment: Any, outputs: Sequence[str], computed: int, tried: Collection[int]) -> tuple[list[int], int]:
    """Returns the positions of computed rows without a value, and that of the first uncomputed row."""
    no_value = " AND ".join(f"{quoted(each)} IS NULL" for each in outputs)
    end = (fragment.fragment_id << OFFSET_BITS) + computed
    failed = [each for each in _addresses_of(fragment, no_value) if each < end and each not in tried]
    if fragment.num_deletions == 0:
        return [offset_of(each) for each in failed], computed
    live = [each for each in _addresses_of(fragment) if each < end]
    positions = {address: position for position, address in enumerate(live)}
    return [positions[each] for each in failed], len(live)


def _addresses_of(fragment: Any, condition: str | None = None) -> list[int]:
    found = fragment.scanner(columns=[], filter=condition, with_row_address=True).to_table()
    return cast(list[int], found["_rowaddr"].to_pylist())


def offset_of(address: int) -> int:
    """Returns the offset of a row within its fragment, including deleted rows."""
    return address & OFFSET_MASK


def quoted(path: str) -> str:
    """Returns the path of a column in Lance's SQL. A path with quotes is in Lance's SQL already."""
    return path if "`" in path else ".".join(f"`{each}`" for each in path.split("."))
