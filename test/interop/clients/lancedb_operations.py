"""The operations of lancedb, with direct storage access and with the remote client."""

from arrow_rows import ids, rows
from lancedb.db import DBConnection
from lancedb.index import BTree
from operations import NAMESPACE, serve

WHERE = {"namespace_path": [NAMESPACE]}


def serve_lancedb(db: DBConnection, **more) -> None:
    def films():
        return db.open_table("films", **WHERE)

    def create(mode: str, *numbers: int) -> None:
        db.create_table("films", rows(*numbers), mode=mode, **WHERE)

    def merge() -> None:
        films().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
            rows(3, 5, title="merged")
        )

    def version() -> list[int]:
        table = films()
        table.checkout(1)
        return ids(table.search().limit(10).to_arrow())

    def tag() -> list[int]:
        table = films()
        table.tags.create("first", 1)
        table.checkout("first")
        return ids(table.search().limit(10).to_arrow())

    serve(
        **{
            "create": lambda: create("create", 1, 2, 3),
            "append": lambda: films().add(rows(4)),
            "read": lambda: ids(films().search().limit(10).to_arrow()),
            "search": lambda: ids(films().search([3.0, 0.0]).limit(1).to_arrow()),
            "update": lambda: films().update("id = 1", {"title": "new"}),
            "delete": lambda: films().delete("id = 2"),
            "merge": merge,
            "add_column": lambda: films().add_columns({"twice": "id * 2"}),
            "index": lambda: films().create_index("id", config=BTree()),
            "version": version,
            "tag": tag,
            "overwrite": lambda: create("overwrite", 1, 2),
            "drop": lambda: db.drop_table("films", **WHERE),
            **more,
        }
    )
