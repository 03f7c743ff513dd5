"""LanceDB's Functions with the unmodified client: their versions, and the columns that they compute."""

import pyarrow as pa
import pytest
from jobs import backfill, claim
from lancedb import col, udf
from lancedb.remote.errors import HttpError
from lancedb.secrets import EnvVarSecret
from tiltyard.connection import Connection
from tiltyard.job.catalog_job import CatalogJob, CatalogRefusal


def double(value: float) -> float:
    return value * 2


@udf(python_version="3.12")
class scale:
    def __init__(self, factor: float, offset: float = 100.0):
        self.factor, self.offset = factor, offset

    def __call__(self, value: float) -> float:
        return value * self.factor + self.offset


@udf(
    python_version="3.12",
    input_schema=pa.schema([("title", pa.string())]),
    output_schema=pa.schema([("upper", pa.string()), ("vector", pa.list_(pa.float32(), 4))]),
)
def features(title):
    return {"upper": title.upper(), "vector": [1.0, 2.0, 3.0, 4.0]}


def registered(remote, where, **environment):
    return remote.create_function(udf(**{"python_version": "3.12", **environment})(double), **where)


@pytest.fixture
def where(namespace):
    return {"namespace_path": [namespace]}


@pytest.fixture
def films(remote, where):
    return remote.create_table("films", pa.table({"x": [1.0, 2.0], "title": ["a", "b"]}), **where)


def test_versions_are_created_listed_and_dropped(remote, where):
    first = registered(remote, where)
    assert (first.name, list(first.namespace_path), first.version) == ("double", where["namespace_path"], "1")
    assert first.signature.output.arrow_type == "float64"
    assert registered(remote, where) == first
    assert remote.get_function("double", version="1", **where) == first
    second = registered(remote, where, python_version="3.11")
    assert [each.version for each in remote.list_functions(**where)] == ["1", "2"]
    with pytest.raises(HttpError, match="has no version 3"):
        remote.get_function("double", version="3", **where)
    assert [remote.drop_function("double", version=second.version, **where) for _ in range(2)] == [True, False]


def test_registration_reports_environments_that_the_catalog_does_not_build(remote, where):
    environments = {
        "2.7": {"python_version": "2.7"},
        "must be a package": {"pip": ["numpy @ https://example.com/numpy.whl"]},
        "conda": {"conda": ["numpy"]},
    }
    for word, environment in environments.items():
        with pytest.raises(Exception, match=word):
            registered(remote, where, **environment)


def test_columns_have_the_types_of_the_result(remote, films, where):
    version = remote.create_function(features, **where)
    films.add_columns(version(title=col("title")).rename(columns={"upper": "shout"}))
    films.add_columns({"both": version(title=col("title"))})
    instance = remote.create_function(scale, **where)
    assert [(each.name, each.nullable) for each in instance.signature.initialization] == [("factor", False), ("offset", True)]
    films.add_columns({"scaled": instance(value=col("x"), factor=2.5)})
    vector = pa.list_(pa.float32(), 4)
    assert films.schema.remove_metadata().types[2:] == [
        pa.string(),
        vector,
        pa.struct([("upper", pa.string()), ("vector", vector)]),
        pa.float64(),
    ]
    assert films.count_rows("shout IS NULL AND vector IS NULL AND both IS NULL AND scaled IS NULL") == 2


