import lancedb
from lancedb_operations import serve_lancedb
from operations import KEY, NAMESPACE, URL

DB = lancedb.connect_namespace("rest", {"uri": URL, "headers.x-api-key": KEY})
serve_lancedb(DB, compact=lambda: DB.open_table("films", namespace_path=[NAMESPACE]).optimize())
