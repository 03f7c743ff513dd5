"""Adds tables to a folder that RestAdapter serves, as copies of a declared one: reference_fill.py FOLDER ID < IDS

Each declare rewrites the whole catalog, which is the Lance table __manifest. Thus 100,000 of them would last hours
and write some 100 GB. Here one write adds the rows of all tables.
"""

import secrets
import shutil
import sys

import lance
import pyarrow as pa

folder, declared_id = sys.argv[1:]
ids = sys.stdin.read().split()
catalog = lance.dataset(f"{folder}/__manifest")
rows = catalog.to_table()
[declared] = [row for row in rows.to_pylist() if row["object_id"] == declared_id]
copies = [{**declared, "object_id": each, "location": f"{secrets.token_hex(4)}_{each}"} for each in ids]
for copy in copies:
    shutil.copytree(f"{folder}/{declared['location']}", f"{folder}/{copy['location']}")
all_rows = pa.concat_tables([rows, pa.Table.from_pylist(copies, schema=rows.schema)])
lance.write_dataset(all_rows, catalog, mode="overwrite")
