"""Concurrent appends: one through the catalog, and one outside it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
from clouds import Place


def declare(place: Place, table: list[str]) -> str:
    """Declares a table without a version. Returns its location."""
    return place.catalog.post(f"/v1/table/{'%24'.join(table)}/declare")["location"]


def append_through(place: Place, table: list[str], ids: list[int]) -> None:
    client = place.catalog.client()
    options = place.storage_options
    lance.write_dataset(pa.table({"id": ids}), namespace_client=client, table_id=table, mode="append", storage_options=options)


def append_past(place: Place, location: str, ids: list[int], mode: str = "append") -> None:
    lance.write_dataset(pa.table({"id": ids}), location, mode=mode, storage_options=place.storage_options)


def open_through(place: Place, table: list[str]) -> lance.LanceDataset:
    return lance.dataset(namespace_client=place.catalog.client(), table_id=table, storage_options=place.storage_options)


def open_past(place: Place, location: str) -> lance.LanceDataset:
    return lance.dataset(location, storage_options=place.storage_options)


def attempt(write) -> Exception | None:
    """Calls a function. Returns its exception."""
    try:
        write()
    except Exception as error:  # Lance has no class for a commit that failed.
        return error
    return None


def race(first, second, head_start: float) -> list[Exception | None]:
    """Calls two functions in separate threads, the second after a delay in seconds. Returns their exceptions."""
    begin = threading.Barrier(2)

    def run(write, wait: float) -> Exception | None:
        begin.wait()
        time.sleep(wait)
        return attempt(write)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, [first, second], [0, head_start]))
