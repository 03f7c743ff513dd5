"""The requests of LanceDB's own tests about branches, nested columns and names, sent by its remote client."""

import pyarrow as pa
import pytest
from lancedb.index import FTS, BTree, IvfFlat

SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string())])


def rows(start: int, end: int, title: str = "film") -> pa.Table:
    return pa.table({"id": list(range(start, end)), "title": [title] * (end - start)}, schema=SCHEMA)


@pytest.fixture
def films(remote, namespace):
    return remote.create_table("films", rows(0, 10), namespace_path=[namespace])


def test_every_operation_on_a_branch_leaves_main_as_it_is(remote, namespace, films):
    side = films.branches.create("side")
    side.add(rows(10, 12))
    side.merge_insert("id").when_matched_update_all().execute(rows(0, 1, "merged"))
    assert side.update(where="id = 1", values={"title": "new"}).rows_updated == 1
    assert side.delete("id = 2").num_deleted_rows == 1
    assert side.count_rows("title = 'film'") == 9
    assert sorted(side.search().where("title != 'film'").to_arrow()["title"].to_pylist()) == ["merged", "new"]
    side.add_columns({"twice": "id * 2"})
    side.alter_columns({"path": "twice", "rename": "double"})
    side.update_field_metadata({"path": "id", "metadata": {"key": "value"}})
    assert side.schema.names == ["id", "title", "double"]
    assert side.schema.field("id").metadata == {b"key": b"value"}
    side.drop_columns(["double"])
    side.create_index("id", config=BTree())
    assert [index.name for index in side.list_indices()] == ["id_idx"]
    assert side.index_stats("id_idx").num_indexed_rows == 11
    side.drop_index("id_idx")
    assert side.stats()["num_rows"] == 11
    latest = side.version
    side.tags.create("first", latest)
    assert films.tags.list()["first"]["version"] == latest
    assert len(side.list_versions()) == latest - films.version + 1
    again = remote.open_table("films", namespace_path=[namespace], branch="side")
    again.checkout(latest)
    again.restore()
    assert again.version == latest + 1
    assert (films.version, films.count_rows(), films.schema.names) == (1, 10, ["id", "title"])
    assert films.list_indices() == []


def test_branches_begin_where_they_are_told(films):
    films.add(rows(10, 11))
    films.tags.create("first", 1)
    assert films.branches.create("of_version", from_version=1).count_rows() == 10
    side = films.branches.create("side")
    side.add(rows(11, 13))
    assert films.branches.create("of_branch", from_ref="side").count_rows() == 13
    assert set(films.branches.list()) == {"of_version", "side", "of_branch"}
    with pytest.raises(Exception, match="already exists"):
        films.branches.create("side")
    with pytest.raises(Exception, match="missing"):
        films.branches.checkout("missing")
    with pytest.raises(Exception, match="is used by branch of_branch"):
        films.branches.delete("side")
    films.branches.delete("of_version")
    with pytest.raises(Exception, match="of_version"):
        films.branches.delete("of_version")


def test_columns_within_others_are_indexed_and_searched(remote, namespace):
    vectors = pa.array([[float(number), 0.0] for number in range(8)], pa.list_(pa.float32(), 2))
    inner = pa.StructArray.from_arrays(
        [vectors, pa.array([f"word{number}" for number in range(8)])], ["vector", "text"]
    )
    table = remote.create_table("nested", pa.table({"id": range(8), "inner": inner}), namespace_path=[namespace])
    table.create_index("inner.vector", config=IvfFlat(num_partitions=1))
    table.create_index("inner.text", config=FTS())
    assert sorted(index.columns[0] for index in table.list_indices()) == ["inner.text", "inner.vector"]
    nearest = table.search([5.2, 0.0], vector_column_name="inner.vector").limit(1)
    assert nearest.to_arrow()["id"].to_pylist() == [5]
    assert table.search("word3", query_type="fts").limit(1).to_arrow()["id"].to_pylist() == [3]


def test_an_index_may_have_a_name_that_a_path_must_encode(films):
    films.create_index("id", config=BTree(), name="a b/c?d")
    assert films.index_stats("a b/c?d").num_indexed_rows == 10
    films.prewarm_index("a b/c?d")
    films.drop_index("a b/c?d")
    assert films.list_indices() == []
