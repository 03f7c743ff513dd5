from pathlib import Path

import duckdb
import duckdb_extension_lance
from operations import KEY, NAMESPACE, URL, serve

[EXTENSION] = Path(duckdb_extension_lance.__file__).parent.rglob("lance.duckdb_extension")
DB = duckdb.connect(config={"allow_unsigned_extensions": "true"})
DB.execute(f"LOAD '{EXTENSION}'")
DB.execute(f"ATTACH '{NAMESPACE}' AS catalog (TYPE lance, ENDPOINT '{URL}', API_KEY '{KEY}')")
DB.execute("SHOW ALL TABLES")


def change(*statements: str) -> None:
    for statement in statements:
        DB.execute(statement)


def found(query: str) -> list[int]:
    return sorted(id for (id,) in DB.execute(query).fetchall())


def values(*ids: int) -> str:
    return "VALUES " + ", ".join(f"({id}, 'film {id}', [{id}, 0])" for id in ids)


def create() -> None:
    change(
        "CREATE TABLE catalog.main.films (id BIGINT, title VARCHAR, vector FLOAT[2])",
        f"INSERT INTO catalog.main.films {values(1, 2, 3)}",
    )


def create_as() -> list[int]:
    change(f"CREATE TABLE catalog.main.selected AS SELECT * FROM ({values(1, 2, 3)}) AS films(id, title, vector)")
    return found("SELECT id FROM catalog.main.selected")


serve(
    create=create,
    create_as=create_as,
    append=lambda: change(f"INSERT INTO catalog.main.films {values(4)}"),
    read=lambda: found("SELECT id FROM catalog.main.films"),
    search=lambda: found(
        "SELECT id FROM lance_vector_search('catalog.main.films', 'vector', [3.0, 0.0]::FLOAT[2], k = 1)"
    ),
    update=lambda: change("UPDATE catalog.main.films SET title = 'new' WHERE id = 1"),
    delete=lambda: change("DELETE FROM catalog.main.films WHERE id = 2"),
    merge=lambda: change(
        f"MERGE INTO catalog.main.films USING ({values(3, 5)}) AS new(id, title, vector) USING (id)"
        " WHEN MATCHED THEN UPDATE SET title = 'merged'"
        " WHEN NOT MATCHED THEN INSERT VALUES (new.id, 'merged', new.vector)"
    ),
    add_column=lambda: change("ALTER TABLE catalog.main.films ADD COLUMN twice BIGINT"),
    index=lambda: change("CREATE INDEX id_index ON catalog.main.films (id) USING BTREE"),
    drop=lambda: change("DROP TABLE catalog.main.films"),
)
