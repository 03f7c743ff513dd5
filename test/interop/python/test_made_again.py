"""Versions that are deleted and immediately created again under the same numbers."""

import itertools
import json
import re
import urllib.error
import urllib.parse
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.fs
import pytest
from catalog import wait_until
from clouds import Place
from lance_namespace import DeleteTableBranchRequest
from races import append_past, append_through, declare, open_through
from writers import create_table, read_ids

ROUNDS = 5
names = itertools.count(1)


@pytest.fixture
def table():
    """Returns the identifier of a table that does not exist yet."""
    return [f"again{next(names)}"]


def delete_all(place: Place, table: list[str], branch: str | None = None) -> None:
    body = {"ranges": [{"start_version": 0, "end_version": -1}], **({"branch": branch} if branch else {})}
    place.catalog.post(f"/v1/table/{'%24'.join(table)}/version/delete", body)


def versions(place: Place, table: list[str], branch: str | None = None) -> list[int]:
    return [each["version"] for each in place.catalog.versions(table, branch)]


def write_side(place: Place, table: list[str], ids: list[int]) -> None:
    """Creates the branch `side` and appends to it."""
    lance.write_dataset(pa.table({"id": ids}), open_through(place, table).create_branch("side"), mode="append")


def read_side(place: Place, table: list[str]) -> list[int]:
    return read_ids(open_through(place, table).checkout_version(("side", None)))


def delete_side(place: Place, table: list[str], by: str) -> None:
    if by == "pylance":
        # This call deletes the folder without the catalog.
        open_through(place, table).branches.delete("side")
    else:
        place.catalog.client().delete_table_branch(DeleteTableBranchRequest(id=table, name="side"))


@pytest.mark.parametrize("by", ["pylance", "the catalog"])
def test_a_branch_of_pylance_that_is_deleted_and_made_again_has_what_was_written_last(place, table, by):
    create_table(place.catalog, table, place.storage_options)
    for number in range(ROUNDS):
        write_side(place, table, [number])
        assert read_side(place, table) == [-1, number]
        assert versions(place, table, "side") == [1, 2]
        delete_side(place, table, by)
    assert read_ids(open_through(place, table)) == [-1]


def stage(place: Place, location: str, version: int, ids: list[int]) -> str:
    """Writes a manifest and its data like pylance but leaves the commit to the caller. The manifest is that of another
    table with these rows. Returns the path of the manifest."""
    beside = f"{location}-beside{next(names)}"
    append_past(place, beside, ids, mode="create")
    store, source, target = open_store(place, beside, location)
    staged = f"{target}/_versions/{2**64 - 1 - version:020d}.manifest-{next(names)}"
    [manifest] = [each.path for each in store.get_file_info(pa.fs.FileSelector(f"{source}/_versions")) if each.path.endswith(".manifest")]
    data = [each.path for each in store.get_file_info(pa.fs.FileSelector(f"{source}/data"))]
    for path, copy in [(manifest, staged), *((path, path.replace(source, target)) for path in data)]:
        store.create_dir(str(Path(copy).parent))
        store.copy_file(path, copy)
    # Keys in a bucket have the name of the bucket as a prefix here.
    return staged.removeprefix("bucket/")


def open_store(place: Place, *locations: str) -> tuple:
    """Returns the store of locations and their paths in it."""
    [scheme] = {urllib.parse.urlparse(location).scheme for location in locations}
    paths = [urllib.parse.unquote(re.sub(r"^(file|s3|gs)://", "", location)) for location in locations]
    if scheme == "file":
        return pa.fs.LocalFileSystem(), *paths
    options = place.storage_options
    assert options is not None
    if scheme == "gs":
        emulator = json.loads(options["google_service_account_key"])["gcs_base_url"].removeprefix("http://")
        return pa.fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=emulator), *paths
    return (
        pa.fs.S3FileSystem(
            access_key=options["aws_access_key_id"],
            secret_key=options["aws_secret_access_key"],
            endpoint_override=options["aws_endpoint"],
            allow_bucket_creation=True,
        ),
        *paths,
    )


def commit(place: Place, table: list[str], version: int, staged: str) -> None:
    body = {"version": version, "manifest_path": staged, "naming_scheme": "V2"}
    place.catalog.post(f"/v1/table/{'%24'.join(table)}/version/create", body)


def test_versions_of_main_that_are_deleted_and_made_again_are_those_that_were_written_last(place, table):
    location = declare(place, table)
    for number in range(ROUNDS):
        for version, ids in [(1, [number]), (2, [number, 10 + number])]:
            commit(place, table, version, stage(place, location, version, ids))
            # The manifests of the previous versions still exist, and some of them are new.
            assert versions(place, table) == list(range(1, version + 1))
            assert read_ids(open_through(place, table)) == ids
        delete_all(place, table)
        assert versions(place, table) == []


@pytest.mark.parametrize("fault", ["failed", "hangs"])
@pytest.mark.parametrize("branch", [None, "side"])
def test_a_version_that_is_made_again_while_the_first_is_being_finished_stands(faulty, table, branch, fault):
    """The first commit is placed, but its staged manifest cannot be deleted."""
    location = declare(faulty, table)
    if branch:
        append_through(faulty, table, [-1])

    def make(ids: list[int]) -> None:
        if branch:
            write_side(faulty, table, ids)
        else:
            commit(faulty, table, 1, stage(faulty, location, 1, ids))

    def check() -> None:
        if branch:
            assert read_side(faulty, table) == [-1, 2]
            assert versions(faulty, table, "side") == [1, 2]
        else:
            assert read_ids(open_through(faulty, table)) == [2]
            assert versions(faulty, table) == [1]

    store, folder = open_store(faulty, location)

    def staged() -> set[str]:
        found = store.get_file_info(pa.fs.FileSelector(folder, recursive=True))
        return {each.path for each in found if ".manifest-" in each.path}

    try:
        faulty.faults.inject(fault, "unstage")
        make([1])
        wait_until(lambda: faulty.faults.count() > 0, "the fault")
        if branch:
            delete_side(faulty, table, "pylance")
        else:
            delete_all(faulty, table)
        # The manifest of a version whose record was deleted remains, because clients clean it up.
        left = staged()
        make([2])
        check()
    finally:
        faulty.faults.lift()
    check()
    wait_until(lambda: staged() <= left, "the end of the second commit")
    check()


def test_a_version_takes_the_place_of_one_that_never_got_its_final_name(faulty, table):
    """A commit is in doubt because the store failed, its record is deleted, and its number is used again."""
    location = declare(faulty, table)
    first = stage(faulty, location, 1, [1])
    try:
        faulty.faults.inject("failed", "place")
        with pytest.raises(urllib.error.HTTPError, match="503"):
            commit(faulty, table, 1, first)
        delete_all(faulty, table)
    finally:
        faulty.faults.lift()
    commit(faulty, table, 1, stage(faulty, location, 1, [2]))
    assert read_ids(open_through(faulty, table)) == [2]
    # The staged manifest of the first commit must no longer be finished.
    with pytest.raises(urllib.error.HTTPError, match="409"):
        commit(faulty, table, 1, first)
    assert read_ids(open_through(faulty, table)) == [2]
