"""The rows of operations.py in Arrow."""

import pyarrow as pa
from operations import row

SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string()), ("vector", pa.list_(pa.float32(), 2))])


def rows(*ids: int, title: str | None = None) -> pa.Table:
    return pa.Table.from_pylist([row(id, title) for id in ids], schema=SCHEMA)


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())
