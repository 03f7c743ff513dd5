"""Fills the column title_length of films on Ray with pylance: one task per fragment, and one commit for all of them."""

import lance
import pyarrow as pa
import pyarrow.compute as pc
import ray

from tiltyard_catalog import catalog

column = "title_length"
films = ["films"]


@ray.remote
def fill(version: int, fragment: int):
    """Writes the files of the new column of one fragment. They are invisible until the commit."""
    table = lance.dataset(namespace_client=catalog(), table_id=films, version=version)
    return table.get_fragment(fragment).merge_columns(length, columns=["title"])


def length(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pc.utf8_length(batch["title"])], names=[column])


def main() -> None:
    ray.init()
    table = lance.dataset(namespace_client=catalog(), table_id=films)
    if column in table.schema.names:
        table.drop_columns([column])
    tasks = [fill.remote(table.version, fragment.fragment_id) for fragment in table.get_fragments()]
    filled = ray.get(tasks)
    # The catalog rejects this commit if another commit has changed the same rows since that version.
    table = lance.LanceDataset.commit(
        table.uri,
        lance.LanceOperation.Merge([fragment for fragment, _ in filled], filled[0][1]),
        read_version=table.version,
        namespace_client=catalog(),
        table_id=films,
        namespace_client_managed_versioning=True,
    )
    print(f"{column} of {table.count_rows()} films is filled: version {table.version}")


if __name__ == "__main__":
    main()
