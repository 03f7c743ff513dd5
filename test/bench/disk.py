"""Commits durably for some seconds without any other work. disk.ts explains the measurement.

disk.py FOLDER WAY IN_FLIGHT SECONDS
"""

import ctypes
import json
import os
import sqlite3
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

MANIFEST = b"manifest " * 113
TABLES_PER_COMMIT = 32
# The catalog has the same number of threads.
SYNCING_THREADS = 16

libc = ctypes.CDLL(None, use_errno=True)


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_each(paths):
    list(pool.map(sync, paths))


def sync_file_system(_):
    if libc.syncfs(folder_descriptor) != 0:
        raise OSError(ctypes.get_errno(), "syncfs")


def stage(table, version):
    staged = f"{table}/{version}.manifest-{uuid.uuid4()}"
    with open(staged, "wb") as file:
        file.write(MANIFEST)
    return table, version, staged, f"{table}/{version}.manifest"


def commit(group, placed):
    """Commits a group and finishes the previous group, whose manifests have their final names."""
    names = {table for table, *_ in [*group, *placed]}
    make_durable([staged for _, _, staged, _ in group] + list(names))
    for _, _, staged, _ in placed:
        os.unlink(staged)
    with database:
        database.executemany("update versions set finished = 1 where name = ? and version = ?", [of[:2] for of in placed])
        database.executemany("insert into versions values (?, ?, ?, 0)", [of[:3] for of in group])
    for _, _, staged, final in group:
        os.link(staged, final)


folder, way, in_flight, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
make_durable = {"each": sync_each, "syncfs": sync_file_system}[way]
tables = [f"{folder}/t_{number}/_versions" for number in range(in_flight * TABLES_PER_COMMIT)]
for each in tables:
    os.makedirs(each)
folder_descriptor = os.open(folder, os.O_RDONLY)
pool = ThreadPoolExecutor(SYNCING_THREADS)
database = sqlite3.connect(f"{folder}/versions.sqlite")
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = full")
database.execute("create table versions (name text, version int, staged text, finished int, primary key (name, version))")
os.sync()

latencies, commits, placed = [], 0, []
cpu_before = time.process_time()
elapsed = cpu_of_staging = 0.0
while elapsed < seconds:
    # Staging is the work of clients and not part of a commit, so it is not counted.
    cpu = time.process_time()
    group = [stage(tables[(commits + each) % len(tables)], (commits + each) // len(tables)) for each in range(in_flight)]
    cpu_of_staging += time.process_time() - cpu
    started = time.perf_counter()
    commit(group, placed)
    latencies.append(time.perf_counter() - started)
    elapsed += latencies[-1]
    commits += in_flight
    placed = group

latencies.sort()
cpu_seconds = time.process_time() - cpu_before - cpu_of_staging
measured = {
    "requests": commits,
    "requestsPerSecond": commits / elapsed,
    "p50Ms": latencies[len(latencies) // 2] * 1000,
    "p99Ms": latencies[int(len(latencies) * 0.99)] * 1000,
    "cpuUsPerRequest": cpu_seconds * 1e6 / commits,
}
print(json.dumps(measured))
