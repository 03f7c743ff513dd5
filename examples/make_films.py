"""Makes the table that the other examples fill columns of: films, with an id and a title."""

import lance
import pyarrow as pa

from tiltyard_catalog import catalog

titles = pa.table({"id": range(1000), "title": [f"Film number {number}" for number in range(1000)]})
films = lance.write_dataset(
    titles, namespace_client=catalog(), table_id=["films"], mode="create", max_rows_per_file=250
)
print(f"films has {films.count_rows()} rows in {len(films.get_fragments())} fragments, version {films.version}")
