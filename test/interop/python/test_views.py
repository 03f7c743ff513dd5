"""Views that Geneva's unmodified remote mode creates and refreshes and that the runner fills."""

import base64
from collections.abc import Iterator
from typing import NamedTuple

import geneva
import lance
import pyarrow as pa
import pytest
from catalog import wait_until
from jobs import ROWS, describe, jobs_of, values, write_films
from runner import JOB_SECONDS, ended


def functions():
    """Nested functions are pickled by value, like those of a notebook."""

    class Word(NamedTuple):
        word: str
        position: int

    @geneva.chunker(
        output_schema=pa.schema([("word", pa.string()), ("position", pa.int64())]), inherit_input_columns=True
    )
    def words(title: str) -> Iterator[dict]:
        for position, word in enumerate(title.split()):
            yield {"word": word, "position": position}

    @geneva.udtf(output_schema=pa.schema([("films", pa.int64()), ("longest", pa.int64())]))
    def summary(source) -> Iterator[pa.RecordBatch]:
        titles = source.to_arrow()["title"].to_pylist()
        yield pa.RecordBatch.from_pydict({"films": [len(titles)], "longest": [max(map(len, titles))]})

    return {"words": words, "summary": summary}


@pytest.fixture
def source(catalog, table):
    return write_films(catalog, [f"source_{table[0]}"])


@pytest.fixture
def geneva_db(catalog):
    return geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)


def rows_of(catalog, view: str) -> list[dict]:
    return lance.dataset(namespace_client=catalog.client(), table_id=[view]).to_table().to_pylist()


def test_a_udtf_view_has_what_its_function_makes_of_all_rows(catalog, runner, geneva_db, source):
    query = geneva_db.open_table(source[0]).search(None).select(["id", "title"])
    view = f"udtf_{source[0]}"
    geneva_db.create_udtf_view(view, query, functions()["summary"]).refresh()
    assert rows_of(catalog, view) == [{"films": ROWS, "longest": len("Film 10")}]


def write_stable(catalog, table: list[str]) -> list[str]:
    """A table of films with stable row ids, so that a view follows it from version to version."""
    titles = pa.table({"id": range(ROWS), "title": [f"Film {number}" for number in range(ROWS)]})
    lance.write_dataset(
        titles,
        namespace_client=catalog.client(),
        table_id=table,
        mode="create",
        max_rows_per_file=10,
        enable_stable_row_ids=True,
    )
    return table


def append(catalog, table: list[str], *ids: int) -> None:
    more = pa.table({"id": ids, "title": [f"Film {number}" for number in ids]})
    lance.write_dataset(more, namespace_client=catalog.client(), table_id=table, mode="append")


@pytest.mark.weekly
def test_views_of_a_table_with_stable_row_ids_follow_it(catalog, runner, geneva_db, table):
    stable = write_stable(catalog, [f"stable_{table[0]}"])
    query = geneva_db.open_table(stable[0]).search(None).where("id >= 30").select(["id", "title"])
    late = geneva_db.create_materialized_view(f"late_{stable[0]}", query)
    late.refresh()
    chunks = geneva_db.create_udtf_view(
        f"chunks_{stable[0]}",
        geneva_db.open_table(stable[0]).search(None).select(["id", "title"]),
        functions()["words"],
    )
    chunks.refresh()
    append(catalog, stable, 40, 41)
    late.refresh()
    chunks.refresh()
    # Each attempt has computed the new rows of the source, or all rows of the view in the end.
    assert [progress_of(catalog, view) for view in (f"late_{stable[0]}", f"chunks_{stable[0]}")] == [12, 84]
    assert values(catalog, [f"late_{stable[0]}"], "title") == [f"Film {number}" for number in range(30, ROWS + 2)]
    found = sorted((row["id"], row["position"], row["word"]) for row in rows_of(catalog, f"chunks_{stable[0]}"))
    assert found == [each for number in range(ROWS + 2) for each in ((number, 0, "Film"), (number, 1, str(number)))]


def progress_of(catalog, view: str) -> int:
    """Returns the number of rows that the latest refresh of a view has reported."""
    [latest, *_] = jobs_of(catalog, [view])
    progress = describe(catalog, latest)["progress"]
    assert progress["rows_committed"] == progress["rows_total"]
    return progress["rows_total"]


def test_a_view_of_a_table_in_a_namespace(catalog, runner, geneva_db, films):
    """Geneva's client names only the last part of the source, so the full name needs a direct request."""
    query = geneva_db.open_table(films[-1], namespace=films[:-1]).search(None).select(["id", "title"])
    source_query = query.to_query_object().model_copy(update={"source_table": "$".join(films)})
    columns = [("__source_row_id", pa.int64()), ("__is_set", pa.bool_()), ("id", pa.int64()), ("title", pa.string())]
    view = [films[0], "view"]
    request = {
        "kind": "query",
        "source_query": source_query.model_dump_json(),
        "output_schema": base64.b64encode(pa.schema(columns).serialize()).decode(),
        "with_no_data": False,
    }
    job = catalog.post(f"/v1/materialized_view/{'%24'.join(view)}/create", request)["job_id"]
    assert ended(catalog, runner, job)["status"] == "Succeeded"
    assert values(catalog, view, "title") == [f"Film {number}" for number in range(ROWS)]


@pytest.mark.weekly
def test_a_view_with_a_column_of_a_function_has_its_rows_without_another_request(catalog, runner, geneva_db, source):
    @geneva.udf(data_type=pa.int64())
    def title_length(title: str) -> int:
        import time

        time.sleep(0.2)
        return len(title)

    query = geneva_db.open_table(source[0]).search(None).select({"id": "id", "title": "title", "length": title_length})
    view = f"column_{source[0]}"
    geneva_db.create_materialized_view(view, query, with_no_data=False)
    [job] = jobs_of(catalog, [view])

    def is_filling() -> bool:
        found = describe(catalog, job)
        assert found["status"] in ("Queued", "Running"), found
        return found["progress"].get("rows_total") == ROWS and found["progress"]["rows_committed"] < ROWS

    wait_until(is_filling, "the progress of the refresh", seconds=JOB_SECONDS)
    lengths = [len(f"Film {number}") for number in range(ROWS)]
    wait_until(lambda: values(catalog, [view], "length") == lengths, "the first refresh", seconds=JOB_SECONDS)
