"""pylance, unmodified, commits through the catalog."""

import datetime
import json
import re
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import lance
import lancedb.index
import pyarrow as pa
import pytest
from catalog import folder_of, staged_manifests, version_in_manifest_name, wait_until
from lance_namespace import (
    CreateTableBranchRequest,
    CreateTableTagRequest,
    DeclareTableRequest,
    DeleteTableBranchRequest,
    DeleteTableTagRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    GetTableTagVersionRequest,
    ListNamespacesRequest,
    ListTableBranchesRequest,
    ListTablesRequest,
    ListTableTagsRequest,
    RegisterTableRequest,
    RenameTableRequest,
    UpdateTableTagRequest,
)
from lance_namespace import errors


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "text": [f"row {i}" for i in range(start, stop)]})


def write(client, table, data, mode="append"):
    return lance.write_dataset(data, namespace_client=client, table_id=table, mode=mode)


def read_ids(dataset) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def test_writes_appends_and_overwrites_are_versions_that_can_be_read_again(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 10), "create")
    write(client, table, rows(10, 15))
    latest = write(client, table, rows(100, 103), "overwrite")
    assert latest.version == 3
    assert read_ids(lance.dataset(namespace_client=client, table_id=table)) == [100, 101, 102]
    by_version = [read_ids(lance.dataset(namespace_client=client, table_id=table, version=v)) for v in (1, 2)]
    assert by_version == [list(range(10)), list(range(15))]
    listed = catalog.versions(table)
    assert [each["version"] for each in listed] == [1, 2, 3]
    assert [version_in_manifest_name(each["manifest_path"]) for each in listed] == [1, 2, 3]
    assert staged_manifests(latest.uri) == []


def test_rows_are_deleted_updated_and_merged(catalog, table):
    dataset = write(catalog.client(), table, rows(0, 6), "create")
    dataset.delete("id = 0")
    dataset.update({"text": "'changed'"}, where="id = 1")
    merged = pa.table({"id": [2, 50], "text": ["merged", "new"]})
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(merged)
    found = lance.dataset(namespace_client=catalog.client(), table_id=table).to_table()
    assert dict(zip(found["id"].to_pylist(), found["text"].to_pylist())) == {
        1: "changed",
        2: "merged",
        3: "row 3",
        4: "row 4",
        5: "row 5",
        50: "new",
    }
    assert staged_manifests(dataset.uri) == []


def test_compaction_indices_and_columns_are_commits_too(catalog, table):
    client = catalog.client()
    for start in range(0, 50, 10):
        dataset = write(client, table, rows(start, start + 10), "append" if start else "create")
    dataset.create_scalar_index("id", "BTREE")
    assert dataset.optimize.compact_files().fragments_removed > 0
    dataset.add_columns({"double": "id * 2"})
    dataset.drop_columns(["text"])
    again = lance.dataset(namespace_client=client, table_id=table)
    assert again.version == dataset.version
    assert [index["name"] for index in again.list_indices()] == ["id_idx"]
    assert sorted(again.to_table(filter="id >= 48")["double"].to_pylist()) == [96, 98]
    assert again.schema.names == ["id", "double"]
    assert staged_manifests(dataset.uri) == []


def test_old_versions_are_cleaned_up_and_writing_goes_on(catalog, table):
    client = catalog.client()
    for start in range(0, 40, 10):
        dataset = write(client, table, rows(start, start + 10), "overwrite" if start else "create")
    stats = dataset.cleanup_old_versions(older_than=datetime.timedelta(0))
    assert stats.old_versions == 3
    assert read_ids(lance.dataset(namespace_client=client, table_id=table)) == list(range(30, 40))
    assert write(client, table, rows(40, 41)).version == 5


def test_the_catalog_lists_the_versions_that_a_clean_up_keeps(catalog, table):
    client = catalog.client()
    for start in range(0, 60, 10):
        dataset = write(client, table, rows(start, start + 10), "append" if start else "create")
    dataset.tags.create("kept", 2)
    stats = dataset.cleanup_old_versions(older_than=datetime.timedelta(0), error_if_tagged_old_versions=False)
    assert stats.old_versions == 4
    listed = [each["version"] for each in catalog.versions(table)]
    assert listed == [each["version"] for each in lance.dataset(namespace_client=client, table_id=table).versions()] == [2, 6]
    counts = [lance.dataset(namespace_client=client, table_id=table, version=each).count_rows() for each in listed]
    assert counts == [20, 60]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        catalog.post(f"/v1/table/{'%24'.join(table)}/version/describe", {"version": 3})
    assert write(client, table, rows(60, 61)).version == 7


