"""Creates or replaces the table films with an id and a title. The other examples fill columns of it."""

import contextlib

import lance
import pyarrow as pa
from lance_namespace import DropTableRequest
from lance_namespace.errors import TableNotFoundError

from tiltyard_catalog import catalog

films = ["films"]
with contextlib.suppress(TableNotFoundError):
    catalog().drop_table(DropTableRequest(id=films))

titles = pa.table({"id": range(1000), "title": [f"Film number {number}" for number in range(1000)]})
table = lance.write_dataset(titles, namespace_client=catalog(), table_id=films, mode="create", max_rows_per_file=250)
print(f"films has {table.count_rows()} rows in {len(table.get_fragments())} fragments, version {table.version}")
