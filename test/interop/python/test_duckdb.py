"""DuckDB on a namespace whose table has the same name as one of the root."""

import os
import subprocess

import lance
import pyarrow as pa
import pytest
from writers import read_ids

PROGRAM = """
import sys
from pathlib import Path
import duckdb
import duckdb_extension_lance

[url, key, namespace, table] = sys.argv[1:]
[extension] = Path(duckdb_extension_lance.__file__).parent.rglob("lance.duckdb_extension")
db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
db.execute(f"LOAD '{extension}'")
db.execute(f"ATTACH '{namespace}' AS lance (TYPE lance, ENDPOINT '{url}', API_KEY '{key}')")
db.execute("SHOW ALL TABLES")
print(db.execute(f"SELECT sum(id) FROM lance.main.{table}").fetchone()[0])
db.execute(f"INSERT INTO lance.main.{table} VALUES (100)")
db.execute(f"DELETE FROM lance.main.{table} WHERE id = 2")
"""


# The extension asks for the name in the root first, also for a full name. A key limits it to the namespace.
@pytest.mark.parametrize("limited, changed", [(True, "namespace"), (False, "root")])
def test_only_a_key_of_the_namespace_keeps_duckdb_from_the_root(catalog, namespace, limited, changed):
    name = f"films_{namespace}"
    tables = {"root": [name], "namespace": [namespace, name]}
    for where, numbers in (("root", [1, 2]), ("namespace", [1, 2, 3])):
        lance.write_dataset(pa.table({"id": numbers}), namespace_client=catalog.client(), table_id=tables[where])
    grant = {"namespace": [namespace], "role": "writer"}
    request = {"principal": namespace, "grant": grant}
    key = catalog.post("/management/v1/api_key/create", request)["key"] if limited else catalog.key
    program = [os.environ["TILTYARD_TEST_ENGINES"], "-c", PROGRAM, catalog.url, key, namespace, name]
    printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert printed == {"root": "3\n", "namespace": "6\n"}[changed]
    ids = {"root": [1, 2], "namespace": [1, 2, 3]}
    ids[changed] = [*(each for each in ids[changed] if each != 2), 100]
    for where, table in tables.items():
        assert read_ids(lance.dataset(namespace_client=catalog.client(), table_id=table)) == ids[where]
