"""Every method of lancedb's tables, tags, branches and merge builders."""

from datetime import timedelta

import pyarrow as pa
from lancedb._lancedb import LsmWriteSpec
from lancedb.expr import col, lit
from lancedb.index import Bitmap, BTree
from peer_queries import NEAR, films, searched_table
from peers import observe

SOON = timedelta(seconds=30)
AT_ONCE = timedelta(milliseconds=1)
NONE = timedelta(0)


def compare(peer) -> dict[str, str]:
    """Reads one table, and changes a new one by each call."""
    read = searched_table(peer)
    read.tags.create("first", 1)
    outcomes = {call: observe(lambda: run(read)) for call, run in READS.items()}
    for call, run in CHANGES.items():
        table = small_table(peer)
        outcomes[call] = observe(lambda: run(table))
        outcomes[f"{call}: afterwards"] = observe(lambda: peer.content(table.name))
    return outcomes


def small_table(peer):
    """Creates a table of films in two versions, with an index and a tag."""
    table = peer.create(films(0, 20))
    table.create_index("id", config=BTree())
    table.add(films(20, 24))
    table.tags.create("first", 1)
    return table


# Calls that change nothing.
READS = {
    "Table.blob_columns": lambda table: table.blob_columns(),
    "Table.count_rows": lambda table: table.count_rows(),
    "Table.count_rows: some": lambda table: table.count_rows("id > 10"),
    "Table.count_rows: missing": lambda table: table.count_rows("missing > 10"),
    "Table.current_branch": lambda table: table.current_branch(),
    "Table.embedding_functions": lambda table: table.embedding_functions,
    "Table.fetch_blob_files": lambda table: table.fetch_blob_files("title", [0]),
    "Table.fetch_blob_ranges": lambda table: table.fetch_blob_ranges("title", [(0, 0, 1)]),
    "Table.fetch_blobs": lambda table: table.fetch_blobs("title", [0]),
    "Table.function_errors": lambda table: table.function_errors(),
    "Table.get_lsm_stats": lambda table: table.get_lsm_stats(),
    "Table.get_lsm_write_spec": lambda table: table.get_lsm_write_spec(),
    "Table.head": lambda table: table.head(3),
    "Table.index_stats": lambda table: table.index_stats("id_idx"),
    "Table.index_stats: missing": lambda table: table.index_stats("missing"),
    "Table.initial_storage_options": lambda table: table.initial_storage_options(),
    "Table.latest_storage_options": lambda table: table.latest_storage_options(),
    "Table.list_indices": lambda table: table.list_indices(),
    "Table.list_versions": lambda table: table.list_versions(),
    "Table.name": lambda table: len(table.name),
    "Table.prewarm_data": lambda table: table.prewarm_data(["id"]),
    "Table.prewarm_index": lambda table: table.prewarm_index("id_idx"),
    "Table.prewarm_index: missing": lambda table: table.prewarm_index("missing"),
    "Table.schema": lambda table: table.schema,
    "Table.search": lambda table: table.search(NEAR, "vector").to_arrow(),
    "Table.search: text": lambda table: table.search("cat", fts_columns="title").to_arrow(),
    "Table.stats": lambda table: table.stats(),
    "Table.take_offsets": lambda table: table.take_offsets([3, 21]).to_arrow(),
    "Table.take_offsets: beyond": lambda table: table.take_offsets([3, 99]).to_arrow(),
    "Table.take_row_ids": lambda table: table.take_row_ids([3, 2**32 + 1]).to_arrow(),
    "Table.take_row_ids: missing": lambda table: table.take_row_ids([3, 2**32 + 99]).to_arrow(),
    "Table.to_arrow": lambda table: table.to_arrow(),
    "Table.to_lance": lambda table: table.to_lance().to_table(),
    "Table.to_pandas": lambda table: table.to_pandas(),
    "Table.tokenize": lambda table: table.tokenize("the quick dogs", column="title"),
    "Table.tokenize: of an index": lambda table: table.tokenize("the quick dogs", index_name="title_idx"),
    "Table.uses_v2_manifest_paths": lambda table: table.uses_v2_manifest_paths(),
    "Table.version": lambda table: table.version,
    "Table.wait_for_index": lambda table: table.wait_for_index(["missing"], AT_ONCE),
    "AsyncTable.is_open": lambda table: table._table.is_open(),
    "AsyncTable.query": lambda table: table._table.query().where("id > 20").to_arrow(),
    "AsyncTable.vector_search": lambda table: table._table.vector_search(NEAR).to_arrow(),
    "Tags.get_version": lambda table: table.tags.get_version("first"),
    "Tags.get_version: missing": lambda table: table.tags.get_version("missing"),
    "Tags.list": lambda table: table.tags.list(),
    "Branches.list": lambda table: table.branches.list(),
}
ZONED = pa.schema([("year", pa.int32()), ("at", pa.timestamp("us", "Europe/Berlin"))])
# Calls that change a table, which the comparison reads afterwards.
CHANGES = {
    "Table.add": lambda table: table.add(films(24, 30)),
    "Table.add: rows": lambda table: table.add([{"id": 30, "title": "x", "vector": [1.0, 2, 3, 4]}]),
    "Table.add: overwrite": lambda table: table.add(films(1, 3), mode="overwrite"),
    "Table.add: overwrite with other columns": lambda table: table.add(pa.table({"a": [1]}), mode="overwrite"),
    "Table.add: missing column": lambda table: table.add([{"missing": 1}]),
    "Table.add: some columns": lambda table: table.add(films(30, 31).select(["id", "title"])),
    "Table.add: another type": lambda table: table.add(pa.table({"id": ["x"], "title": ["x"]})),
    "Table.add: bad vectors": lambda table: table.add(bad_vectors(), on_bad_vectors="drop"),
    "Table.add: nothing": lambda table: table.add(films(0, 0)),
    "Table.add_columns": lambda table: table.add_columns({"twice": "id * 2", "upper": "upper(title)"}),
    "Table.add_columns: a schema": lambda table: table.add_columns(ZONED),
    "Table.add_columns: a field": lambda table: table.add_columns(pa.field("tags", pa.list_(pa.string()))),
    "Table.add_columns: computed": lambda table: table.add_columns(computed={"twice": "id * 2"}),
    "Table.add_columns: existing": lambda table: table.add_columns({"id": "id * 2"}),
    "Table.add_columns: invalid": lambda table: table.add_columns({"twice": "missing * 2"}),
    "Table.alter_columns": lambda table: table.alter_columns({"path": "title", "rename": "name"}),
    "Table.alter_columns: nullable": lambda table: table.alter_columns({"path": "title", "nullable": True}),
    "Table.alter_columns: a type": lambda table: table.alter_columns({"path": "id", "data_type": pa.int32()}),
    "Table.alter_columns: a vector": lambda table: table.alter_columns({"path": "vector", "data_type": HALF}),
    "Table.alter_columns: another type": lambda table: table.alter_columns({"path": "title", "data_type": pa.int32()}),
    "Table.alter_columns: missing": lambda table: table.alter_columns({"path": "missing", "rename": "name"}),
    "Table.checkout": lambda table: [table.checkout(1), table.version, table.count_rows()],
    "Table.checkout: a tag": lambda table: [table.checkout("first"), table.version, table.count_rows()],
    "Table.checkout: missing": lambda table: table.checkout(99),
    "Table.checkout: and changed": lambda table: [table.checkout(1), table.delete("id = 1")],
    "Table.checkout_latest": lambda table: [table.checkout(1), table.checkout_latest(), table.count_rows()],
    "Table.checkpoint_lsm": lambda table: table.checkpoint_lsm(),
    "Table.cleanup_old_versions": lambda table: table.cleanup_old_versions(NONE, delete_unverified=True),
    "Table.close_lsm_writers": lambda table: table.close_lsm_writers(),
    "Table.compact_files": lambda table: table.compact_files(),
    "Table.compact_lsm": lambda table: table.compact_lsm(),
    "Table.create_fts_index": lambda table: table.create_fts_index("title", replace=True),
    "Table.create_index": lambda table: table.create_index("id", config=Bitmap(), name="other"),
    "Table.create_index: waiting": lambda table: table.create_index("id", config=BTree(), wait_timeout=SOON),
    "Table.create_index: existing": lambda table: table.create_index("id", config=BTree(), replace=False),
    "Table.create_index: missing": lambda table: table.create_index("missing", config=BTree()),
    "Table.create_index: untrained": lambda table: table.create_index("id", config=BTree(), name="new", train=False),
    "Table.create_index: another type": lambda table: table.create_index("vector", config=BTree()),
    "Table.create_index_async": lambda table: table.create_index_async("id", config=Bitmap(), name="other").wait(),
    "Table.create_scalar_index": lambda table: table.create_scalar_index("id", index_type="BITMAP", replace=True),
    "Table.delete": lambda table: table.delete("id > 10"),
    "Table.delete: an expression": lambda table: table.delete(col("id") > lit(10)),
    "Table.delete: nothing": lambda table: table.delete("id > 99"),
    "Table.delete: invalid": lambda table: table.delete("missing > 99"),
    "Table.drop_columns": lambda table: table.drop_columns(["title"]),
    "Table.drop_columns: missing": lambda table: table.drop_columns(["missing"]),
    "Table.drop_columns: all": lambda table: table.drop_columns(["id", "title", "vector"]),
    "Table.drop_index": lambda table: table.drop_index("id_idx"),
    "Table.drop_index: missing": lambda table: table.drop_index("missing"),
    "Table.flush_lsm": lambda table: table.flush_lsm(),
    "Table.merge_insert": lambda table: merge(table, "id").when_not_matched_insert_all().execute(films(20, 30)),
    "Table.merge_insert: missing": lambda table: merge(table, "missing").execute(films(20, 30)),
    "Table.merge_insert: several": lambda table: merge(table, ["id", "title"]).execute(films(20, 30)),
    "Table.migrate_v2_manifest_paths": lambda table: table.migrate_v2_manifest_paths(),
    "Table.optimize": lambda table: table.optimize(),
    "Table.refresh_column": lambda table: table.refresh_column("title"),
    "Table.refresh_column_async": lambda table: table.refresh_column_async("title"),
    "Table.replace_field_metadata": lambda table: table.replace_field_metadata("id", {"key": "value"}),
    "Table.restore": lambda table: [table.checkout(1), table.restore()],
    "Table.restore: a version": lambda table: table.restore(1),
    "Table.restore: a tag": lambda table: table.restore("first"),
    "Table.restore: missing": lambda table: table.restore(99),
    "Table.set_lsm_write_spec": lambda table: table.set_lsm_write_spec(LsmWriteSpec.unsharded()),
    "Table.set_unenforced_primary_key": lambda table: table.set_unenforced_primary_key("id"),
    "Table.unset_lsm_write_spec": lambda table: table.unset_lsm_write_spec(),
    "Table.update": lambda table: table.update("id > 20", {"title": "it's", "vector": [1.0, 2, 3, 4]}),
    "Table.update: expressions": lambda table: table.update(values_sql={"id": "id + 100", "title": "upper(title)"}),
    "Table.update: an expression": lambda table: table.update(col("id") == lit(1), {"title": None}),
    "Table.update: missing": lambda table: table.update("id = 1", {"missing": 1}),
    "Table.update: nothing": lambda table: table.update("id > 99", {"title": "x"}),
    "Table.update_field_metadata": lambda table: table.update_field_metadata({"path": "id", "metadata": {"a": "b"}}),
    "Table.update_field_metadata: missing": lambda table: table.update_field_metadata({"path": "x", "metadata": {}}),
    "AsyncTable.close": lambda table: [table._table.close(), table._table.is_open()],
    "AsyncTable.migrate_manifest_paths_v2": lambda table: table._table.migrate_manifest_paths_v2(),
    "Tags.create": lambda table: [table.tags.create("second", 2), table.tags.list()],
    "Tags.create: existing": lambda table: table.tags.create("first", 2),
    "Tags.create: of no version": lambda table: table.tags.create("second", 99),
    "Tags.delete": lambda table: [table.tags.delete("first"), table.tags.list()],
    "Tags.delete: missing": lambda table: table.tags.delete("missing"),
    "Tags.update": lambda table: [table.tags.update("first", 2), table.tags.list()],
    "Tags.update: missing": lambda table: table.tags.update("missing", 2),
    "Branches.create": lambda table: added(table.branches.create("side")),
    "Branches.create: existing": lambda table: [table.branches.create("side").version, table.branches.create("side")],
    "Branches.create: of a version": lambda table: added(table.branches.create("side", from_version=1)),
    "Branches.checkout": lambda table: [added(table.branches.create("side")), added(table.branches.checkout("side"))],
    "Branches.checkout: a version": lambda table: [
        added(table.branches.create("side")),
        table.branches.checkout("side", 4).count_rows(),
    ],
    "Branches.checkout: missing": lambda table: table.branches.checkout("missing"),
    "Branches.cherry_pick": lambda table: [added(table.branches.create("side")), table.branches.cherry_pick("side")],
    "Branches.delete": lambda table: [table.branches.create("side").version, table.branches.delete("side")],
    "Branches.delete: missing": lambda table: table.branches.delete("missing"),
    "Branches.diff": lambda table: [added(table.branches.create("side")), table.branches.diff("side")],
    "LanceMergeInsertBuilder.execute": lambda table: upsert(table).execute(films(22, 26), timeout=SOON),
    "LanceMergeInsertBuilder.execute: nothing": lambda table: upsert(table).execute(films(0, 0)),
    "LanceMergeInsertBuilder.execute: bad vectors": lambda table: upsert(table).execute(bad_vectors(), "fill", 1.0),
    "LanceMergeInsertBuilder.execute: other columns": lambda table: upsert(table).execute(pa.table({"id": [1], "x": [1]})),
    "LanceMergeInsertBuilder.execute: no clause": lambda table: merge(table, "id").execute(films(0, 1)),
    "LanceMergeInsertBuilder.execute: duplicates": lambda table: upsert(table).execute(
        pa.concat_tables([films(1, 3), films(1, 3)])
    ),
    "LanceMergeInsertBuilder.execute: some of 300 columns": lambda table: upsert(widened(table, 297)).execute(SOME_COLUMNS),
    "LanceMergeInsertBuilder.execute: some of 301 columns": lambda table: upsert(widened(table, 298)).execute(SOME_COLUMNS),
    "LanceMergeInsertBuilder.execute: all of 301 columns": lambda table: upsert(widened(table, 298)).execute(
        table.search().limit(2).to_arrow()
    ),
    "LanceMergeInsertBuilder.use_index": lambda table: upsert(table).use_index(False).execute(films(22, 26)),
    "LanceMergeInsertBuilder.use_lsm": lambda table: upsert(table).use_lsm(False).execute(films(22, 26)),
    "LanceMergeInsertBuilder.use_lsm: without": lambda table: upsert(table).use_lsm(True).execute(films(22, 26)),
    "LanceMergeInsertBuilder.validate_single_shard": lambda table: (
        upsert(table).validate_single_shard(False).execute(films(22, 26))
    ),
    "LanceMergeInsertBuilder.when_matched_update_all": lambda table: (
        merge(table, "id").when_matched_update_all(where="target.id > 22").execute(renamed(20, 26))
    ),
    "LanceMergeInsertBuilder.when_not_matched_by_source_delete": lambda table: (
        merge(table, "id").when_not_matched_by_source_delete().execute(films(3, 6))
    ),
    "LanceMergeInsertBuilder.when_not_matched_by_source_delete: some": lambda table: (
        upsert(table).when_not_matched_by_source_delete("id > 20").execute(renamed(3, 6))
    ),
    "LanceMergeInsertBuilder.when_not_matched_insert_all": lambda table: (
        merge(table, "id").when_not_matched_insert_all().execute(renamed(20, 26))
    ),
}
HALF = pa.list_(pa.float16(), 4)
SOME_COLUMNS = pa.table({"id": [1, 30], "title": ["x", "y"]})


def merge(table, on):
    return table.merge_insert(on)


def widened(table, columns: int):
    """Adds empty columns to a table."""
    table.add_columns(pa.schema([(f"c{number}", pa.int32()) for number in range(columns)]))
    return table


def upsert(table):
    return table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def renamed(start: int, end: int) -> pa.Table:
    """Returns films with other titles."""
    rows = films(start, end)
    return rows.set_column(1, "title", pa.array(["new"] * len(rows)))


def bad_vectors() -> list[dict]:
    return [{"id": 30, "title": "x", "vector": [1.0]}, {"id": 31, "title": "y", "vector": [1.0, 2, 3, 4]}]


def added(branch):
    """Adds rows to a branch. Returns its content."""
    return [branch.add(films(30, 32)), branch.version, branch.count_rows(), branch.current_branch()]
