"""Writers in many processes, and a service that is killed under them."""

import lance
import pyarrow as pa
from catalog import Catalog, staged_manifests, version_in_manifest_name, wait_until
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
    catalog = Catalog(tmp_path / "data").start()
    catalog.post("/v1/namespace/ns/create")
    table = ["ns", "table"]
    client = catalog.client()
    location = lance.write_dataset(
        pa.table({"id": [-1]}), namespace_client=client, table_id=table, mode="create"
    ).uri

    acknowledged: list[int] = [-1]
    for round in range(3):
        writer = start_writer(catalog, table, round * 1_000, 1_000)
        # The service is killed in the middle of the writer's work, after some commits of this round.
        assert writer.stdout is not None
        for _ in range(4 + round):
            acknowledged += three_rows(int(writer.stdout.readline()))
        catalog.kill()
        acknowledged += [id for line in writer.communicate()[0].split() for id in three_rows(int(line))]
        catalog.start()

        dataset = lance.dataset(namespace_client=catalog.client(), table_id=table)
        found = set(dataset.to_table()["id"].to_pylist())
        assert found.issuperset(acknowledged)
        listed = catalog.versions(table)
        assert [each["version"] for each in listed] == list(range(1, dataset.version + 1))
        assert [version_in_manifest_name(each["manifest_path"]) for each in listed] == list(
            range(1, dataset.version + 1)
        )
        for each in listed:
            assert dataset.checkout_version(each["version"]).count_rows() > 0

    committed = {f"{2**64 - 1 - each['version']:020d}.manifest-" for each in catalog.versions(table)}

    def nothing_committed_is_staged() -> bool:
        return not any(path.name.startswith(tuple(committed)) for path in staged_manifests(location))

    # What is left, if anything, was staged for a version that the killed service never took:
    # the client's next version of that number is another file.
    lance.write_dataset(
        pa.table({"id": [-2]}), namespace_client=catalog.client(), table_id=table, mode="append"
    )
    wait_until(lambda: catalog.is_ready(), "readiness")
    leftovers = staged_manifests(location)
    assert len(leftovers) <= 3, leftovers
    catalog.stop()


def three_rows(start: int) -> list[int]:
    return [start, start + 1, start + 2]
