import lance
import lance.namespace
import polars as pl
from arrow_rows import rows
from operations import KEY, TABLE, URL, serve

CATALOG = lance.namespace.RestNamespace(uri=URL, **{"header.x-api-key": KEY})
WHERE = {"namespace_client": CATALOG, "table_id": TABLE}


def write(mode: str, *numbers: int) -> None:
    lance.write_dataset(pl.from_arrow(rows(*numbers)), mode=mode, **WHERE)


def read(version: int | None = None) -> list[int]:
    films = pl.scan_pyarrow_dataset(lance.dataset(**WHERE, version=version))
    return films.select("id").sort("id").collect()["id"].to_list()


serve(
    create=lambda: write("create", 1, 2, 3),
    append=lambda: write("append", 4),
    read=read,
    version=lambda: read(1),
    overwrite=lambda: write("overwrite", 1, 2),
)
