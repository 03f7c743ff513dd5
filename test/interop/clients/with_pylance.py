import lance
import lance.namespace
from arrow_rows import ids, rows
from operations import KEY, TABLE, URL, serve

CATALOG = lance.namespace.RestNamespace(uri=URL, **{"header.x-api-key": KEY})
WHERE = {"namespace_client": CATALOG, "table_id": TABLE}


def films(version: int | None = None) -> lance.LanceDataset:
    return lance.dataset(**WHERE, version=version)


def write(mode: str, *numbers: int) -> None:
    lance.write_dataset(rows(*numbers), mode=mode, **WHERE)


def merge() -> None:
    films().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        rows(3, 5, title="merged")
    )


def search() -> list[int]:
    nearest = {"column": "vector", "q": [3.0, 0.0], "k": 1}
    return ids(films().to_table(nearest=nearest))


def tag() -> list[int]:
    films().tags.create("first", 1)
    return ids(lance.dataset(**WHERE, version="first").to_table())


def drop() -> None:
    from lance_namespace import DropTableRequest

    CATALOG.drop_table(DropTableRequest(id=TABLE))


serve(
    create=lambda: write("create", 1, 2, 3),
    append=lambda: write("append", 4),
    read=lambda: ids(films().to_table()),
    search=search,
    update=lambda: films().update({"title": "'new'"}, "id = 1"),
    delete=lambda: films().delete("id = 2"),
    merge=merge,
    add_column=lambda: films().add_columns({"twice": "id * 2"}),
    index=lambda: films().create_scalar_index("id", "BTREE"),
    version=lambda: ids(films(1).to_table()),
    tag=tag,
    compact=lambda: films().optimize.compact_files(),
    overwrite=lambda: write("overwrite", 1, 2),
    drop=drop,
)
