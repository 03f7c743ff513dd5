"""The unmodified library lancedb, as applications use it."""

import lancedb
import pyarrow as pa


def vectors(ids: list[int]) -> pa.Table:
    values = [[float(id), 0.0] for id in ids]
    return pa.table({"id": ids, "vector": pa.array(values, pa.list_(pa.float32(), 2))})


def test_a_table_is_made_searched_restored_and_dropped(catalog, namespace):
    db = lancedb.connect_namespace("rest", catalog.properties)
    where = {"namespace_path": [namespace]}
    table = db.create_table("films", vectors([1, 2, 3]), **where)
    table.add(vectors([4]))
    assert [row["id"] for row in table.search([3.9, 0.0]).limit(2).to_list()] == [4, 3]
    table.delete("id = 1")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [2, 3, 4]
    table.checkout(1)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    table.restore()
    reopened = db.open_table("films", **where)
    assert (reopened.version, sorted(reopened.to_arrow()["id"].to_pylist())) == (4, [1, 2, 3])
    assert db.list_tables(**where).tables == ["films"]
    db.drop_table("films", **where)
    assert db.list_tables(**where).tables == []


def test_namespaces_are_made_listed_and_dropped(catalog, namespace):
    db = lancedb.connect_namespace("rest", catalog.properties)
    db.create_namespace([namespace, "inner"])
    assert db.list_namespaces([namespace]).namespaces == ["inner"]
    db.drop_namespace([namespace, "inner"])
    assert db.list_namespaces([namespace]).namespaces == []
