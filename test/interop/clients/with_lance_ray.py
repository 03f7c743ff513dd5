import lance_ray
import pyarrow as pa
import pyarrow.compute as pc
import ray
from arrow_rows import ids, rows
from operations import KEY, TABLE, URL, serve

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
WHERE = {
    "namespace_impl": "rest",
    "namespace_properties": {"uri": URL, "header.x-api-key": KEY},
    "table_id": TABLE,
}


def write(mode: str, *numbers: int) -> None:
    lance_ray.write_lance(ray.data.from_arrow(rows(*numbers)), mode=mode, **WHERE)


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pc.multiply(batch["id"], 2)], ["twice"])


serve(
    create=lambda: write("create", 1, 2, 3),
    append=lambda: write("append", 4),
    read=lambda: sorted(film["id"] for film in lance_ray.read_lance(**WHERE).take_all()),
    search=lambda: ids(lance_ray.vector_search(nearest={"column": "vector", "q": [3.0, 0.0], "k": 1}, **WHERE)),
    add_column=lambda: lance_ray.add_columns(transform=twice, read_columns=["id"], **WHERE),
    index=lambda: lance_ray.create_scalar_index(column="id", index_type="BTREE", **WHERE),
    version=lambda: sorted(
        film["id"] for film in lance_ray.read_lance(dataset_options={"version": 1}, **WHERE).take_all()
    ),
    compact=lambda: lance_ray.compact_files(**WHERE),
    overwrite=lambda: write("overwrite", 1, 2),
)
