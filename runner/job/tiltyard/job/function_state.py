"""The rows of a table that a Function still has to compute.

The catalog stores for each fragment the number of its computed rows with a signature of their inputs and values. Lance
never changes a data file, so the files of these columns are such a signature. An update or an upsert moves its rows to
a new fragment, which has no record. A restore may bring back former values of unchanged inputs, whose files differ.
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
class Files:
    """Digests of the data files of a fragment that contain the inputs and the values of a function."""

    inputs: str
    outputs: str

    @property
    def signature(self) -> str:
        return f"{self.inputs}-{self.outputs}"


@dataclass(frozen=True)
class Fields:
    """The ids of the fields of a function's inputs and outputs in a dataset, with all their children."""

    inputs: Sequence[int]
    outputs: Sequence[int]

    def files_of(self, fragment: Any) -> Files:
        """Returns the digests of a fragment (FragmentMetadata)."""
        return Files(_digest(fragment, self.inputs), _digest(fragment, self.outputs))


@dataclass(frozen=True)
class FragmentWork:
    """The rows of a fragment to compute, as positions among its rows without the deleted ones."""

    fragment_id: int
    files: Files
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


def _digest(fragment: Any, fields: Sequence[int]) -> str:
    files = [*fragment.files, *(each.data_file for each in fragment.overlays or [])]
    held = [(str(file.path), sorted(set(file.fields) & set(fields))) for file in files]
    return hashlib.sha256(json.dumps(sorted(each for each in held if each[1])).encode()).hexdigest()


def current_records(dataset: Any, fields: Fields, records: Records) -> dict[int, Record]:
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
    _accept_rewritten_indices()
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


def _accept_rewritten_indices() -> None:
    """Lets pylance 14 read the compaction of a table with an index: it passes only the first two of five arguments."""
    from lance import LanceOperation

    LanceOperation.RewrittenIndex.__init__.__defaults__ = ("", b"", 0)


def _effects_of(operation: Any) -> tuple[list[tuple[Any, Any]], set[int]]:
    """Returns the groups of a compaction, and the fragments that an operation removes."""
    groups = [(list(group.old_fragments), list(group.new_fragments)) for group in getattr(operation, "groups", [])]
    removed = {fragment.id for old, _ in groups for fragment in old}
    for name in ("removed_fragment_ids", "deleted_fragment_ids"):
        removed.update(getattr(operation, name, None) or [])
    return groups, removed


def _move(records: dict[int, Record], old: Sequence[Any], new: Sequence[Any], fields: Fields) -> None:
    """Moves the records of a group of fragments to the ones that replace them and have their rows in the same order."""
    computed = 0
    is_complete = True
    for fragment in old:
        record = records.pop(fragment.id, None)
        is_complete = is_complete and record == Record(fields.files_of(fragment).signature, fragment.physical_rows)
        if is_complete:
            computed += fragment.physical_rows - fragment.num_deletions
    for fragment in new:
        rows = min(computed, fragment.physical_rows)
        computed -= rows
        if rows > 0:
            records[fragment.id] = Record(fields.files_of(fragment).signature, rows)


def work_of(
    dataset: Any, fields: Fields, outputs: Sequence[str], records: Records, tried: Collection[int] = frozenset()
) -> list[FragmentWork]:
    """Returns the rows of each fragment whose values were not computed from its current inputs, or that have no value.

    Rows whose addresses were already tried are not tried again.
    """
    found = []
    begin = 0
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        files = fields.files_of(metadata)
        record = records.get(fragment.fragment_id)
        computed = record.rows if record is not None and record.signature == files.signature else 0
        live = fragment.count_rows()
        failed, first = _failed_rows(fragment, outputs, computed, tried) if computed else ([], 0)
        rest = range(first, live)
        found.append(FragmentWork(fragment.fragment_id, files, begin, metadata.physical_rows, computed, failed, rest))
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
