"""Writers in many processes, and a service that is killed under them."""

import lance
import pyarrow as pa
from catalog import Catalog, staged_manifests, unfinished_manifests, version_in_manifest_name, wait_until
from writers import check_eight_writers, finish, ids_of_writer, start_writer


def test_eight_writers_append_to_one_table_and_no_row_is_lost(catalog, table):
    check_eight_writers(catalog, table, appends=10)
    location = catalog.post(f"/v1/table/{'%24'.join(table)}/describe")["location"]
    assert staged_manifests(location) == []


def test_writers_on_a_branch_and_on_main_do_not_meet(catalog, table):
    client = catalog.client()
    dataset = lance.write_dataset(pa.table({"id": [-1]}), namespace_client=client, table_id=table, mode="create")
    dataset.create_branch("side")
    finish(
        [
            start_writer(catalog, table, 0, 4),
            start_writer(catalog, table, 1_000, 4, branch="side"),
            start_writer(catalog, table, 2_000, 4, branch="side"),
        ]
    )
    opened = lance.dataset(namespace_client=client, table_id=table)
    side = opened.checkout_version(("side", None))
    assert sorted(opened.to_table()["id"].to_pylist()) == [-1, *ids_of_writer(0, 4)]
    assert sorted(side.to_table()["id"].to_pylist()) == [-1, *ids_of_writer(1_000, 4), *ids_of_writer(2_000, 4)]
    assert [each["version"] for each in catalog.versions(table)] == [1, 2, 3, 4, 5]
    assert [each["version"] for each in catalog.versions(table, "side")] == list(range(1, 10))
    assert staged_manifests(opened.uri) == []


def test_a_killed_service_keeps_what_it_acknowledged(tmp_path):
    with Catalog(tmp_path / "data") as catalog:
        catalog.post("/v1/namespace/ns/create")
        table = ["ns", "table"]
        client = catalog.client()
        location = lance.write_dataset(
            pa.table({"id": [-1]}), namespace_client=client, table_id=table, mode="create"
        ).uri

        acknowledged = {-1}
        for round in range(3):
            acknowledged |= kill_under_a_writer(catalog, table, first=round * 1_000, after_appends=4 + round)
            catalog.start()
            assert read_every_version(catalog, table) >= acknowledged
            wait_until(lambda: unfinished_manifests(location) == [], "the sweep of what was not finished")

        lance.write_dataset(
            pa.table({"id": [-2]}), namespace_client=catalog.client(), table_id=table, mode="append"
        )
        assert read_every_version(catalog, table) >= acknowledged | {-2}
        assert unfinished_manifests(location) == []


def kill_under_a_writer(catalog: Catalog, table: list[str], first: int, after_appends: int) -> set[int]:
    """Kills the service in the middle of a writer's work. Returns the ids whose append was acknowledged."""
    writer = start_writer(catalog, table, first, 1_000)
    assert writer.stdout is not None
    starts = [int(writer.stdout.readline()) for _ in range(after_appends)]
    catalog.kill()
    rest, _ = writer.communicate(timeout=60)
    assert writer.returncode != 0, "the writer ended before the service was killed"
    return {id for start in [*starts, *map(int, rest.split())] for id in ids_of_writer(start, 1)}


def read_every_version(catalog: Catalog, table: list[str]) -> set[int]:
    """The ids in the table, after a check that the versions have no gap and each has what the one before had."""
    dataset = lance.dataset(namespace_client=catalog.client(), table_id=table)
    listed = catalog.versions(table)
    expected = list(range(1, dataset.version + 1))
    assert [each["version"] for each in listed] == expected
    assert [version_in_manifest_name(each["manifest_path"]) for each in listed] == expected
    ids: set[int] = set()
    for version in expected:
        found = dataset.checkout_version(version).to_table()["id"].to_pylist()
        assert len(found) == len(set(found)) and set(found) > ids
        ids = set(found)
    return ids
