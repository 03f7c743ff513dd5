"""A Geneva job: backfill.py URL KEY_FILE. Adds a computed column to a table and fills it, on a local Ray."""

import sys
from pathlib import Path

import geneva
import pyarrow as pa
import ray

url, key_file = sys.argv[1:]


@geneva.udf(data_type=pa.int64())
def squared(number: int) -> int:
    return number * number


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    properties = {"uri": url, "header.x-api-key": Path(key_file).read_text()}
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=properties)
    table = db.create_table("numbers", pa.table({"number": range(100)}))
    table.add_columns({"squared": squared})
    table.backfill("squared")
    # The table still shows the version that it was opened at.
    table.checkout_latest()
    found = table.to_arrow()
    assert found.equals(db.open_table("numbers").to_arrow()), "a table that is opened again has other values"
    print(dict(zip(found["number"].to_pylist(), found["squared"].to_pylist())))


if __name__ == "__main__":
    main()
