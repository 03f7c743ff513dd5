import daft
import daft_lance
import pyarrow as pa
from arrow_rows import rows
from operations import KEY, TABLE, URL, serve

WHERE = {
    "namespace_impl": "rest",
    "namespace_properties": {"uri": URL, "header.x-api-key": KEY},
    "table_id": TABLE,
}


def write(mode: str, *numbers: int) -> None:
    daft_lance.write_lance(daft.from_arrow(rows(*numbers)), mode=mode, **WHERE)


def read(version: int | None = None) -> list[int]:
    return sorted(daft_lance.read_lance(version=version, **WHERE).to_pydict()["id"])


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([number * 2 for number in batch["id"].to_pylist()])], ["twice"])


serve(
    create=lambda: write("create", 1, 2, 3),
    append=lambda: write("append", 4),
    read=read,
    add_column=lambda: daft_lance.merge_columns(transform=twice, read_columns=["id"], **WHERE),
    index=lambda: daft_lance.create_scalar_index(column="id", index_type="BTREE", **WHERE),
    version=lambda: read(1),
    compact=lambda: daft_lance.compact_files(**WHERE),
    overwrite=lambda: write("overwrite", 1, 2),
)
