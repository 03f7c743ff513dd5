"""The catalog itself writes manifests with replaced schema metadata. pylance reads them and rebases its commits onto
them."""

from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest
from catalog import staged_manifests


def write(catalog, table, ids: list[int], mode="append", **options):
    data = pa.table({"id": ids, "text": [f"row {id}" for id in ids]})
    return lance.write_dataset(data, namespace_client=catalog.client(), table_id=table, mode=mode, **options)


def replace(catalog, table, metadata: dict[str, str], branch: str | None = None) -> dict:
    query = "" if branch is None else f"?branch={branch}"
    return catalog.post(f"/v1/table/{'%24'.join(table)}/schema_metadata/update{query}", metadata)


def opened(catalog, table):
    return lance.dataset(namespace_client=catalog.client(), table_id=table)


def ids_of(dataset) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def test_what_the_catalog_replaced_is_read_with_all_rows(catalog, table):
    dataset = write(catalog, table, [1, 2, 3], "create")
    dataset.update_schema_metadata({"by": "pylance"})
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 2")
    assert replace(catalog, table, {"by": "the catalog", "größe": "5 µm"}) == {"by": "the catalog", "größe": "5 µm"}

    dataset = opened(catalog, table)
    assert dataset.schema.metadata == {b"by": b"the catalog", "größe".encode(): "5 µm".encode()}
    assert dataset.version == 5
    assert ids_of(dataset) == [1, 3]
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]
    assert dataset.scanner(filter="id = 3").to_table()["text"].to_pylist() == ["row 3"]
    assert dataset.checkout_version(4).schema.metadata == {b"by": b"pylance"}
    dataset.validate()
    dataset.update_schema_metadata({"more": "from pylance"})
    assert set(opened(catalog, table).schema.metadata) == {b"by", "größe".encode(), b"more"}
    assert staged_manifests(dataset.uri) == []


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_writer_that_opened_the_table_before_commits_on_top(catalog, table, stable_row_ids):
    before = write(catalog, table, [1, 2], "create", enable_stable_row_ids=stable_row_ids)
    replace(catalog, table, {"by": "the catalog"})
    before.insert(pa.table({"id": [3], "text": ["row 3"]}))
    dataset = opened(catalog, table)
    assert (dataset.version, ids_of(dataset)) == (3, [1, 2, 3])
    assert dataset.schema.metadata == {b"by": b"the catalog"}
    dataset.update({"text": "'changed'"}, where="id = 1")
    dataset.optimize.compact_files()
    assert ids_of(opened(catalog, table)) == [1, 2, 3]


def test_the_transaction_says_what_was_changed(catalog, table):
    """Lance rejects concurrent changes of the same metadata, which it detects by the transaction."""
    before = write(catalog, table, [1], "create")
    replace(catalog, table, {"by": "the catalog"})
    with pytest.raises(OSError, match="(?i)conflict"):
        before.update_schema_metadata({"by": "pylance"})
    dataset = opened(catalog, table)
    transaction = dataset.read_transaction(2)
    assert (transaction.read_version, type(transaction.operation).__name__) == (1, "UpdateConfig")
    change = transaction.operation.schema_metadata_updates
    assert (change.updates, change.replace) == ({"by": "the catalog"}, True)
    assert dataset.schema.metadata == {b"by": b"the catalog"}


def test_a_branch_is_changed_and_main_is_not(catalog, table):
    dataset = write(catalog, table, [1], "create")
    dataset.create_branch("side")
    replace(catalog, table, {"on": "side"}, branch="side")
    side = opened(catalog, table).checkout_version(("side", None))
    assert (side.schema.metadata, ids_of(side)) == ({b"on": b"side"}, [1])
    assert opened(catalog, table).schema.metadata is None


def test_concurrent_writers_lose_no_row_and_the_catalog_no_change(catalog, table):
    write(catalog, table, [0], "create")
    with ThreadPoolExecutor(8) as pool:
        written = [pool.submit(write, catalog, table, [id]) for id in range(1, 9)]
        replaced = [pool.submit(replace, catalog, table, {"number": str(number)}) for number in range(8)]
        for each in [*written, *replaced]:
            each.result()
    dataset = opened(catalog, table)
    assert ids_of(dataset) == list(range(9))
    assert dataset.version == 17
    assert dataset.schema.metadata[b"number"].decode() in map(str, range(8))
    assert staged_manifests(dataset.uri) == []