def test_tags_name_versions(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 1), "create")
    dataset = write(client, table, rows(1, 2))
    dataset.tags.create("first", 1)
    again = lance.dataset(namespace_client=client, table_id=table)
    assert read_ids(again.checkout_version("first")) == [0]
    again.tags.update("first", 2)
    assert read_ids(lance.dataset(namespace_client=client, table_id=table).checkout_version("first")) == [0, 1]
    again.tags.delete("first")
    assert again.tags.list() == {}


def test_a_tag_of_the_catalog_is_one_of_pylance_and_the_other_way_round(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 1), "create")
    dataset = write(client, table, rows(1, 2))
    lance.write_dataset(rows(9, 10), dataset.create_branch("team/side"), mode="append")
    dataset.tags.create("theirs", 1)
    client.create_table_tag(CreateTableTagRequest(id=table, tag="ours", version=2))
    client.create_table_tag(CreateTableTagRequest(id=table, tag="onside", version=3, branch="team/side"))

    listed = client.list_table_tags(ListTableTagsRequest(id=table)).tags
    assert {name: (tag.branch, tag.version) for name, tag in listed.items()} == {
        "theirs": (None, 1),
        "ours": (None, 2),
        "onside": ("team/side", 3),
    }
    again = lance.dataset(namespace_client=client, table_id=table)
    seen = again.tags.list()
    assert {name: (tag["branch"], tag["version"]) for name, tag in seen.items()} == {
        name: (tag.branch, tag.version) for name, tag in listed.items()
    }
    assert {name: tag["manifest_size"] for name, tag in seen.items()} == {
        name: tag.manifest_size for name, tag in listed.items()
    }
    assert read_ids(again.checkout_version("onside")) == [0, 1, 9]
    with pytest.raises(errors.TableTagAlreadyExistsError):
        client.create_table_tag(CreateTableTagRequest(id=table, tag="theirs", version=2))
    with pytest.raises(ValueError, match="already exists"):
        again.tags.create("ours", 1)

    client.update_table_tag(UpdateTableTagRequest(id=table, tag="theirs", version=2))
    again.tags.update("ours", 1)
    assert client.get_table_tag_version(GetTableTagVersionRequest(id=table, tag="ours")).version == 1
    assert read_ids(again.checkout_version("theirs")) == [0, 1]
    again.tags.delete("theirs")
    client.delete_table_tag(DeleteTableTagRequest(id=table, tag="ours"))
    assert list(again.tags.list()) == ["onside"]
    with pytest.raises(errors.TableTagNotFoundError):
        client.delete_table_tag(DeleteTableTagRequest(id=table, tag="theirs"))


def test_branches_of_pylance_are_listed_and_deleted_by_the_catalog(catalog, table):
    client = catalog.client()
    main = write(client, table, rows(0, 1), "create")
    side = lance.write_dataset(rows(7, 8), main.create_branch("team/side"), mode="append")
    side.create_branch("child")
    listed = client.list_table_branches(ListTableBranchesRequest(id=table)).branches
    expected = lance.dataset(namespace_client=client, table_id=table).branches.list()
    assert {name: (each.parent_branch, each.parent_version, each.create_at) for name, each in listed.items()} == {
        name: (each["parent_branch"], each["parent_version"], each["create_at"]) for name, each in expected.items()
    }
    with pytest.raises(errors.InvalidTableStateError, match="branch child"):
        client.delete_table_branch(DeleteTableBranchRequest(id=table, name="team/side"))
    for name in ["child", "team/side"]:
        client.delete_table_branch(DeleteTableBranchRequest(id=table, name=name))
    again = lance.dataset(namespace_client=client, table_id=table)
    assert again.branches.list() == {}
    assert not list(folder_of(main.uri).glob("tree/**/*.manifest"))
    assert read_ids(write(client, table, rows(1, 2)).create_branch("team/side")) == [0, 1]
    with pytest.raises(errors.TableBranchNotFoundError):
        client.delete_table_branch(DeleteTableBranchRequest(id=table, name="child"))


def test_a_branch_of_the_catalog_is_one_of_pylance(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 2), "create")
    write(client, table, rows(2, 4))
    client.create_table_branch(CreateTableBranchRequest(id=table, name="team/side", from_version=1))
    dataset = lance.dataset(namespace_client=client, table_id=table)
    branch = dataset.checkout_version(("team/side", None))
    assert read_ids(branch) == [0, 1]
    assert read_ids(lance.write_dataset(rows(100, 101), branch, mode="append")) == [0, 1, 100]
    assert dataset.branches.list()["team/side"]["parent_version"] == 1
    with pytest.raises(errors.TableBranchAlreadyExistsError):
        client.create_table_branch(CreateTableBranchRequest(id=table, name="team/side"))
    dataset.branches.delete("team/side")
    assert client.list_table_branches(ListTableBranchesRequest(id=table)).branches == {}


