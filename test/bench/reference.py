"""Serves a folder with pylance's RestAdapter until standard input ends."""

import sys

from lance.namespace import RestAdapter

properties = {"root": sys.argv[1], "table_version_tracking_enabled": "true", "manifest_enabled": "true"}
with RestAdapter("dir", properties, host="127.0.0.1", port=0) as adapter:
    print(f"http://127.0.0.1:{adapter.port}", file=sys.stderr, flush=True)
    sys.stdin.read()