def test_refusals_reach_the_caller_without_retries(remote, films, where):
    version = registered(remote, where)
    requests = {
        "double has no version 9": version.model_copy(update={"version": "9"})(value=col("x")),
        "title has the type utf8": version(value=col("title")),
        "the-token": remote.create_function(udf(double), secrets=[EnvVarSecret("the-token", "TOKEN")], **where)(value=col("x")),
    }
    for text, application in requests.items():
        with pytest.raises(HttpError, match=text):
            films.add_columns({"y": application})
    films.add_columns({"y": version(value=col("x"))})
    changes = {
        "y: is computed by the function double": lambda: films.add(pa.table({"x": [3.0], "title": ["c"], "y": [6.0]})),
        "y: is computed": lambda: films.update(where="true", values={"y": 1.0}),
        "x: is an input": lambda: films.alter_columns({"path": "x", "rename": "z"}),
        "Drop y first": lambda: films.drop_columns(["x"]),
        "the column y of the table": lambda: remote.drop_function("double", version="1", **where),
    }
    for text, change in changes.items():
        with pytest.raises(HttpError, match=text):
            change()


def test_secrets_are_stored_and_bound_to_functions(remote, films, where):
    remote.create_secret("api-token", "the first value", **where)
    with pytest.raises(HttpError, match="api-token already exists"):
        remote.create_secret("api-token", "the first value", **where)
    created = remote.describe_secret("api-token", **where)
    remote.alter_secret("api-token", "the second value", **where)
    altered = remote.describe_secret("api-token", **where)
    assert (altered.name, altered.created_at_millis) == ("api-token", created.created_at_millis)
    assert altered.updated_at_millis > created.updated_at_millis
    remote.create_secret("another", "value", **where)
    assert remote.list_secrets(**where) == ["another", "api-token"]
    secret = EnvVarSecret("api-token", "TOKEN", secret_namespace_path=where["namespace_path"])
    function = remote.create_function(udf(double), secrets=[secret], **where)
    [bound] = function.secret_bindings
    reference = (bound.secret_ref.name, list(bound.secret_ref.namespace_path))
    assert (bound.kind, bound.variable, reference) == ("env", "TOKEN", ("api-token", where["namespace_path"]))
    assert remote.get_function("double", version="1", **where) == function
    films.add_columns({"y": function(value=col("x"))})
    remote.drop_secret("api-token", **where)
    for change in (remote.describe_secret, remote.drop_secret):
        with pytest.raises(HttpError, match="api-token does not exist"):
            change("api-token", **where)


def test_only_the_process_of_an_attempt_reads_the_secrets_of_its_function(catalog, remote, films, where):
    remote.create_secret("api-token", "the first value", **where)
    secret = EnvVarSecret("api-token", "TOKEN", secret_namespace_path=where["namespace_path"])
    films.add_columns({"y": remote.create_function(udf(double), secrets=[secret], **where)(value=col("x"))})
    job_id = backfill(catalog, [*where["namespace_path"], "films"], "y", concurrency=None)
    claim(catalog, job_id)
    path = f"/management/v1/job/{job_id.replace('$', '%24')}/key/create"
    key = catalog.post(path, {"attempt": 1})["key"]
    job = CatalogJob(Connection(catalog.url, key), job_id)
    request = {"attempt": 1, "claim": "process"}
    job.start(request, 0)
    remote.alter_secret("api-token", "the second value", **where)
    assert job.describe_function()["secrets"] == ["TOKEN"]
    assert job.read_secrets(request) == {"TOKEN": "the second value"}
    with pytest.raises(CatalogRefusal, match="only the key of attempt 1"):
        CatalogJob(Connection(catalog.url, catalog.key), job_id).read_secrets(request)


def test_other_changes_and_the_job_of_a_refresh_work(remote, films, where):
    films.add_columns({"y": registered(remote, where)(value=col("x"))})
    films.add(pa.table({"x": [3.0], "title": ["c"]}))
    films.merge_insert("title").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"x": [4.0, 5.0], "title": ["c", "d"]})
    )
    films.update(where="title = 'a'", values={"x": 9.0})
    films.alter_columns({"path": "y", "rename": "z"})
    job = films.refresh_column_async("z")
    assert films.refresh_column_async("z").id == job.id
    assert job.status() == "running"
    job.cancel()
    assert films.function_errors(column="z").records == []
    films.drop_columns(["x", "z"])
    assert films.schema.names == ["title"]
