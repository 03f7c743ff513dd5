"""Columns and views of every type of Arrow that Lance stores, which Geneva's unmodified remote client adds."""

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import Catalog

BLOB = pa.field("bytes", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
UNITS = ("s", "ms", "us", "ns")

TYPES = [
    pa.null(),
    pa.bool_(),
    *[getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)],
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(16),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *[pa.timestamp(unit) for unit in UNITS],
    pa.timestamp("us", "UTC"),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.timestamp("us", "+05:30"),
    *[pa.duration(unit) for unit in UNITS],
    pa.decimal128(10, 2),
    pa.decimal256(50, -2),
    pa.list_(pa.date32()),
    pa.large_list(pa.field("item", pa.string(), metadata={"unit": "word"})),
    pa.list_(pa.float32(), 4),
    pa.struct([pa.field("id", pa.int64(), nullable=False), BLOB]),
    pa.list_(pa.struct([("at", pa.timestamp("us", "-03:30")), ("lengths", pa.list_(pa.duration("s"), 2))])),
    pa.map_(pa.string(), pa.list_(pa.int64())),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64(), ordered=True),
    pa.uuid(),
    pa.json_(),
    pa.bool8(),
    pa.fixed_shape_tensor(pa.float32(), [2, 3], dim_names=["row", "column"]),
]
SCHEMA = pa.schema([(f"c{index}", type) for index, type in enumerate(TYPES)])


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The schema of a local table to which Lance added a column of each type."""
    rows = lance.write_dataset(pa.table({"id": [1]}), tmp_path_factory.mktemp("local") / "types.lance")
    rows.add_columns(SCHEMA)
    return rows.schema


def described(schema: pa.Schema) -> list[str]:
    """Returns the fields with all their metadata except for that of functions."""

    def without_function(field: pa.Field) -> pa.Field:
        kept = {key: value for key, value in (field.metadata or {}).items() if not key.startswith(b"virtual_column")}
        return field.with_metadata(kept or None)

    # Lance's library for Node stores zones without the colon, which the catalog adds to all that it returns.
    texts = [pa.schema([without_function(field)]).to_string() for field in schema]
    return [text.replace("+0530", "+05:30").replace("-0330", "-03:30") for text in texts]


def test_geneva_adds_a_column_of_every_type(catalog: Catalog, table, local):
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    name = f"types_{table[0]}"
    rows = db.create_table(name, pa.table({"id": [1]}))
    for field in SCHEMA:

        @geneva.udf(data_type=field.type)
        def nothing(id: int):
            return None

        rows.add_columns({field.name: nothing})
    read = lance.dataset(namespace_client=catalog.client(), table_id=[name]).schema
    assert described(read) == described(local)


def test_a_view_has_columns_of_every_type(catalog: Catalog, table, local):
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    view = f"view_{table[0]}"
    source = db.create_table(f"source_{table[0]}", SCHEMA.empty_table())
    db.create_materialized_view(view, source.search(None).select(SCHEMA.names))
    read = lance.dataset(namespace_client=catalog.client(), table_id=[view]).schema
    # Geneva's queries return no metadata of nested fields.
    kept = [text.partition("\n  child 0")[0] for text in described(local)]
    assert [text.partition("\n  child 0")[0] for text in described(read)[-len(SCHEMA) :]] == kept[1:]


def views_of_functions(db: geneva.db.Connection, suffix: str) -> list[str]:
    """Creates a view of a chunker and one of a UDTF with columns of all types."""

    @geneva.chunker(output_schema=SCHEMA, inherit_input_columns=True)
    def chunks(id: int):
        yield from ()

    @geneva.udtf(output_schema=SCHEMA)
    def rows(source):
        yield from ()

    source = db.create_table(f"numbers_{suffix}", pa.table({"id": [1]}))
    names = [f"chunks_{suffix}", f"rows_{suffix}"]
    for name, function in zip(names, (chunks, rows), strict=True):
        db.create_udtf_view(name, source.search(None).select(["id"]), function)
    return names


def test_views_of_functions_have_columns_of_every_type_that_native_geneva_stores(catalog: Catalog, table, tmp_path):
    native = views_of_functions(geneva.connect(tmp_path / "native"), table[0])
    remote = views_of_functions(
        geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url), table[0]
    )
    for local, stored in zip(native, remote, strict=True):
        read = lance.dataset(namespace_client=catalog.client(), table_id=[stored]).schema
        assert described(read) == described(lance.dataset(tmp_path / "native" / f"{local}.lance").schema)


def test_a_zone_keeps_its_spelling_and_its_values(remote, table):
    zone = pa.timestamp("us", "+05:30")
    rows = pa.table({"id": [1], "at": pa.array([0], zone), "all": pa.array([[0]], pa.list_(zone))})
    stored = remote.create_table(f"zones_{table[0]}", rows)
    stored.delete("id = 1")
    stored.add(rows)
    stored.merge_insert("id").when_matched_update_all().execute(rows)
    assert stored.schema == rows.schema
    assert stored.search().to_arrow() == rows
