"""Spark in one JVM."""

import json
import tempfile
from pathlib import Path

from operations import KEY, NAMESPACE, URL, serve
from pages import PAGES, examples
from spark import spark_sql

FILMS = f"lance.{NAMESPACE}.films"


def rows(*ids: int, title: str = "concat('film ', id)") -> str:
    values = ", ".join(f"({id}L)" for id in ids)
    return f"SELECT id, {title} AS title, array(float(id), float(0)) AS vector FROM VALUES {values} AS films(id)"


def main(sql) -> None:
    def change(statement: str) -> None:
        sql(statement)

    def found(query: str) -> list[int]:
        return sorted(json.loads(row)["id"] for row in sql(query))

    def add_column() -> None:
        sql(f"CREATE TEMPORARY VIEW twice AS SELECT _rowaddr, _fragid, id * 2 AS twice FROM {FILMS}")
        sql(f"ALTER TABLE {FILMS} ADD COLUMNS twice FROM twice")

    def create() -> None:
        sql(f"CREATE TABLE {FILMS} (id BIGINT, title STRING, vector ARRAY<FLOAT>) USING lance")
        sql(f"INSERT INTO {FILMS} {rows(1, 2, 3)}")

    def create_as() -> list[int]:
        sql(f"CREATE TABLE lance.{NAMESPACE}.selected USING lance AS {rows(1, 2, 3)}")
        return found(f"SELECT id FROM lance.{NAMESPACE}.selected")

    serve(
        create=create,
        create_as=create_as,
        append=lambda: change(f"INSERT INTO {FILMS} {rows(4)}"),
        read=lambda: found(f"SELECT id FROM {FILMS}"),
        update=lambda: change(f"UPDATE {FILMS} SET title = 'new' WHERE id = 1"),
        delete=lambda: change(f"DELETE FROM {FILMS} WHERE id = 2"),
        merge=lambda: change(
            f"MERGE INTO {FILMS} AS films USING ({rows(3, 5, title=repr('merged'))}) AS new ON films.id = new.id"
            " WHEN MATCHED THEN UPDATE SET title = new.title WHEN NOT MATCHED THEN INSERT *"
        ),
        compact=lambda: change(f"OPTIMIZE {FILMS}"),
        overwrite=lambda: change(f"INSERT OVERWRITE {FILMS} {rows(1, 2)}"),
        add_column=add_column,
        index=lambda: change(f"ALTER TABLE {FILMS} CREATE INDEX id_index USING btree (id)"),
        version=lambda: found(f"SELECT id FROM {FILMS} VERSION AS OF 2"),
        drop=lambda: change(f"DROP TABLE {FILMS}"),
    )


with tempfile.NamedTemporaryFile("w", suffix=".properties") as properties:
    page = examples(PAGES / "spark.md")["properties"]
    Path(properties.name).write_text(page.replace("http://127.0.0.1:2333", URL).replace("=KEY", f"={KEY}"))
    with spark_sql(properties.name) as session:
        main(session)
