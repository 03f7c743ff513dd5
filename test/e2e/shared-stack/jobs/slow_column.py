"""Adds a column to a table through the catalog that takes Geneva a second a row: slow_column.py TABLE COLUMN"""

import os
import sys

import geneva
import pyarrow as pa


def slow():
    # A function of a function is pickled by value: Ray has no module of this name.
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
