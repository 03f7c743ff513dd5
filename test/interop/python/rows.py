"""Rows that tests write."""

import io

import pyarrow as pa


def vectors(ids: list[int]) -> pa.Table:
    values = [[float(id), 0.0] for id in ids]
    return pa.table({"id": ids, "title": [f"film {id}" for id in ids], "vector": pa.array(values, pa.list_(pa.float32(), 2))})


def stream(table: pa.Table) -> bytes:
    """Returns the rows as an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
