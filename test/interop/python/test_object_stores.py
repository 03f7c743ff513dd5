"""Tables in S3 and in Google Cloud Storage."""

import urllib.parse
import urllib.request

import lance
import pyarrow as pa
import pytest
from catalog import wait_until
from clouds import Cloud
from lance_namespace import (
    CountTableRowsRequest,
    CreateTableBranchRequest,
    CreateTableRequest,
    CreateTableTagRequest,
    DeleteTableBranchRequest,
    DropTableRequest,
    InsertIntoTableRequest,
    ListTableBranchesRequest,
    ListTableTagsRequest,
    UpdateTableTagRequest,
)
from rows import stream, vectors
from writers import check_writers, check_writers_past_the_catalog, create_table, read_ids


@pytest.fixture(scope="module", params=["s3_cloud", "gcs_cloud"])
def cloud(request) -> Cloud:
    return request.getfixturevalue(request.param)


def test_pylance_writes_branches_and_drops_in_a_cloud(cloud):
    client = cloud.catalog.client()
    table = ["ns", "basic"]
    where = {"namespace_client": client, "table_id": table, "storage_options": cloud.storage_options}
    create_table(cloud.catalog, table, cloud.storage_options)
    dataset = lance.write_dataset(pa.table({"id": [1, 2]}), mode="append", **where)
    branch = lance.write_dataset(pa.table({"id": [9]}), dataset.create_branch("team/side"), mode="append")
    assert read_ids(branch) == [-1, 1, 2, 9]
    again = lance.dataset(**where)
    client.create_table_tag(CreateTableTagRequest(id=table, tag="ours", version=1))
    again.tags.create("theirs", 1)
    client.update_table_tag(UpdateTableTagRequest(id=table, tag="theirs", version=2))
    assert {name: tag["version"] for name, tag in again.tags.list().items()} == {"ours": 1, "theirs": 2}
    assert sorted(client.list_table_tags(ListTableTagsRequest(id=table)).tags) == ["ours", "theirs"]
    assert list(client.list_table_branches(ListTableBranchesRequest(id=table)).branches) == ["team/side"]
    client.create_table_branch(CreateTableBranchRequest(id=table, name="ours", from_branch="team/side"))
    assert read_ids(again.checkout_version(("ours", None))) == [-1, 1, 2, 9]
    for name in ["ours", "team/side"]:
        client.delete_table_branch(DeleteTableBranchRequest(id=table, name=name))
    assert again.branches.list() == {}
    assert not [key for key in cloud.keys("basic") if "/tree/" in key]
    assert read_ids(again) == [-1, 1, 2]
    assert read_ids(again.checkout_version(1)) == [-1]
    assert cloud.staged("basic") == []
    assert cloud.keys("basic") != []
    client.drop_table(DropTableRequest(id=table))
    wait_until(lambda: cloud.keys("basic") == [], "the deletion")


def test_rows_go_through_the_catalog_into_a_cloud(cloud):
    client = cloud.catalog.client()
    table = ["ns", "rows"]
    client.create_table(CreateTableRequest(id=table), stream(vectors([1, 2, 3])))
    client.insert_into_table(InsertIntoTableRequest(id=table), stream(vectors([4])))
    cloud.catalog.post("/v1/table/ns$rows/delete", {"predicate": "id = 2"})
    cloud.catalog.post("/v1/table/ns$rows/schema_metadata/update", {"by": "the catalog"})
    assert client.count_table_rows(CountTableRowsRequest(id=table)).count == 3
    dataset = lance.dataset(namespace_client=client, table_id=table, storage_options=cloud.storage_options)
    assert read_ids(dataset) == [1, 3, 4]
    assert dataset.schema.metadata == {b"by": b"the catalog"}
    client.drop_table(DropTableRequest(id=table))
    wait_until(lambda: cloud.keys("rows") == [], "the deletion")


def test_four_writers_append_to_one_table_in_a_cloud_and_no_row_is_lost(cloud):
    check_writers(cloud.catalog, ["ns", "busy"], count=4, appends=3, storage_options=cloud.storage_options)
    assert cloud.staged("busy") == []


def test_writers_past_the_catalog_and_through_it_lose_no_row_in_a_cloud(cloud):
    check_writers_past_the_catalog(cloud.catalog, ["ns", "past"], appends=3, storage_options=cloud.storage_options)


def test_a_staged_object_gets_its_final_name_in_google_cloud_storage(gcs, gcs_cloud):
    catalog = gcs_cloud.catalog
    location = catalog.post("/v1/table/ns$plain/declare")["location"]
    folder = urllib.parse.unquote(urllib.parse.urlparse(location).path)[1:]
    final = f"{folder}/_versions/{2**64 - 2:020d}.manifest"
    staged = f"{final}-0123"
    put_gcs_object(gcs, staged, b"the manifest")

    commit = {"version": 1, "manifest_path": staged, "naming_scheme": "V2"}
    answer = catalog.post("/v1/table/ns$plain/version/create", commit)
    assert answer["version"]["manifest_path"] == final
    assert gcs_cloud.staged("plain") == []
    assert gcs_cloud.keys("plain") == [final]
    assert read_gcs_object(gcs, final) == b"the manifest"
    catalog.post("/v1/table/ns$plain/drop")
    wait_until(lambda: gcs_cloud.keys("plain") == [], "the deletion")


def put_gcs_object(url: str, key: str, content: bytes) -> None:
    upload = f"{url}/upload/storage/v1/b/bucket/o?uploadType=media&name={urllib.parse.quote(key, safe='')}"
    urllib.request.urlopen(urllib.request.Request(upload, data=content, method="POST")).close()


def read_gcs_object(url: str, key: str) -> bytes:
    with urllib.request.urlopen(f"{url}/storage/v1/b/bucket/o/{urllib.parse.quote(key, safe='')}?alt=media") as content:
        return content.read()
