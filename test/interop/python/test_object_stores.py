"""Tables in S3 and in Google Cloud Storage."""

import json
import re
import urllib.parse
import urllib.request

import lance
import pyarrow as pa
import pytest
from catalog import Catalog
from lance_namespace import DropTableRequest
from writers import check_eight_writers, check_writers_past_the_catalog


@pytest.fixture(scope="module")
def s3_catalog(s3, tmp_path_factory):
    environment = {
        "TILTYARD_WAREHOUSE": "s3://bucket/ware house",
        "TILTYARD_S3_FORCE_PATH_STYLE": "1",
        "AWS_ENDPOINT_URL": s3,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    with Catalog(tmp_path_factory.mktemp("s3"), environment) as running:
        running.post("/v1/namespace/ns/create")
        yield running


def s3_options(url: str) -> dict[str, str]:
    return {
        "aws_endpoint": url,
        "aws_region": "us-east-1",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
    }


def s3_keys(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/bucket?list-type=2&max-keys=1000") as answer:
        return re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())


def test_pylance_writes_branches_and_drops_on_s3(s3, s3_catalog):
    client = s3_catalog.client()
    options = s3_options(s3)
    table = ["ns", "basic"]

    def write(ids, mode):
        data = pa.table({"id": ids})
        return lance.write_dataset(data, namespace_client=client, table_id=table, mode=mode, storage_options=options)

    write([1, 2], "create")
    dataset = write([3], "append")
    branch = lance.write_dataset(pa.table({"id": [9]}), dataset.create_branch("side"), mode="append")
    assert sorted(branch.to_table()["id"].to_pylist()) == [1, 2, 3, 9]
    again = lance.dataset(namespace_client=client, table_id=table, storage_options=options)
    assert sorted(again.to_table()["id"].to_pylist()) == [1, 2, 3]
    assert sorted(again.checkout_version(1).to_table()["id"].to_pylist()) == [1, 2]
    assert not [key for key in s3_keys(s3) if ".manifest-" in key]
    assert [key for key in s3_keys(s3) if "/ns/basic" in key]
    client.drop_table(DropTableRequest(id=table))
    assert not [key for key in s3_keys(s3) if "/ns/basic" in key]


def test_eight_writers_append_to_one_table_on_s3_and_no_row_is_lost(s3, s3_catalog):
    check_eight_writers(s3_catalog, ["ns", "busy"], appends=3, storage_options=s3_options(s3))
    assert not [key for key in s3_keys(s3) if ".manifest-" in key]


def test_writers_past_the_catalog_and_through_it_lose_no_row_on_s3(s3, s3_catalog):
    check_writers_past_the_catalog(s3_catalog, ["ns", "past"], appends=8, storage_options=s3_options(s3))


def put_gcs_object(url: str, key: str, content: bytes) -> None:
    upload = f"{url}/upload/storage/v1/b/bucket/o?uploadType=media&name={urllib.parse.quote(key, safe='')}"
    urllib.request.urlopen(urllib.request.Request(upload, data=content, method="POST")).close()


def gcs_objects(url: str, folder: str) -> dict[str, bytes]:
    objects = f"{url}/storage/v1/b/bucket/o"

    def content_of(key: str) -> bytes:
        with urllib.request.urlopen(f"{objects}/{urllib.parse.quote(key, safe='')}?alt=media") as content:
            return content.read()

    with urllib.request.urlopen(f"{objects}?prefix={urllib.parse.quote(folder)}") as listing:
        return {each["name"]: content_of(each["name"]) for each in json.load(listing).get("items", [])}


def test_a_manifest_is_finished_on_google_cloud_storage(gcs, tmp_path):
    # Google's library for Node takes the path of the API as a part of the emulator's address.
    emulator = {"STORAGE_EMULATOR_HOST": f"{gcs}/storage/v1"}
    with Catalog(tmp_path, {"TILTYARD_WAREHOUSE": "gs://bucket/ware house", **emulator}) as catalog:
        location = catalog.post("/v1/table/t/declare")["location"]
        folder = urllib.parse.unquote(urllib.parse.urlparse(location).path)[1:]
        final = f"{folder}/_versions/{2**64 - 2:020d}.manifest"
        staged = f"{final}-0123"
        put_gcs_object(gcs, staged, b"the manifest")

        commit = {"version": 1, "manifest_path": staged, "naming_scheme": "V2"}
        answer = catalog.post("/v1/table/t/version/create", commit)
        assert answer["version"]["manifest_path"] == final
        assert gcs_objects(gcs, folder) == {final: b"the manifest"}
        catalog.post("/v1/table/t/drop")
        assert gcs_objects(gcs, folder) == {}
