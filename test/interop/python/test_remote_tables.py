"""Operations of LanceDB's remote client that local lancedb lacks or implements otherwise. test_peers.py tests all others."""

import lance
import lancedb
import pyarrow as pa
import pytest
from catalog import Catalog
from lancedb.index import FTS, BTree, IvfFlat
from lancedb.permutation import Permutation, permutation_builder

SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string()), ("vector", pa.list_(pa.float32(), 4))])
TITLES = ["the quick dog", "the dog quick", "a cat", "a bird"]


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


def test_an_existing_table_is_opened_as_it_is_also_with_other_columns(catalog, remote, namespace):
    where = {"namespace_path": [namespace]}
    remote.create_table("films", rows(0, 5), **where)
    for db in (remote, lancedb.connect_namespace("rest", catalog.properties)):
        opened = db.create_table("films", pa.table({"year": [1979]}), exist_ok=True, **where)
        assert (opened.schema, opened.version, opened.count_rows()) == (SCHEMA, 1, 5)


def test_the_tables_of_the_root_are_listed_behind_a_name(remote, namespace):
    names = [f"root_{namespace}_{number}" for number in range(3)]
    for name in names:
        remote.create_table(name, rows(0, 1))
    with pytest.warns(DeprecationWarning):
        assert list(remote.table_names(page_token=names[0], limit=2)) == names[1:]
    for name in names:
        remote.drop_table(name)


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
        databases = lancedb.connect_catalog(own.url, api_key=own.key)
        databases.create_database("other").create_table("a", rows(0, 1))
        assert databases.list_databases().databases == ["films", "other"]
        databases.connect_database("other").drop_table("a")
        databases.drop_database("other")
        assert remote.open_table("a").count_rows() == 3


def test_databases_are_not_created_while_they_would_share_their_tables(catalog):
    databases = lancedb.connect_catalog(catalog.url, api_key=catalog.key)
    for call in (lambda: databases.create_database("a"), databases.list_databases, lambda: databases.drop_database("a")):
        with pytest.raises(RuntimeError, match="TILTYARD_REMOTE_DATABASES=on"):
            call()


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


def test_legacy_blobs_are_stored_as_local_tables_store_them(catalog, remote, namespace, tmp_path):
    old = {"lance-encoding:blob": "true", "note": "kept"}
    blob = pa.field("blob", pa.large_binary(), metadata=old)
    nested = pa.struct([("name", pa.string()), pa.field("inner", pa.binary(), metadata=old)])
    schema = pa.schema([("kind", pa.dictionary(pa.int8(), pa.string())), blob, ("nested", nested), ("view", pa.string_view())])

    def blobs(first: int) -> pa.Table:
        large = [{"kind": "a", "blob": b"x" * 3_000_000, "nested": {"name": "n", "inner": b"y" * 100_000}, "view": "v"}]
        return pa.Table.from_pylist([*large * first, {"kind": "b", "blob": b"small"}, {}], schema)

    def stored(db, where: dict, dataset):
        table = db.create_table("blobs", blobs(1), **where)
        table.add(blobs(2))
        rows = dataset()
        assert [each and each.size() for each in rows.take_blobs("blob", indices=range(7))] == [3_000_000, 5, None, 3_000_000, 3_000_000, 5, None]
        table.add(blobs(0), mode="overwrite")
        rows = dataset()
        assert [each and each.readall() for each in rows.take_blobs("blob", indices=[0, 1])] == [b"small", None]
        return rows

    def there():
        return lance.dataset(namespace_client=catalog.client(), table_id=[namespace, "blobs"])

    local = stored(lancedb.connect(tmp_path), {}, lambda: lance.dataset(tmp_path / "blobs.lance"))
    rows = stored(remote, {"namespace_path": [namespace]}, there)
    assert rows.schema.equals(local.schema, check_metadata=True)
    assert rows.data_storage_version == local.data_storage_version
    branch = remote.open_table("blobs", namespace_path=[namespace]).branches.create("copy")
    branch.add(blobs(1), mode="overwrite")
    assert (branch.count_rows(), there().count_rows()) == (3, 2)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_an_overwrite_keeps_the_file_version_and_its_kind_of_blobs(catalog, remote, namespace, tmp_path, version):
    name = f"overwritten_{version.replace('.', '_')}"
    old = pa.schema([("id", pa.int64()), pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])

    def overwritten(db, where: dict, address: dict):
        lance.write_dataset(pa.table({"id": [1]}), **address, data_storage_version=version)
        db.open_table(name, **where).add(pa.table([[1, 2], [b"first", None]], old), mode="overwrite")
        return lance.dataset(**address)

    local = overwritten(lancedb.connect(tmp_path), {}, {"uri": tmp_path / f"{name}.lance"})
    there = {"namespace_client": catalog.client(), "table_id": [namespace, name]}
    rows = overwritten(remote, {"namespace_path": [namespace]}, there)
    assert rows.schema.equals(local.schema, check_metadata=True)
    assert rows.data_storage_version == local.data_storage_version == version
    assert rows.take_blobs("blob", indices=[0])[0].readall() == b"first"


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


@pytest.mark.parametrize(
    "sentence, call",
    [
        ("conflicts", lambda table: table.add_columns({"title": "1"})),
        ("missing", lambda table: table.add_columns({"twice": "missing * 2"})),
        ("missing", lambda table: table.drop_columns(["missing"])),
        ("missing", lambda table: table.alter_columns({"path": "missing", "rename": "other"})),
        ("missing", lambda table: table.refresh_column_async("missing")),
        ("title", lambda table: table.refresh_column_async("title")),
        ("missing", lambda table: table.update(where="missing = 1", values={"id": 1})),
        ("missing", lambda table: table.delete("missing = 1")),
        ("missing", lambda table: table.create_index("missing", config=BTree())),
        ("missing", lambda table: table.restore("missing")),
        ("version: 99", lambda table: table.restore(99)),
        ("version 99", lambda table: table.tags.create("a", 99)),
        ("version: 99", lambda table: table.checkout(99)),
        ("source: version 99", lambda table: table.branches.create("side", from_version=99)),
        ("branch: missing", lambda table: table.branches.delete("missing")),
    ],
)
def test_an_error_that_no_retry_cures_says_what_is_wrong(films, sentence, call):
    with pytest.raises(Exception, match=sentence) as found:
        call(films)
    assert "retry limit" not in str(found.value), "the client repeated a request that cannot succeed"


def test_a_branch_that_was_deleted_meanwhile_is_named(films):
    side = films.branches.create("side")
    films.branches.delete("side")
    for call in (side.count_rows, lambda: side.add(rows(0, 1)), lambda: side.update(values={"id": 1})):
        with pytest.raises(Exception, match="no branch .*side"):
            call()