def test_a_branch_has_versions_of_its_own(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 2), "create")
    main = write(client, table, rows(2, 4))
    branch = main.create_branch("experiment")
    branch = lance.write_dataset(rows(100, 101), branch, mode="append")
    write(client, table, rows(4, 5))
    reopened = lance.dataset(namespace_client=client, table_id=table)
    assert read_ids(reopened) == [0, 1, 2, 3, 4]
    assert read_ids(reopened.checkout_version(("experiment", None))) == [0, 1, 2, 3, 100]
    assert read_ids(reopened.checkout_version(("experiment", 2))) == [0, 1, 2, 3]
    assert [each["version"] for each in catalog.versions(table)] == [1, 2, 3]
    assert [each["version"] for each in catalog.versions(table, "experiment")] == [2, 3]
    assert staged_manifests(main.uri) == []


def test_a_deleted_branch_can_be_made_again(catalog, table):
    client = catalog.client()
    main = write(client, table, rows(0, 1), "create")
    lance.write_dataset(rows(7, 8), main.create_branch("side"), mode="append")
    main.branches.delete("side")
    for start in (1, 2, 3):
        main = write(client, table, rows(start, start + 1))
    assert read_ids(main.create_branch("side")) == [0, 1, 2, 3]


def test_names_may_have_spaces_and_signs(catalog, namespace):
    client = catalog.client()
    for name in ["two words", "a+b", "50%", "caf\u00e9"]:
        write(client, [namespace, name], rows(0, 2), "create")
        assert read_ids(lance.dataset(namespace_client=client, table_id=[namespace, name])) == [0, 1]
    listed = client.list_tables(ListTablesRequest(id=[namespace])).tables
    assert sorted(listed) == sorted(["two words", "a+b", "50%", "caf\u00e9"])


def test_a_renamed_table_keeps_its_rows(catalog, table):
    client = catalog.client()
    write(client, table, rows(0, 3), "create")
    client.rename_table(RenameTableRequest(id=table, new_table_name="renamed"))
    renamed = [table[0], "renamed"]
    assert write(client, renamed, rows(3, 4)).version == 2
    assert read_ids(lance.dataset(namespace_client=client, table_id=renamed)) == [0, 1, 2, 3]
    with pytest.raises(errors.TableNotFoundError):
        lance.dataset(namespace_client=client, table_id=table)


def test_a_table_that_no_catalog_managed_is_registered_with_its_versions_and_branches(catalog, table):
    client = catalog.client()
    folder = catalog.data_dir / "warehouse" / "unmanaged" / table[0]
    plain = lance.write_dataset(rows(0, 2), folder)
    branch = plain.create_branch("side")
    lance.write_dataset(rows(50, 51), branch, mode="append")
    lance.write_dataset(rows(2, 3), folder, mode="append")
    client.register_table(RegisterTableRequest(id=table, location=folder.as_uri()))
    assert write(client, table, rows(3, 4)).version == 3
    dataset = lance.dataset(namespace_client=client, table_id=table)
    assert read_ids(dataset) == [0, 1, 2, 3]
    assert read_ids(dataset.checkout_version(1)) == [0, 1]
    assert read_ids(dataset.checkout_version(("side", None))) == [0, 1, 50]


def test_a_dropped_table_is_gone_with_its_objects(catalog, table):
    client = catalog.client()
    dataset = write(client, table, rows(0, 3), "create")
    folder = folder_of(dataset.uri)
    assert folder.exists()
    client.drop_table(DropTableRequest(id=table))
    wait_until(lambda: not folder.exists(), "the deletion")
    with pytest.raises(errors.TableNotFoundError):
        client.describe_table(DescribeTableRequest(id=table))
    assert write(client, table, rows(7, 8), "create").version == 1


def test_errors_have_the_types_that_pylance_has_for_them(catalog, table):
    client = catalog.client()
    with pytest.raises(errors.TableNotFoundError):
        client.describe_table(DescribeTableRequest(id=table))
    with pytest.raises(errors.NamespaceNotFoundError):
        client.list_namespaces(ListNamespacesRequest(id=["nowhere"]))
    client.declare_table(DeclareTableRequest(id=table))
    with pytest.raises(errors.TableAlreadyExistsError):
        client.declare_table(DeclareTableRequest(id=table))
    with pytest.raises(errors.NamespaceNotEmptyError):
        client.drop_namespace(DropNamespaceRequest(id=table[:1]))
    assert client.list_tables(ListTablesRequest(id=table[:1])).tables == ["table"]


