"""A store that fails during commits while writers outside the catalog are active."""

import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from catalog import wait_until
from clouds import FaultyPlace
from lance_namespace import CountTableRowsRequest
from races import append_past, append_through, attempt, declare, open_past, open_through
from writers import read_ids

APPENDS = 5
chance = random.Random(1)
names = itertools.count(1)


@pytest.fixture
def table(faulty):
    """A table with a row of the id 0."""
    identifier = [f"faulty{next(names)}"]
    declare(faulty, identifier)
    append_through(faulty, identifier, [0])
    yield identifier
    faulty.faults.lift()


def location_of(place: FaultyPlace, table: list[str]) -> str:
    return place.catalog.post(f"/v1/table/{'%24'.join(table)}/describe")["location"]


def check_acknowledged(place: FaultyPlace, table: list[str], acknowledged: set[int]) -> None:
    """Requires that acknowledged rows exist once, for readers through the catalog and for direct readers."""
    through = read_ids(open_through(place, table))
    assert len(through) == len(set(through))
    assert set(through) >= acknowledged, f"lost: {acknowledged - set(through)}"
    assert read_ids(open_past(place, location_of(place, table))) == through
    assert place.catalog.client().count_table_rows(CountTableRowsRequest(id=table)).count == len(through)


@pytest.mark.parametrize("fault", ["refused", "failed", "answerLost", "hangs"])
@pytest.mark.parametrize("step", ["place", "look"])
def test_a_writer_past_the_catalog_takes_nothing_from_a_commit_whose_store_fails(faulty, table, fault, step):
    """The store fails when the manifest is placed."""
    location = location_of(faulty, table)
    faulty.faults.inject(fault, step)
    with ThreadPoolExecutor(1) as thread:
        appending = thread.submit(attempt, lambda: append_through(faulty, table, [1]))
        # The other append begins while the commit is in progress or has failed.
        wait_until(lambda: faulty.faults.count() > 0 or appending.done(), "the fault")
        if fault != "hangs":
            appending.result()
        append_past(faulty, location, [2])
        assert faulty.faults.lift() > 0
        acknowledged = {0, 2} | ({1} if appending.result() is None else set())
    check_acknowledged(faulty, table, acknowledged)
    append_through(faulty, table, [3])
    append_past(faulty, location, [4])
    check_acknowledged(faulty, table, acknowledged | {3, 4})


def test_writers_in_a_store_that_fails_now_and_then_lose_nothing_that_was_acknowledged(faulty, table):
    location = location_of(faulty, table)
    acknowledged = {0}

    def write(first: int, append) -> None:
        """Appends until enough rows were acknowledged. Each append has a new id."""
        left = APPENDS
        for id in itertools.count(first):
            if left == 0:
                return
            if attempt(lambda: append(id)) is None:
                acknowledged.add(id)
                left -= 1

    through = [lambda id: append_through(faulty, table, [id])] * 2
    writers = [*through, lambda id: append_past(faulty, location, [id])]
    struck = 0
    with ThreadPoolExecutor(len(writers)) as threads:
        writing = [threads.submit(write, 1_000 * number, append) for number, append in enumerate(writers, 1)]
        while not all(each.done() for each in writing):
            step = chance.choice(["place", "look", "unstage"])
            faulty.faults.inject(chance.choice(["refused", "failed", "answerLost"]), step)
            time.sleep(chance.uniform(0, 1))
            struck += faulty.faults.lift()
            time.sleep(chance.uniform(0, 0.3))
        for each in writing:
            each.result()
    assert struck > 0
    check_acknowledged(faulty, table, acknowledged)
