"""Jobs on tables in S3. Ray has its address and key in the environment, like the identity of a pod on a platform."""

import geneva
import pyarrow as pa
import pytest
from clouds import s3_environment
from jobs import ROWS, backfill, values, write_films
from runner import Runner, ended

pytestmark = pytest.mark.weekly


@pytest.fixture(scope="module")
def environment(s3):
    """Returns the environment of AWS's own clients and of Lance's."""
    settings = {name: value for name, value in s3_environment(s3).items() if name.startswith("AWS_")}
    return {**settings, "AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}


@pytest.fixture(scope="module")
def s3_runner(s3_cloud, environment, tmp_path_factory):
    running = Runner(s3_cloud.catalog, tmp_path_factory.mktemp("runner") / "log", environment).start("--standby-minutes", "0")
    yield running
    running.stop()


def test_columns_are_filled_and_fragments_compacted_in_s3(s3_cloud, s3_runner, environment, monkeypatch):
    catalog, options = s3_cloud.catalog, s3_cloud.storage_options
    table = write_films(catalog, ["ns", "films_of_jobs"], options)
    path = "/v1/table/ns%24films_of_jobs"

    @geneva.udf(data_type=pa.int64())
    def length(title: str) -> int:
        return len(title)

    # Geneva stores the function itself.
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    db.open_table(table[-1], namespace=table[:-1]).add_columns({"length": length})
    catalog.post(f"{path}/add_columns", {"new_columns": [{"name": "twice", "computed": "id * 2"}]})

    def succeed(job: str) -> None:
        found = ended(catalog, s3_runner, job)
        assert (found["status"], found.get("reason")) == ("Succeeded", None)

    for column in ("length", "twice"):
        succeed(backfill(catalog, table, column))
    succeed(catalog.post(f"/management{path}/compact")["job_id"])
    assert values(catalog, table, "length", options) == [len(f"Film {number}") for number in range(ROWS)]
    assert values(catalog, table, "twice", options) == [2 * number for number in range(ROWS)]
    assert s3_cloud.staged("films_of_jobs") == []