ZONE = pa.timestamp("us", "+05:30")


def zoned(start: int, stop: int) -> pa.Table:
    """Returns rows with times in the zone +05:30, which the library of the catalog cannot read."""
    numbers = list(range(start, stop))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "at": pa.array(numbers, ZONE),
            "in": pa.array([{"at": number} for number in numbers], pa.struct([("at", ZONE)])),
            "list": pa.array([[number] for number in numbers], pa.list_(ZONE)),
            "pair": pa.array([[number, number] for number in numbers], pa.list_(ZONE, 2)),
        }
    )


def files_in(dataset, folder: str) -> list[str]:
    return [path.name for path in folder_of(dataset.uri).glob(f"**/{folder}/*")]


def scheme_of(manifest: str) -> str:
    return "V2" if re.fullmatch(r"\d{20}\.manifest", manifest) else "V1"


@pytest.mark.parametrize("scheme", ["V1", "V2"])
def test_a_table_with_the_zone_0530_is_read_and_changed_and_keeps_the_zone(catalog, remote, table, scheme):
    address = {"namespace_client": catalog.client(), "table_id": table}
    lance.write_dataset(zoned(0, 10), **address, enable_v2_manifest_paths=scheme == "V2")
    opened = remote.open_table(table[-1], namespace_path=table[:-1])
    assert opened.schema == zoned(0, 0).schema
    assert opened.search().limit(100).to_arrow() == zoned(0, 10)

    opened.add(zoned(10, 12))
    opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(zoned(11, 14))
    opened.update("id = 0", values_sql={"id": "100"})
    opened.delete("id = 1")
    opened.add_columns({"twice": "id * 2"})
    opened.add_columns(pa.schema([("later", pa.timestamp("us", "UTC"))]))
    opened.alter_columns({"path": "at", "rename": "renamed"})
    opened.alter_columns({"path": "renamed", "rename": "at"})
    several = [{"name": "sum", "expression": "id + 1"}, {"name": "number", "computed": "id * 3"}]
    catalog.post(f"/v1/table/{'%24'.join(table)}/add_columns", {"new_columns": several})
    opened.drop_columns(["later", "sum", "number"])
    opened.create_index("id", config=lancedb.index.BTree())
    opened.branches.create("side").delete("id > 3")
    opened.checkout(1)
    opened.restore()
    opened.add(zoned(20, 21))

    dataset = lance.dataset(**address)
    assert dataset.schema == zoned(0, 0).schema
    assert dataset.to_table().sort_by("id").to_pylist() == [*zoned(0, 10).to_pylist(), *zoned(20, 21).to_pylist()]
    before = dataset.checkout_version(dataset.version - 2)
    assert before.schema.remove(5) == zoned(0, 0).schema
    changed = before.to_table().sort_by("id").to_pylist()
    assert [row["id"] for row in changed] == [*range(2, 14), 100]
    assert all(row["twice"] == 2 * (row["id"] if row["id"] < 100 else 100) for row in changed)
    expected = {row["id"]: row for row in zoned(0, 14).to_pylist()}
    for row in changed:
        assert {**row, "id": row["pair"][0].microsecond} == {**expected[row["id"] % 100], "twice": row["twice"]}
    side = dataset.checkout_version(("side", None))
    assert side.schema.field("at").type == ZONE and sorted(side.to_table()["id"].to_pylist()) == [2, 3]
    manifests = [name for name in files_in(dataset, "_versions") if name.endswith(".manifest")]
    assert {scheme_of(name) for name in manifests} == {scheme}
    assert files_in(dataset, "_checks") == []
    assert staged_manifests(dataset.uri) == []


def test_concurrent_writes_to_a_table_with_the_zone_0530_lose_no_row(catalog, remote, table):
    address = {"namespace_client": catalog.client(), "table_id": table}
    lance.write_dataset(zoned(0, 10), **address)

    def add(start: int) -> None:
        remote.open_table(table[-1], namespace_path=table[:-1]).add(zoned(start, start + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(10, 18)))
    dataset = lance.dataset(**address)
    assert dataset.to_table().sort_by("id") == zoned(0, 18)
    assert files_in(dataset, "_checks") == []
    assert staged_manifests(dataset.uri) == []


