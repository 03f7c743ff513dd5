"""Writers in many processes, and a service that is killed during their work."""

import lance
import pyarrow as pa
from catalog import Catalog, staged_manifests, unfinished_manifests, version_in_manifest_name, wait_until
from writers import (
    Writing,
    check_writers,
    check_writers_past_the_catalog,
    create_table,
    read_ids,
    start_writer,
    write_at_once,
)


def test_eight_writers_append_to_one_table_and_no_row_is_lost(catalog, table):
    check_writers(catalog, table, count=8, appends=5)
    location = catalog.post(f"/v1/table/{'%24'.join(table)}/describe")["location"]
    assert staged_manifests(location) == []


def test_writers_that_commit_past_the_catalog_and_through_it_lose_no_row(catalog, table):
    check_writers_past_the_catalog(catalog, table, appends=5)


def test_writers_on_a_branch_and_on_main_do_not_meet(catalog, table):
    create_table(catalog, table).create_branch("side")
    on_main, *on_side = [Writing(0, 4), Writing(1_000, 4, branch="side"), Writing(2_000, 4, branch="side")]
    said = write_at_once(catalog, table, [on_main, *on_side])
    assert "manifest" not in said.lower(), said

    opened = lance.dataset(namespace_client=catalog.client(), table_id=table)
    assert read_ids(opened) == [-1, *on_main.ids]
    assert read_ids(opened.checkout_version(("side", None))) == [-1, *on_side[0].ids, *on_side[1].ids]
    assert [each["version"] for each in catalog.versions(table)] == [1, 2, 3, 4, 5]
    assert [each["version"] for each in catalog.versions(table, "side")] == list(range(1, 10))
    assert staged_manifests(opened.uri) == []


def test_a_killed_service_keeps_what_it_acknowledged(tmp_path):
    with Catalog(tmp_path / "data") as catalog:
        catalog.post("/v1/namespace/ns/create")
        table = ["ns", "table"]
        location = create_table(catalog, table).uri

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
    """Kills the service during a writer's work. Returns the ids whose append was acknowledged."""
    writing = Writing(first, appends=1_000)
    writer = start_writer(catalog, table, writing)
    assert writer.stdout is not None
    starts = [int(writer.stdout.readline()) for _ in range(after_appends)]
    catalog.kill()
    rest, _ = writer.communicate(timeout=60)
    assert writer.returncode != 0, "the writer ended before the service was killed"
    return {id for start in [*starts, *map(int, rest.split())] for id in range(start, start + writing.rows)}


def read_every_version(catalog: Catalog, table: list[str]) -> set[int]:
    """Returns the ids in the table, after a check that the versions have no gap and that each contains the previous
    one."""
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
