"""Geneva, either with `remote` or with direct storage access."""

import sys

import geneva
from lancedb_operations import serve_lancedb
from operations import KEY, NAMESPACE, URL

PROPERTIES = {"uri": URL, "header.x-api-key": KEY}
if sys.argv[1:] == ["remote"]:
    DB = geneva.connect("db://films", api_key=KEY, host_override=URL)
else:
    DB = geneva.connect(namespace_client_impl="rest", namespace_client_properties=PROPERTIES)
FILMS = {"name": "films", "namespace_path": [NAMESPACE]}
serve_lancedb(DB, index=lambda: DB.open_table(**FILMS).create_scalar_index("id"))
