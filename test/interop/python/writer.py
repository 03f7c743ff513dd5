"""Appends to a table from a process of its own: writer.py PROPERTIES TABLE FIRST APPENDS ROWS [BRANCH] [STORAGE_OPTIONS]."""

import json
import sys

import lance
import lance.namespace
import pyarrow as pa

properties, table, first, appends, rows, branch, storage_options = (json.loads(each) for each in sys.argv[1:])
client = lance.namespace.RestNamespace(**properties)
for append in range(appends):
    start = first + append * rows
    data = pa.table({"id": range(start, start + rows)})
    if branch is None:
        lance.write_dataset(
            data, namespace_client=client, table_id=table, mode="append", storage_options=storage_options
        )
    else:
        dataset = lance.dataset(namespace_client=client, table_id=table, storage_options=storage_options)
        lance.write_dataset(data, dataset.checkout_version((branch, None)), mode="append")
    print(start, flush=True)
