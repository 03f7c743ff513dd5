"""Values of every kind in filters, updates and merges of a column of each type, for most of which they are malformed."""

from functools import partial

import pyarrow as pa
from peer_tables import upsert
from peer_types import columns, rows_of
from peers import observe

VALUES = {
    "a text": "x",
    "a fraction": 5.5,
    "a large number": 2**63 - 1,
    "a negative number": -1,
    "a boolean": True,
    "bytes": b"x",
    "a short list": [5.0],
    "a list of texts": ["x", "1"],
    "a list with a null": [1.0, None],
    "an empty list": [],
    "null": None,
}
EXPRESSIONS = {"SQL of a text": "'x'", "SQL of a list": "[5.0]", "SQL with a failing cast": "cast('x' as int)"}
FILTERS = {
    "a number": "x = 1",
    "a fraction": "x < 5.5",
    "a large number": "x < 9223372036854775808",
    "a text": "x = 'x'",
    "a boolean": "x = true",
    "bytes": "x = X'00'",
    "a date": "x <= date '2026-11-26'",
    "a time": "x <= timestamp '2026-11-26 01:02:03'",
    "a list": "x = [1.0]",
    "null": "x = null",
}
SOURCES = {
    "texts": pa.array(["x", "y"]),
    "fractions": pa.array([5.5, -1.0]),
    "lists": pa.array([[1.0], [2.0, 3.0, 4.0]]),
    "structs": pa.array([{"a": "x"}, {"a": "y"}]),
}
CHANGES = {
    **{f"update: {name}": lambda table, value=value: table.update("id = 1", {"x": value}) for name, value in VALUES.items()},
    **{f"update: {name}": lambda table, sql=sql: table.update("id = 1", values_sql={"x": sql}) for name, sql in EXPRESSIONS.items()},
    **{
        f"merge: {name}": lambda table, values=values: upsert(table).execute(pa.table({"id": [1, 9], "x": values}))
        for name, values in SOURCES.items()
    },
}


def compare(peer) -> dict[str, str]:
    """Filters and changes a table of each type. The rows after a change are a part of its outcome, because NULL is no failure."""
    outcomes = {}
    for name, column in columns().items():
        try:
            table = peer.create(rows_of(column))
        except Exception:  # noqa: BLE001, S112 - the types without a table are another area
            continue
        for value, sql in FILTERS.items():
            outcomes[f"{name}: filter: {value}"] = observe(partial(filtered, table, sql))
        for change, run in CHANGES.items():
            outcomes[f"{name}: {change}"] = observe(partial(changed, table, run))
    return outcomes


def filtered(table, sql: str):
    return table.search().where(sql).select(["id"]).to_arrow()


def changed(table, run):
    run(table)
    return table.search().select(["id", "x"]).to_arrow()
