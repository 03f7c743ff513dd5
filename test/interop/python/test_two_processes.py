"""Two processes of the service over one SQLite file, as with `tiltyard run --local` next to `npm start`."""

import contextlib
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest
from catalog import Catalog, wait_until
from clouds import CLOUDS, FaultyPlace, Place
from faults import FaultyFiles, faulty_proxy
from lance_namespace import DropTableRequest
from races import append_past, append_through, open_past, open_through
from writers import read_ids

ROUNDS = 10
LOCATION = "fixed/place.lance"
# A duration that exceeds the interval at which a process checks for work of another one.
SLOW_DELETION_SECONDS = 7


@pytest.fixture(params=["files", *CLOUDS])
def two(request, tmp_path):
    """Both processes access the store without faults."""
    environment, options = {}, None
    if request.param in CLOUDS:
        environment_of, options_of, _ = CLOUDS[request.param]
        url = request.getfixturevalue(request.param)
        environment, options = environment_of(url), options_of(url)
    with Catalog(tmp_path, environment) as first, Catalog(tmp_path, environment) as second:
        yield [Place(first, options), Place(second, options)]


@pytest.fixture(params=["files", *CLOUDS])
def one_that_is_slow(request, tmp_path):
    """Steps of the first process fail."""
    with contextlib.ExitStack() as stack:
        if request.param == "files":
            faults = FaultyFiles(tmp_path / "faults")
            environment, faulty_environment, options = {}, faults.environment, None
        else:
            environment_of, options_of, steps = CLOUDS[request.param]
            url = request.getfixturevalue(request.param)
            faults = stack.enter_context(faulty_proxy(url, steps))
            environment, faulty_environment, options = environment_of(url), environment_of(faults.url), options_of(url)
        first = stack.enter_context(Catalog(tmp_path / "data", faulty_environment))
        second = stack.enter_context(Catalog(tmp_path / "data", environment))
        yield [FaultyPlace(first, options, faults=faults), Place(second, options)]


def try_to_declare(place: Place, table: str) -> str | None:
    """Declares a table at the fixed location. Returns its location; None while another table is there."""
    try:
        return place.catalog.post(f"/v1/table/{table}/declare", {"location": LOCATION})["location"]
    except urllib.error.HTTPError as error:
        assert error.code == 409, error.read()
        return None


def declare(place: Place, table: str) -> str:
    found: list[str | None] = [None]

    def is_declared() -> bool:
        found[0] = try_to_declare(place, table)
        return found[0] is not None

    wait_until(is_declared, "the end of the table that was there before")
    assert found[0] is not None
    return found[0]


def drop(place: Place, table: str) -> None:
    place.catalog.client().drop_table(DropTableRequest(id=[table]))


def test_a_table_at_a_place_whose_table_the_other_process_drops_keeps_all_that_was_written(two):
    """Each process drops the table of the other one and creates its own at the same location."""
    declare(two[0], "table0")
    append_through(two[0], ["table0"], [0])
    for number in range(1, ROUNDS):
        dropper, maker = two if number % 2 else two[::-1]
        with ThreadPoolExecutor(1) as thread:
            declaring = thread.submit(declare, maker, f"table{number}")
            drop(dropper, f"table{number - 1}")
            location = declaring.result()
        table, ids = [f"table{number}"], list(range(number, number + 3))
        for id in ids[:2]:
            append_through(maker, table, [id])
        append_past(maker, location, ids[2:])
        for place in two:
            assert read_ids(open_through(place, table)) == ids
        assert read_ids(open_past(maker, location)) == ids


def test_a_slow_deletion_by_one_process_takes_nothing_from_the_next_table_there(one_that_is_slow):
    slow, other = one_that_is_slow
    declare(slow, "before")
    for id in range(3):
        append_through(slow, ["before"], [id])
    slow.faults.inject("hangs", "delete folder")
    drop(slow, "before")
    # The other process either waits with its own table or has completed the deletion itself.
    wait_until(lambda: slow.faults.count() > 0, "the deletion")
    until = time.monotonic() + SLOW_DELETION_SECONDS
    location = None
    while location is None and time.monotonic() < until:
        location = try_to_declare(other, "after")
        time.sleep(0.2)
    if location is not None:
        append_through(other, ["after"], [10])
    slow.faults.lift()
    if location is None:
        location = declare(other, "after")
        append_through(other, ["after"], [10])
    append_through(slow, ["after"], [11])
    append_through(other, ["after"], [12])
    for place in one_that_is_slow:
        assert read_ids(open_through(place, ["after"])) == [10, 11, 12]
        # Every version exists, including the first one, whose manifest has the name of the previous one.
        dataset = open_through(place, ["after"])
        assert [read_ids(dataset.checkout_version(version)) for version in (1, 2)] == [[10], [10, 11]]
    assert read_ids(open_past(other, location)) == [10, 11, 12]
