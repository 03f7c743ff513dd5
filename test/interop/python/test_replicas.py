"""Several replicas of the service on one PostgreSQL database."""

import contextlib

import lance
import pyarrow as pa
import pytest
from catalog import Catalog, staged_manifests
from writers import Writing, check_table, create_table, read_ids, write_at_once


@pytest.fixture
def replicas(postgres, tmp_path):
    shared = {
        "TILTYARD_DATABASE_URL": postgres,
        "TILTYARD_WAREHOUSE": str(tmp_path / "warehouse"),
        "TILTYARD_BOOTSTRAP_API_KEY": "the-key-of-all-replicas-0123456789",
    }
    with contextlib.ExitStack() as running:
        yield [running.enter_context(Catalog(tmp_path / name, shared)) for name in ("a", "b", "c")]


def test_eight_writers_on_three_replicas_lose_nothing(replicas):
    table = ["shared"]
    location = create_table(replicas[0], table).uri
    writings = [Writing(index * 1_000_000, appends=5) for index in range(8)]
    said = write_at_once(replicas, table, writings)
    assert "manifest" not in said.lower(), said
    for replica in replicas:
        check_table(replica, table, writings)
    assert staged_manifests(location) == []


def test_a_branch_made_through_one_replica_is_there_on_the_others(replicas):
    table = ["branched"]
    branch = create_table(replicas[0], table).create_branch("side")
    lance.write_dataset(pa.table({"id": [7]}), branch, mode="append")
    for replica in replicas:
        opened = lance.dataset(namespace_client=replica.client(), table_id=table)
        assert read_ids(opened.checkout_version(("side", None))) == [-1, 7]
        assert read_ids(opened) == [-1]
