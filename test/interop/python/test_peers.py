"""Compares lancedb through the catalog with local lancedb on the same data. docs/clients/operations.md lists the
differences, each with the program that causes it."""

import difflib
import inspect
import os
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import geneva
import lancedb.merge
import lancedb.query
import lancedb.remote.table
import lancedb.table
import peer_indices
import peer_queries
import peer_tables
import peer_types
import peer_values
import pyarrow as pa
import pytest
from jobs import describe, jobs_of
from pages import read_section, write_section
from peers import KINDS, connect

AREAS = {
    "Queries": peer_queries.compare,
    "Tables": peer_tables.compare,
    "Indices": peer_indices.compare,
    "Types": peer_types.compare,
    "Values": peer_values.compare,
}
TABLES = [lancedb.table.LanceTable, lancedb.remote.table.RemoteTable, lancedb.table.AsyncTable]
CLASSES = {
    "Table": TABLES,
    "Tags": [lancedb.table.Tags, lancedb.table.AsyncTags],
    "Branches": [lancedb.table.Branches, lancedb.table.AsyncBranches],
    "LanceMergeInsertBuilder": [lancedb.merge.LanceMergeInsertBuilder],
    **{name: [getattr(lancedb.query, name)] for name in peer_queries.BUILDERS},
}
# Methods that send no request of their own, or that only local tables have.
UNCOMPARED = {
    "branches": "see Branches",
    "create": "the constructor of search and of create_table",
    "from_inner": "a constructor",
    "id": "of a local connection to a namespace",
    "infer_tokenizer_configs": "names of tantivy's tokenizers",
    "merge": "for pylance, without a request of lancedb",
    "namespace": "of a local connection to a namespace",
    "open": "a constructor",
    "tags": "see Tags",
    "to_polars": "to_arrow, for a library that the tests lack",
    "to_query_object": "the query itself",
    "uri": "the location",
}
BASES = ["BaseQueryBuilder", "LanceQueryBuilder", "AsyncQueryBase", "AsyncStandardQuery"]


def test_every_method_of_the_client_is_classified():
    called = {*peer_tables.READS, *peer_tables.CHANGES}
    called |= {f"{each}.{step}" for each in peer_queries.BUILDERS for step in peer_queries.SYNC_STEPS}
    known = {peer_queries.method_of(call).removeprefix("Async") for call in called}
    public = {f"{name}.{each}" for name, kinds in CLASSES.items() for kind in kinds for each in dir(kind)}
    names = {name.removeprefix("Async") for name in public if not name.split(".")[1].startswith("_")}
    assert sorted(name for name in names - known if name.split(".")[1] not in UNCOMPARED) == []
    builders = {name for name, each in inspect.getmembers(lancedb.query, inspect.isclass) if hasattr(each, "to_arrow")}
    assert builders - set(BASES) == set(peer_queries.BUILDERS)


def test_every_type_of_arrow_is_classified():
    types = {value: name for name, value in vars(pa.lib).items() if name.startswith("Type_")}
    compared = {column.type.id for column in peer_types.columns().values()}
    # pyarrow cannot create intervals of other units, and Lance refuses one union as the other.
    assert {types[each] for each in set(types) - compared} == {
        "Type_INTERVAL_DAY_TIME",
        "Type_INTERVAL_MONTHS",
        "Type_SPARSE_UNION",
    }


# The longest comparisons change with a version of Lance only.
WEEKLY = {"Types", "Values"}


@pytest.mark.parametrize(
    "area", [pytest.param(area, marks=pytest.mark.weekly) if area in WEEKLY else area for area in AREAS]
)
def test_the_page_lists_every_difference(catalog, namespace, tmp_path, area, capsys):
    peers = connect(catalog, namespace, tmp_path)
    with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor() as pool:
        local, native, remote = pool.map(AREAS[area], peers)
    outcomes = {call: (local[call], native.get(call, local[call]), remote.get(call, local[call])) for call in local}
    assert [call for call, each in outcomes.items() if "error 5" in str(each)] == []
    rows = {call: cells(each) for call, each in outcomes.items() if len(set(each)) > 1}
    summary = f"{len(outcomes) - len(rows)} of {len(outcomes)} calls are equal."
    with capsys.disabled():
        print(f"peers: {area}: {summary}")
    section = [summary, "", *HEAD, *(f"| `{call}` | {' | '.join(each)} |" for call, each in grouped(rows).items())]
    if os.environ.get("TILTYARD_TEST_WRITE_CLIENTS"):
        write_section(area, section)
    listed, owners = read_section(area)
    changes = "\n".join(difflib.unified_diff(listed, section, lineterm="", n=0))
    assert changes == "", "TILTYARD_TEST_WRITE_CLIENTS=1 writes the differences, which need an owner"
    assert [each for each in owners if not re.match(r"(the client|the catalog|Lance): ", each)] == []


def test_pylance_does_not_send_arguments_of_geneva_that_the_protocol_lacks(catalog, table):
    """docs/clients/geneva.md says so. test/service/jobs.test.ts sends such arguments."""

    @geneva.udf(data_type=pa.int64())
    def same(id: int) -> int:
        return id

    name = f"surplus_{table[0]}"
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    rows = db.create_table(name, pa.table({"id": [1]}))
    rows.add_columns({"same": same})
    rows.backfill_async("same", num_frags=3, skip_frags=1, use_cpu_only_pool=True)
    [job] = jobs_of(catalog, [name])
    parameters = describe(catalog, job)["parameters"]
    assert (parameters["num_frags"], parameters.get("options")) == (3, None)


HEAD = ["| call | local | native | remote | whose |", "| --- | --- | --- | --- | --- |"]


def cells(outcomes) -> tuple[str, ...]:
    """Returns the kind of each outcome. A result that differs from the local one is another result."""
    return tuple(each if each in KINDS else "a result" if each == outcomes[0] else "another" for each in outcomes)


def grouped(rows: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Merges the rows of variants that differ in the same way."""
    variants: dict = {}
    for call, each in rows.items():
        name, _, variant = call.rpartition(": ")
        variants.setdefault((name or call, each), []).append(variant if name else "")
    return {f"{name}: {', '.join(each)}".removesuffix(": "): row for (name, row), each in variants.items()}
