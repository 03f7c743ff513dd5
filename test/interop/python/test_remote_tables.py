"""LanceDB's own remote client on tables, with the same responses as those of its own service."""

from datetime import timedelta

import lance
import lancedb
import pyarrow as pa
import pytest
from catalog import Catalog
from lancedb.index import FTS, BTree, IvfFlat, IvfPq
from lancedb.permutation import Permutation, permutation_builder
from lancedb.query import BoostQuery, MatchQuery, MultiMatchQuery, PhraseQuery

SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string()), ("vector", pa.list_(pa.float32(), 4))])
TITLES = ["the quick dog", "the dog quick", "a cat", "a bird"]
SOON = timedelta(seconds=60)


def rows(start: int, end: int) -> pa.Table:
    numbers = range(start, end)
    return pa.table(
        {
            "id": list(numbers),
            "title": [TITLES[number % 4] for number in numbers],
            "vector": [[float(number), 0, 0, 0] for number in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def films(remote, namespace):
    return remote.create_table("films", rows(0, 300), namespace_path=[namespace])


def ids(query) -> list[int]:
    return query.to_arrow()["id"].to_pylist()


def test_every_type_comes_back_as_it_was(catalog, remote, namespace):
    schema = pa.schema(
        [
            *SCHEMA,
            ("half", pa.float16()),
            ("at", pa.timestamp("us", "Europe/Berlin")),
            ("local", pa.timestamp("ns")),
            ("day", pa.date32()),
            ("clock", pa.time64("us")),
            ("took", pa.duration("ms")),
            ("price", pa.decimal128(10, 2)),
            ("key", pa.binary(3)),
            ("image", pa.large_binary()),
            ("long", pa.large_string()),
            ("genre", pa.dictionary(pa.int16(), pa.string())),
            ("people", pa.list_(pa.struct([("name", pa.string()), ("age", pa.uint8())]))),
            pa.field("required", pa.bool_(), nullable=False, metadata={"note": "kept"}),
        ],
        metadata={"about": "films"},
    )
    remote.create_table("types", schema=schema, namespace_path=[namespace])
    fresh = lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    assert fresh.open_table("types", namespace_path=[namespace]).schema.equals(schema, check_metadata=True)


def test_tables_are_created_listed_renamed_and_dropped(remote, namespace):
    where = {"namespace_path": [namespace]}
    remote.create_table("a", rows(0, 3), **where)
    with pytest.raises(ValueError, match="already exists"):
        remote.create_table("a", rows(0, 3), **where)
    assert remote.create_table("a", rows(0, 5), mode="overwrite", **where).count_rows() == 5
    assert remote.create_table("a", rows(0, 1), exist_ok=True, **where).count_rows() == 5
    remote.create_table("b", schema=SCHEMA, **where)
    first = remote.list_tables(**where, limit=1)
    assert (first.tables, remote.list_tables(**where, page_token=first.page_token).tables) == (["a"], ["b"])
    remote.rename_table("a", "c", cur_namespace_path=[namespace], new_namespace_path=[namespace])
    assert remote.open_table("c", **where).count_rows() == 5
    for name in ("b", "c"):
        remote.drop_table(name, **where)
    with pytest.raises(ValueError, match="not found"):
        remote.open_table("c", **where)


def test_the_tables_of_the_root_are_listed_behind_a_name(remote, namespace):
    names = [f"root_{namespace}_{number}" for number in range(3)]
    for name in names:
        remote.create_table(name, rows(0, 1))
    with pytest.warns(DeprecationWarning):
        assert list(remote.table_names(page_token=names[0], limit=2)) == names[1:]
    for name in names:
        remote.drop_table(name)


def test_rows_are_added_merged_updated_and_deleted(films):
    films.add(rows(300, 310))
    merged = films.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(305, 315))
    counts = merged.num_updated_rows, merged.num_inserted_rows, merged.num_rows, merged.num_attempts
    assert counts == (5, 5, 10, 1)
    assert films.update(where="id < 2", values={"title": "none"}).rows_updated == 2
    assert films.delete("id >= 310").num_deleted_rows == 5
    assert (films.count_rows(), films.count_rows("title = 'none'")) == (310, 2)
    films.add(rows(0, 2), mode="overwrite")
    assert films.count_rows() == 2
    with pytest.raises(ValueError, match="does not exist"):
        films.add([{"missing": 1}])


def test_rows_are_merged_on_several_columns(films):
    new = pa.table({"id": [0, 0], "title": ["the quick dog", "a cow"], "vector": [[0.0] * 4] * 2}, schema=SCHEMA)
    merged = films.merge_insert(["id", "title"]).when_not_matched_insert_all().execute(new)
    assert (merged.num_inserted_rows, films.count_rows("id = 0")) == (1, 2)


def test_rows_are_read(films):
    assert ids(films.search().where("id > 1").offset(2).limit(2)) == [4, 5]
    newest_first = [{"column_name": "id", "ascending": False, "nulls_first": True}]
    assert ids(films.search().order_by(newest_first).limit(2)) == [299, 298]
    twice = films.search().where("id = 3").select({"twice": "id * 2"}).limit(1)
    assert twice.to_arrow().to_pylist() == [{"twice": 6}]
    assert films.head(5).num_rows == 5
    assert films.take_offsets([1, 7]).to_arrow()["id"].to_pylist() == [1, 7]
    with pytest.raises(Exception, match="missing"):
        ids(films.search().where("missing > 1").limit(1))


def test_vectors_are_found(films):
    def found():
        return ids(films.search([5.2, 0, 0, 0]).limit(2).nprobes(20).refine_factor(10))

    assert found() == [5, 6]
    config = IvfPq(num_partitions=2, num_sub_vectors=2, distance_type="l2")
    films.create_index("vector", config=config, wait_timeout=SOON)
    assert found() == [5, 6]
    assert films.index_stats("vector_idx").num_unindexed_rows == 0
    assert "ANN" in films.search([5.2, 0, 0, 0]).limit(2).explain_plan()
    assert "elapsed" in films.search([5.2, 0, 0, 0]).limit(2).analyze_plan()
    assert ids(films.search([5.2, 0, 0, 0]).bypass_vector_index().where("id > 9").limit(1)) == [10]
    within = films.search([5.0, 0, 0, 0]).distance_range(0, 2).bypass_vector_index().limit(9)
    assert sorted(ids(within)) == [4, 5, 6]
    batch = films.search([[0.0, 0, 0, 0], [299.0, 0, 0, 0]]).bypass_vector_index().limit(1).to_arrow()
    assert dict(zip(batch["query_index"].to_pylist(), batch["id"].to_pylist())) == {0: 0, 1: 299}
    films.prewarm_index("vector_idx")
    films.prewarm_data(["id"])
    films.drop_index("vector_idx")
    assert films.list_indices() == []
    with pytest.raises(RuntimeError, match="not found"):
        films.prewarm_index("vector_idx")


def test_words_are_found(films):
    films.create_index("title", config=FTS(with_position=True), wait_timeout=SOON)
    films.create_index("id", config=BTree(), wait_timeout=SOON)

    def found(query) -> set[str]:
        return set(films.search(query, query_type="fts").limit(300).to_arrow()["title"].to_pylist())

    assert found("cat") == {"a cat"}
    assert found(MatchQuery("dog", "title") & MatchQuery("quick", "title")) == set(TITLES[:2])
    assert found(PhraseQuery("quick dog", "title")) == {"the quick dog"}
    assert found(BoostQuery(MatchQuery("cat", "title"), MatchQuery("dog", "title"))) == {"a cat"}
    assert found(MultiMatchQuery("bird", ["title"])) == {"a bird"}
    hybrid = films.search(query_type="hybrid").vector([2.0, 0, 0, 0]).text("cat").limit(1)
    assert ids(hybrid) == [2]


def test_versions_tags_and_branches(films):
    films.add(rows(300, 301))
    films.tags.create("first", 1)
    with pytest.raises(Exception, match="already"):
        films.tags.create("first", 1)
    assert films.tags.list()["first"]["version"] == 1
    films.checkout("first")
    assert (films.version, films.count_rows()) == (1, 300)
    films.restore()
    assert (films.version, films.count_rows()) == (3, 300)
    assert [version["version"] for version in films.list_versions()] == [1, 2, 3]
    with pytest.raises(ValueError, match="version: 99"):
        films.checkout(99)
    branch = films.branches.create("side")
    branch.add(rows(300, 302))
    assert (branch.count_rows(), films.count_rows()) == (302, 300)
    films.branches.delete("side")


def test_columns(films):
    films.add_columns({"twice": "id * 2"})
    films.add_columns(pa.schema([("year", pa.int32())]))
    films.alter_columns({"path": "twice", "rename": "double", "nullable": True})
    films.alter_columns({"path": "vector", "data_type": pa.list_(pa.float16(), 4)})
    films.update_field_metadata({"path": "id", "metadata": {"key": "value"}})
    assert films.schema.names == ["id", "title", "vector", "double", "year"]
    assert films.schema.field("vector").type == pa.list_(pa.float16(), 4)
    assert films.schema.field("id").metadata == {b"key": b"value"}
    films.drop_columns(["double", "year"])
    with pytest.raises(Exception, match="does not exist"):
        films.drop_columns(["double"])
    assert films.stats()["num_rows"] == 300


def test_a_database_is_a_namespace_where_the_operator_says_so(tmp_path):
    with Catalog(tmp_path / "data", {"TILTYARD_REMOTE_DATABASES": "on"}) as own:
        own.post("/v1/namespace/films/create")
        remote = lancedb.connect("db://films", api_key=own.key, host_override=own.url)
        remote.create_table("a", rows(0, 3))
        remote.create_namespace(["inner"])
        remote.create_table("b", rows(0, 4), namespace_path=["inner"])
        assert remote.list_tables().tables == ["a"]
        assert remote.open_table("b", namespace_path=["inner"]).count_rows() == 4
        everything = lancedb.connect_namespace("rest", {"uri": own.url, "headers.x-api-key": own.key})
        assert everything.open_table("b", namespace_path=["films", "inner"]).count_rows() == 4


def test_every_index_is_listed_by_its_physical_path(catalog, remote, namespace):
    docs = pa.table({"id": [1, 2], "docs": [[{"content": "apple pie"}], [{"content": "x"}]], "tags": [["a"], ["b"]]})
    table = remote.create_table("docs", docs, namespace_path=[namespace])
    table.create_index("id", config=BTree())
    table.create_index("docs.content", config=FTS())
    dataset = lance.dataset(namespace_client=catalog.client(), table_id=[namespace, "docs"])
    for kind, column in (("ZONEMAP", "id"), ("BLOOMFILTER", "id"), ("LABEL_LIST", "tags")):
        dataset.create_scalar_index(column, kind, name=kind.lower())
    assert sorted(index.name for index in table.list_indices()) == [
        "bloomfilter",
        "docs.content_idx",
        "id_idx",
        "label_list",
        "zonemap",
    ]
    path = f"/v1/table/{namespace}%24docs"
    listed = catalog.post(f"{path}/index/list")["indexes"]
    assert {index["index_name"]: (index["index_type"], index["columns"]) for index in listed} == {
        "bloomfilter": ("BLOOMFILTER", ["id"]),
        "docs.content_idx": ("FTS", ["docs.item.content"]),
        "id_idx": ("BTREE", ["id"]),
        "label_list": ("LABEL_LIST", ["tags"]),
        "zonemap": ("ZONEMAP", ["id"]),
    }
    assert [index["num_indexed_rows"] for index in listed] == [2] * 5
    assert all(len(index["index_uuid"]) == 36 for index in listed)
    assert catalog.post(f"{path}/stats")["num_indices"] == 5
    assert [index["index_name"] for index in catalog.post(f"{path}/index/list", {"limit": 1})["indexes"]] == ["bloomfilter"]


def test_text_without_a_column_is_found_as_in_a_local_table(remote, namespace, tmp_path):
    local = lancedb.connect(tmp_path).create_table("films", rows(0, 300))
    films = remote.create_table("films", rows(0, 300), namespace_path=[namespace])
    queries = ['"quick dog"', "dog", MatchQuery("qick", "title", fuzziness=1), MatchQuery("qick", "title", fuzziness=10)]
    found = []
    for table in (local, films):
        table.create_index("title", config=FTS(with_position=True, block_size=256))
        with pytest.raises(Exception, match="already exists"):
            table.create_index("title", config=FTS(with_position=True), replace=False)
        answers = [table.search(query, query_type="fts").limit(500).to_arrow() for query in queries]
        answers.append(table.search("quick dog", query_type="fts").phrase_query().limit(500).to_arrow())
        found.append([sorted(zip(answer["id"].to_pylist(), answer["_score"].to_pylist())) for answer in answers])
    assert found[0] == found[1]
    assert [len(answer) for answer in found[0]][:2] == [75, 150]


def test_an_index_of_bits_compares_by_hamming_distance(remote, namespace):
    bits = pa.array([[number % 256] * 8 for number in range(300)], pa.list_(pa.uint8(), 8))
    table = remote.create_table("bits", pa.table({"id": list(range(300)), "bits": bits}), namespace_path=[namespace])
    table.create_index("bits", config=IvfFlat(distance_type="hamming", num_partitions=1))
    assert table.index_stats("bits_idx").distance_type == "hamming"
    assert ids(table.search([7] * 8, vector_column_name="bits").distance_type("hamming").limit(2)) == [7, 263]


def test_the_data_loader_reads_a_table(films):
    assert (films.get_lsm_write_spec(), films.get_lsm_stats()) == (None, None)
    shuffled = permutation_builder(films).shuffle().execute()
    assert Permutation.from_tables(films, shuffled).num_rows == 300
