"""Creates tables with a column `id` and a column of numbers through the catalog: create_tables.py TABLE=COLUMN ..."""

import os
import sys

import lance
import lance.namespace
import pyarrow as pa

key = {"header.x-api-key": os.environ["TILTYARD_API_KEY"]}
catalog = lance.namespace.RestNamespace(uri=os.environ["TILTYARD_CATALOG_URL"], **key)
for table, column in (argument.split("=") for argument in sys.argv[1:]):
    data = pa.table({"id": range(100), column: range(100)})
    lance.write_dataset(data, namespace_client=catalog, table_id=table.split("$"), mode="create")
