"""Adds a column through the catalog for which Geneva needs a second per row: slow_column.py TABLE COLUMN"""

import os
import sys

import geneva
import pyarrow as pa


def slow():
    # A nested function is pickled by value, because Ray has no module of this name.
    @geneva.udf(data_type=pa.int64())
    def slow(number: int) -> int:
        import time

        time.sleep(1)
        return number

    return slow


properties = {"uri": os.environ["TILTYARD_CATALOG_URL"], "header.x-api-key": os.environ["TILTYARD_API_KEY"]}
db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=properties)
*namespace, name = sys.argv[1].split("$")
db.open_table(name, namespace=namespace).add_columns({sys.argv[2]: slow()})
