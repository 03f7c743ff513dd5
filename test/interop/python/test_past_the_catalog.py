"""Tables whose first versions were written outside the catalog, as lance-ray, DuckDB and Spark's CREATE TABLE do."""

import itertools
import random
import time
import urllib.parse

import pyarrow as pa
import pytest
from clouds import Place
from lance_namespace import CountTableRowsRequest, DescribeTableRequest, InsertIntoTableRequest
from races import append_past, append_through, declare, open_past, open_through, race
from rows import stream
from writers import read_ids

RACES = {"file": 60, "s3": 15, "gs": 15}
names = itertools.count(1)
chance = random.Random(1)


@pytest.fixture
def table():
    """Returns the identifier of a table that does not exist yet."""
    return [f"past{next(names)}"]


def count(place: Place, table: list[str]) -> int:
    return place.catalog.client().count_table_rows(CountTableRowsRequest(id=table)).count


def versions(place: Place, table: list[str]) -> list[int]:
    return [each["version"] for each in place.catalog.versions(table)]


def check_rows(place: Place, table: list[str], location: str, ids: list[int]) -> None:
    """Requires that a table has these rows, for readers through the catalog and for direct readers."""
    assert read_ids(open_through(place, table)) == ids
    assert read_ids(open_past(place, location)) == ids
    assert count(place, table) == len(ids)


def test_a_table_that_pylance_wrote_at_its_location_is_seen_and_goes_on(place, table):
    client = place.catalog.client()
    location = declare(place, table)
    assert client.describe_table(DescribeTableRequest(id=table, check_declared=True)).is_only_declared
    append_past(place, location, [1, 2], mode="create")
    append_past(place, location, [3])
    assert client.describe_table(DescribeTableRequest(id=table, check_declared=True)).is_only_declared is False
    assert versions(place, table) == [1, 2]
    check_rows(place, table, location, [1, 2, 3])

    append_through(place, table, [4])
    client.insert_into_table(InsertIntoTableRequest(id=table), stream(pa.table({"id": [5]})))
    append_past(place, location, [6])
    append_through(place, table, [7])
    assert versions(place, table) == [1, 2, 3, 4, 5, 6]
    check_rows(place, table, location, [1, 2, 3, 4, 5, 6, 7])
    assert read_ids(open_through(place, table).checkout_version(1)) == [1, 2]


@pytest.mark.parametrize("first", ["count", "insert", "append"])
def test_whatever_comes_first_through_the_catalog_sees_what_was_written_past_it(place, table, first):
    location = declare(place, table)
    append_past(place, location, [1], mode="create")
    append_past(place, location, [2])
    if first == "count":
        assert count(place, table) == 2
    elif first == "insert":
        place.catalog.client().insert_into_table(InsertIntoTableRequest(id=table), stream(pa.table({"id": [3]})))
    else:
        append_through(place, table, [3])
    check_rows(place, table, location, [1, 2] if first == "count" else [1, 2, 3])


@pytest.fixture(scope="module")
def lance_ray():
    """lance-ray on a Ray of this machine. Its import lasts seconds, which other tests need not wait for."""
    import lance_ray
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield lance_ray
    ray.shutdown()


def test_a_table_of_lance_ray_is_seen_and_goes_on(place, table, lance_ray):
    import ray

    def write(ids: list[int], mode: str) -> None:
        lance_ray.write_lance(ray.data.from_arrow(pa.table({"id": ids})), mode=mode, **where)

    where = {
        "namespace_impl": "rest",
        "namespace_properties": place.catalog.properties,
        "table_id": table,
        "storage_options": place.storage_options,
    }
    location = declare(place, table)
    write([1, 2], "overwrite")
    write([3], "append")
    assert versions(place, table) == [1, 2]
    check_rows(place, table, location, [1, 2, 3])
    append_through(place, table, [4])
    write([5], "append")
    assert versions(place, table) == [1, 2, 3, 4]
    check_rows(place, table, location, [1, 2, 3, 4, 5])
    assert sorted(row["id"] for row in lance_ray.read_lance(**where).take_all()) == [1, 2, 3, 4, 5]


def test_an_append_through_the_catalog_and_one_past_it_that_meet_lose_no_row(place):
    """Each race uses a separate table, because the catalog must not know any of its versions at the start: the first
    one was written outside the catalog."""
    tables, winners, lasted = [], [], 0.0
    scheme = urllib.parse.urlparse(declare(place, ["race"])).scheme
    for number in range(RACES[scheme]):
        table = [f"race{number}"]
        location = declare(place, table)
        append_past(place, location, [0], mode="create")
        start = time.monotonic()
        # Each writer commits first in some of the races.
        failures = race(
            lambda: append_through(place, table, [1]),
            lambda: append_past(place, location, [2]),
            head_start=chance.uniform(0, lasted),
        )
        lasted = time.monotonic() - start
        tables.append((table, location, failures))
    lost = []
    for table, location, failures in tables:
        assert failures == [None, None]
        through, past = open_through(place, table), open_past(place, location)
        winners.append(read_ids(past.checkout_version(2))[-1])
        if not read_ids(through) == read_ids(past) == [0, 1, 2] or count(place, table) != 3:
            lost.append((table, read_ids(through), read_ids(past)))
    assert lost == []
    assert set(winners) == {1, 2}, "one was always the first"
