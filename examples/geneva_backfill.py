"""Fills the column title_length of films with Geneva, which only needs the address of the catalog."""

import geneva
import pyarrow as pa
import ray

from tiltyard_catalog import properties

column = "title_length"


@geneva.udf(data_type=pa.int32())
def title_length(title: str) -> int:
    return len(title)


def main() -> None:
    ray.init()
    db = geneva.connect(namespace_client_impl="rest", namespace_client_properties=properties())
    films = db.open_table("films")
    if column in films.schema.names:
        films.drop_columns([column])
    films.add_columns({column: title_length})
    films.backfill(column)
    films.checkout_latest()
    print(f"{column} of {films.count_rows()} films is filled: version {films.version}")


if __name__ == "__main__":
    main()
