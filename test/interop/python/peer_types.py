"""Every type of Arrow that Lance stores, and some that it does not."""

import datetime
import decimal

import lance
import pyarrow as pa
from lance.arrow import bfloat16_array
from peer_tables import upsert
from peers import observe

DAY = datetime.date(2026, 11, 26)
NOW = datetime.datetime(2026, 11, 26, 1, 2, 3)
STRUCT = pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.list_(pa.string()))])


def scalars():
    numbers = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    for type in [*numbers, pa.float16(), pa.float32(), pa.float64()]:
        yield type, [1, 2]
    yield pa.null(), [None, None]
    yield pa.bool_(), [True, False]
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        yield type, ["ä", ""]
    for type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield type, [b"\0", b""]
    yield pa.binary(3), [b"abc", b"def"]
    for type in (pa.date32(), pa.date64()):
        yield type, [DAY, DAY]
    for type in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        yield type, [1, 2]
    for unit in ("s", "ms", "us", "ns"):
        yield pa.timestamp(unit), [NOW, NOW]
        yield pa.timestamp(unit, "UTC"), [NOW, NOW]
        yield pa.duration(unit), [1, 2]
    for zone in ("Europe/Berlin", "+05:30", "+00:00", "-0800"):
        yield pa.timestamp("us", zone), [NOW, NOW]
    yield pa.decimal128(10, 2), [decimal.Decimal("1.25"), decimal.Decimal("-2.50")]
    yield pa.decimal256(50, 2), [decimal.Decimal("1.25"), decimal.Decimal("-2.50")]
    for type in (pa.decimal32(5, 2), pa.decimal64(12, 2)):
        yield type, [decimal.Decimal("1.25"), decimal.Decimal("-2.50")]
    yield pa.month_day_nano_interval(), [(1, 2, 3), (4, 5, 6)]


def nested():
    yield pa.list_(pa.int64()), [[1, None], []]
    yield pa.large_list(pa.string()), [["a"], []]
    yield pa.list_view(pa.int64()), [[1], []]
    yield pa.large_list_view(pa.int64()), [[1], []]
    for item in (pa.float16(), pa.float32(), pa.float64(), pa.uint8(), pa.int8()):
        yield pa.list_(item, 2), [[1, 0], [0, 1]]
    yield pa.list_(pa.list_(pa.float32(), 2)), [[[1.0, 2.0]], []]
    yield pa.list_(pa.string(), 2), [["a", "b"], ["c", "d"]]
    yield STRUCT, [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}]
    yield pa.struct([("s", STRUCT)]), [{"s": {"a": 1, "b": ["x"]}}, {"s": None}]
    yield pa.list_(STRUCT), [[{"a": 1, "b": ["x"]}], []]
    yield pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]
    yield pa.list_(pa.timestamp("us", "+05:30")), [[NOW], []]
    yield pa.struct([("at", pa.timestamp("us", "+05:30"))]), [{"at": NOW}, {"at": None}]


def special():
    for index in (pa.int8(), pa.uint32(), pa.int64()):
        yield f"dictionary of {index}", pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    yield "dictionary of numbers", pa.DictionaryArray.from_arrays([0, 1], pa.array([5, 6]))
    yield "run ends", pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"])
    yield "dense union", pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])])
    yield "json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', "[]"]))
    yield "uuid", pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16)))
    yield "tensor", pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1.0, 2], [3, 4]], pa.list_(pa.float32(), 2)))
    yield "bfloat16", bfloat16_array([1.0, 2.0])
    yield "blob", lance.blob_array([b"first", b"second"])


def columns() -> dict[str, pa.Field | pa.Array]:
    """Returns a column of each type by its name."""
    found = {str(type): pa.array(values, type) for type, values in [*scalars(), *nested()]}
    return found | dict(special())


def rows_of(column: pa.Array, first: int = 0) -> pa.Table:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("x", column.type, metadata={"note": "kept"})]
    return pa.table([pa.array(range(first, first + len(column))), column], pa.schema(fields, {"about": "types"}))


STEPS = {
    "schema": lambda table, column: table.schema,
    "add": lambda table, column: table.add(rows_of(column, 2)),
    "merge": lambda table, column: upsert(table).execute(rows_of(column, 1)),
    "add column": lambda table, column: table.add_columns(pa.schema([("y", column.type)])),
    "read": lambda table, column: table.search().to_arrow(),
    "filter": lambda table, column: table.search().where("x is not null").to_arrow(),
}


def compare(peer) -> dict[str, str]:
    steps = {name: stored(peer, column) for name, column in columns().items()}
    return {f"{name}: {step}": outcome for name, each in steps.items() for step, outcome in each.items()}


def stored(peer, column: pa.Array) -> dict[str, str]:
    """Returns the outcome of each step with a new table of a column, and its content at the end."""
    made = []
    outcomes = {"create": observe(lambda: made.append(peer.create(rows_of(column))))}
    for table in made:
        outcomes |= {step: observe(lambda: run(table, column)) for step, run in STEPS.items()}
        outcomes["content"] = observe(lambda: peer.content(table.name))
    outcomes["by pylance"] = observe(lambda: peer.write(rows_of(column)).search().to_arrow())
    return outcomes
