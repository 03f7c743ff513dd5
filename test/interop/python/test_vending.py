"""
Clients that have no credentials for S3 but those that the catalog hands out for a table. Moto asks for
the credentials of a session, and does not look at its policy: test/service/vending.test.ts does.
"""

import json
import os
import time
import urllib.request

import boto3
import geneva
import lance
import pyarrow as pa
import pytest
from catalog import Catalog, free_port
from conftest import running
from jobs import ROWS, backfill, values, write_films
from lance_namespace import DescribeTableRequest
from runner import Runner, ended

REGION = "us-east-1"
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
ALL_OBJECTS = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
ALLOW_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.fixture(scope="module")
def aws():
    """The address of an AWS that rejects unknown callers, a role in it, and the keys of the catalog's user."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    program = [os.environ["TILTYARD_TEST_PYTHON"], "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(program, f"{url}/moto-api/"):
        administrator = {"region_name": REGION, "aws_access_key_id": "test", "aws_secret_access_key": "test"}
        iam = boto3.client("iam", endpoint_url=url, **administrator)
        boto3.client("s3", endpoint_url=url, **administrator).create_bucket(Bucket="bucket")
        role = iam.create_role(RoleName="tables", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
        iam.put_role_policy(RoleName="tables", PolicyName="tables", PolicyDocument=json.dumps(ALL_OBJECTS))
        iam.create_user(UserName="catalog")
        iam.put_user_policy(UserName="catalog", PolicyName="all", PolicyDocument=json.dumps(ALLOW_ALL))
        key = iam.create_access_key(UserName="catalog")["AccessKey"]
        auth = {"content-type": "text/plain"}
        request = urllib.request.Request(f"{url}/moto-api/reset-auth", data=b"0", headers=auth)
        urllib.request.urlopen(request).close()
        yield url, role, key


@pytest.fixture(scope="module")
def vending(aws, tmp_path_factory):
    url, role, key = aws
    environment = {
        "TILTYARD_WAREHOUSE": "s3://bucket/warehouse",
        "TILTYARD_S3_FORCE_PATH_STYLE": "1",
        "TILTYARD_VEND_CREDENTIALS": "1",
        "TILTYARD_VEND_S3_ROLE": role,
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }
    with Catalog(tmp_path_factory.mktemp("vending"), environment) as catalog:
        yield catalog


def test_pylance_writes_and_reads_with_the_credentials_of_the_catalog(aws, vending):
    url, _, _ = aws
    client = vending.client()
    # The options contain the address of the server but no credential.
    server = {"aws_endpoint": url, "aws_virtual_hosted_style_request": "false", "allow_http": "true"}
    where = {"namespace_client": client, "table_id": ["vended"], "storage_options": server}
    lance.write_dataset(pa.table({"id": [1, 2]}), mode="create", **where)
    lance.write_dataset(pa.table({"id": [3]}), mode="append", **where)
    assert sorted(lance.dataset(**where).to_table()["id"].to_pylist()) == [1, 2, 3]
    assert len(vending.versions(["vended"])) == 2

    described = client.describe_table(DescribeTableRequest(id=["vended"], vend_credentials=True))
    assert int(described.storage_options["expires_at_millis"]) > time.time() * 1000
    strangers = {**server, "aws_access_key_id": "test", "aws_secret_access_key": "test", "aws_region": REGION}
    with pytest.raises(ValueError, match="InvalidAccessKeyId"):
        lance.dataset(described.location, storage_options=strangers)


@pytest.fixture(scope="module")
def server(aws):
    """Returns the server's address as variables of Lance's clients, without a credential."""
    return {
        "AWS_ENDPOINT_URL": aws[0],
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        # Without a credential, the clients would search for one of the machine.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(scope="module")
def keyless_runner(vending, server, tmp_path_factory):
    with Runner(vending, tmp_path_factory.mktemp("runner") / "log", server).start("--standby-minutes", "0") as runner:
        yield runner


@pytest.mark.weekly
def test_jobs_have_the_credentials_of_the_catalog_for_their_table(vending, server, keyless_runner, monkeypatch):
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    table = write_films(vending, ["films"])
    path = "/v1/table/films"

    @geneva.udf(data_type=pa.int64())
    def length(title: str) -> int:
        return len(title)

    db = geneva.connect("db://films", api_key=vending.key, host_override=vending.url)
    db.open_table("films").add_columns({"length": length})
    vending.post(f"{path}/add_columns", {"new_columns": [{"name": "twice", "computed": "id * 2"}]})

    def succeed(job: str) -> None:
        found = ended(vending, keyless_runner, job)
        assert (found["status"], found.get("reason")) == ("Succeeded", None)

    for column in ("length", "twice"):
        succeed(backfill(vending, table, column))
    succeed(vending.post(f"/management{path}/compact")["job_id"])
    succeed(vending.post(f"/management{path}/build_index", {"column": "id", "index_type": "BTREE"})["job_id"])
    succeed(vending.post(f"/management{path}/clean_up", {"older_than_seconds": 0})["job_id"])
    assert values(vending, table, "length") == [len(f"Film {number}") for number in range(ROWS)]
    assert values(vending, table, "twice") == [2 * number for number in range(ROWS)]