def test_an_index_on_a_column_with_the_zone_0530_is_406_with_the_column_and_all_other_calls_work(catalog, remote, table):
    address = {"namespace_client": catalog.client(), "table_id": table}
    lance.write_dataset(zoned(0, 10), **address)
    opened = remote.open_table(table[-1], namespace_path=table[:-1])
    path = "%24".join(table)
    for column in ("at", "AT", "in.at"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            catalog.post(f"/v1/table/{path}/create_index", {"column": column, "index_type": "BTREE"})
        assert refused.value.code == 406
        assert "an index on the column " in json.load(refused.value)["detail"]
    dataset = lance.dataset(**address)
    assert dataset.version == 1
    dataset.create_scalar_index("at", "BTREE")
    with pytest.raises(urllib.error.HTTPError) as refused:
        catalog.post(f"/v1/table/{path}/count_rows", {"predicate": "at > timestamp '1970-01-01 05:30:00.000004'"})
    assert refused.value.code == 406
    assert "an index on the column at with the zone +05:30" in json.load(refused.value)["detail"]
    opened.add(zoned(10, 12))
    opened.delete("id = 3")
    assert opened.count_rows("id > 2") == 8
    after = lance.dataset(**address)
    assert after.count_rows(filter="at > timestamp '1970-01-01 05:30:00.000004'") == 7
    assert files_in(after, "_checks") == []


def test_data_that_only_a_newer_library_reads_is_406_with_the_version_of_the_catalogs(catalog, table):
    rows = pa.table({"id": [1]})
    lance.write_dataset(rows, namespace_client=catalog.client(), table_id=table, data_storage_version="2.3")
    path = "%24".join(table)
    for operation, body in {
        "query": {"k": 1},
        "count_rows": {"predicate": "id > 0"},
        "update": {"updates": [["id", "2"]]},
        "delete": {"predicate": "id = 1"},
        "add_columns": {"new_columns": [{"name": "twice", "expression": "id * 2"}]},
        "create_index": {"column": "id", "index_type": "BTREE"},
    }.items():
        with pytest.raises(urllib.error.HTTPError) as refused:
            catalog.post(f"/v1/table/{path}/{operation}", body)
        assert refused.value.code == 406, operation
        assert "@lancedb/lancedb" in json.load(refused.value)["detail"]
    assert lance.dataset(namespace_client=catalog.client(), table_id=table).count_rows() == 1


@pytest.mark.parametrize("is_root", [False, True])
def test_the_drop_of_a_table_with_bases_keeps_their_files(catalog, remote, table, tmp_path, is_root):
    client = catalog.client()
    address = {"namespace_client": client, "table_id": table}
    neighbour = folder_of(client.declare_table(DeclareTableRequest(id=[table[0], "neighbour"])).location)
    first, second = (neighbour.with_suffix(suffix) for suffix in (".first", ".second"))
    bases = [lance.DatasetBasePath(str(first), "first", is_root)]
    dataset = lance.write_dataset(rows(0, 10), **address, mode="create", initial_bases=bases, target_bases=["first"])
    dataset.add_bases([lance.DatasetBasePath(second.as_uri(), "second", is_root)])
    lance.write_dataset(rows(10, 20), **address, mode="append", target_bases=["second"])

    opened = remote.open_table(table[-1], namespace_path=table[:-1])
    opened.update("id < 2", {"text": "updated"})
    opened.delete("id in (5, 15)")
    opened.add(rows(20, 21))
    merged = opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merged.execute(pa.table({"id": [12, 30], "text": ["merged", "merged"]}))
    found = {row["id"]: row["text"] for row in opened.search().limit(100).to_list()}
    assert sorted(found) == [*(id for id in range(21) if id not in (5, 15)), 30]
    assert [found[id] for id in (0, 12, 19, 30)] == ["updated", "merged", "row 19", "merged"]

    files = [path for path in (*first.rglob("*.lance"), *second.rglob("*.lance"))]
    assert len(files) == 2
    dataset = lance.dataset(**address)
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=True)
    assert read_ids(lance.dataset(**address)) == sorted(found)
    with pytest.raises(OSError, match="may or may not have been applied"):
        lance.dataset(**address).add_bases([lance.DatasetBasePath(str(tmp_path / "outside"), "outside")])
    assert set(lance.dataset(**address).base_paths()) == {1, 2}

    location = folder_of(client.describe_table(DescribeTableRequest(id=table)).location)
    client.drop_table(DropTableRequest(id=table))
    wait_until(lambda: not location.exists(), "the table is not purged")
    assert all(path.exists() for path in files)
