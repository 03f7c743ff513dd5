"""Appends to a table in a separate process: writer.py JSON, with the fields of a `Writing`. Prints the first id of each
append after its acknowledgement."""

import json
import sys

import lance
import lance.namespace
import pyarrow as pa

writing = json.loads(sys.argv[1])
branch, options = writing["branch"], writing["storage_options"]
table = {
    "namespace_client": lance.namespace.RestNamespace(**writing["properties"]),
    "table_id": writing["table"],
    "storage_options": options,
}


def append(data: pa.Table) -> None:
    if writing["past_the_catalog"]:
        append_past_the_catalog(data)
    elif branch is None:
        lance.write_dataset(data, mode="append", **table)
    else:
        lance.write_dataset(data, lance.dataset(**table).checkout_version((branch, None)), mode="append")


def append_past_the_catalog(data: pa.Table) -> None:
    """Reads through the catalog and commits directly to the table's folder, like Geneva."""
    dataset = lance.dataset(**table)
    fragment = lance.fragment.LanceFragment.create(dataset.uri, data, storage_options=options)
    operation = lance.LanceOperation.Append([fragment])
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version, storage_options=options)


for start in range(writing["first"], writing["first"] + writing["appends"] * writing["rows"], writing["rows"]):
    append(pa.table({"id": range(start, start + writing["rows"])}))
    print(start, flush=True)
