"""Fills the column `squared` of a table from its column `number`, batch by batch in Ray tasks: backfill.py TABLE GATE.
It prints a line when it has begun, and continues when the file GATE exists."""

import os
import sys
import time
from pathlib import Path

import lance
import lance.namespace
import pyarrow as pa
import pyarrow.compute as pc
import ray

table, gate = sys.argv[1:]


@ray.remote
def filled(batch: pa.RecordBatch) -> pa.Table:
    numbers = batch["number"]
    return pa.table({"id": batch["id"], "squared": pc.multiply(numbers, numbers)})


key = {"header.x-api-key": os.environ["TILTYARD_API_KEY"]}
catalog = lance.namespace.RestNamespace(uri=os.environ["TILTYARD_CATALOG_URL"], **key)
dataset = lance.dataset(namespace_client=catalog, table_id=table.split("$"))
print("begun", flush=True)
while not Path(gate).exists():
    time.sleep(0.05)
ray.init()
parts = ray.get([filled.remote(batch) for batch in dataset.to_batches(batch_size=30)])
dataset.merge(pa.concat_tables(parts), "id")
found = lance.dataset(namespace_client=catalog, table_id=table.split("$"))
print("filled", found.version, found.to_table(columns=["squared"])["squared"].to_pylist()[:5], flush=True)
