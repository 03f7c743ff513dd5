"""The client that is generated from the protocol's own document calls all of its operations."""

import base64
import inspect

import pyarrow as pa
import pytest
from catalog import folder_of
from lance_namespace_urllib3_client import api, models
from rows import stream, vectors

APIS = [each for name, each in vars(api).items() if name.endswith("Api")]
WITH_HEADERS = "_with_http_info"


def operations_of(each: type) -> set[str]:
    """The client has every operation in several forms; the plain one is named after the operation."""
    names = {name for name, _ in inspect.getmembers(each, inspect.isfunction)}
    return {name for name in names if name + WITH_HEADERS in names}


class Recorder:
    """The operations of the client by name, with those that were called."""

    def __init__(self, client):
        self.called: set[str] = set()
        self.operations = {name: getattr(each(client), name) for each in APIS for name in operations_of(each)}

    def __getattr__(self, name):
        self.called.add(name)
        return self.operations[name]


@pytest.fixture
def client(generated_client):
    return Recorder(generated_client)


def test_every_operation_is_called(client, namespace):
    assert len(client.operations) == 54
    on_namespaces(client, namespace)
    on_tables(client, namespace)
    on_versions(client, namespace)
    on_rows(client, namespace)
    on_indices(client, namespace)
    on_columns_and_metadata(client, namespace)
    on_tags_and_branches(client, namespace)
    on_views_and_transactions(client, namespace)
    assert client.called == set(client.operations)


def on_namespaces(client, namespace):
    child = f"{namespace}$child"
    created = client.create_namespace(child, models.CreateNamespaceRequest(properties={"owner": "me"}))
    assert created.properties == {"owner": "me"}
    assert client.list_namespaces(namespace).namespaces == ["child"]
    assert client.describe_namespace(child, models.DescribeNamespaceRequest()).properties == {"owner": "me"}
    client.namespace_exists(child, models.NamespaceExistsRequest())
    client.drop_namespace(child, models.DropNamespaceRequest())
    assert client.list_namespaces(namespace).namespaces == []


def on_tables(client, namespace):
    declared = client.declare_table(f"{namespace}$declared", models.DeclareTableRequest())
    assert declared.managed_versioning
    client.table_exists(f"{namespace}$declared", models.TableExistsRequest())
    request = models.RenameTableRequest(new_table_name="renamed")
    assert client.rename_table(f"{namespace}$declared", request).transaction_id
    assert client.list_tables(namespace).tables == ["renamed"]
    assert f"{namespace}$renamed" in client.list_all_tables().tables
    assert client.describe_table(f"{namespace}$renamed", models.DescribeTableRequest()).location == declared.location
    assert client.drop_table(f"{namespace}$renamed").location == declared.location

    client.create_table(f"{namespace}$films", body=stream(vectors([1])))
    location = client.deregister_table(f"{namespace}$films", models.DeregisterTableRequest()).location
    registered = client.register_table(f"{namespace}$again", models.RegisterTableRequest(location=location))
    assert registered.location == location
    assert client.count_table_rows(f"{namespace}$again", models.CountTableRowsRequest()) == 1


def on_versions(client, namespace):
    table_id = f"{namespace}$versions"
    location = client.declare_table(table_id, models.DeclareTableRequest()).location

    def staged(version: int) -> str:
        path = folder_of(location) / "_versions" / f"{2**64 - 1 - version}.manifest-staged"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"version {version}")
        return str(path).lstrip("/")

    request = models.CreateTableVersionRequest(version=1, manifest_path=staged(1))
    assert client.create_table_version(table_id, request).version.version == 1
    entry = models.CreateTableVersionEntry(id=[namespace, "versions"], version=2, manifest_path=staged(2))
    batch = client.batch_create_table_versions(models.BatchCreateTableVersionsRequest(entries=[entry]))
    assert [each.version for each in batch.versions] == [2]
    third = models.CreateTableVersionRequest(id=[namespace, "versions"], version=3, manifest_path=staged(3))
    operation = models.CommitTableOperation(create_table_version=third)
    committed = client.batch_commit_tables(models.BatchCommitTablesRequest(operations=[operation]))
    assert committed.results[0].create_table_version.version.version == 3
    assert [each.version for each in client.list_table_versions(table_id).versions] == [1, 2, 3]
    assert client.describe_table_version(table_id, models.DescribeTableVersionRequest(version=2)).version.version == 2
    ranges = [models.VersionRange(start_version=0, end_version=2)]
    deleted = client.batch_delete_table_versions(table_id, models.BatchDeleteTableVersionsRequest(ranges=ranges))
    assert deleted.deleted_count == 1


def on_rows(client, namespace):
    table_id = f"{namespace}$rows"
    created = client.create_table(table_id, body=stream(vectors([1, 2, 3])), properties='{"owner": "me"}')
    assert (created.version, created.properties) == (1, {"owner": "me"})
    inserted = client.insert_into_table(table_id, body=stream(vectors([4])), mode="append")
    assert (inserted.num_inserted_rows, inserted.version) == (1, 2)
    merged = client.merge_insert_into_table(
        table_id,
        on=["id"],
        body=stream(vectors([4, 5])),
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
    )
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 1)
    updated = client.update_table(
        table_id, models.UpdateTableRequest(predicate="id = 5", updates=[["title", "'Sacrifice'"]])
    )
    assert updated.updated_rows == 1
    assert client.delete_from_table(table_id, models.DeleteFromTableRequest(predicate="id = 1")).version == 5

    everything = models.QueryTableRequestVector()
    query = models.QueryTableRequest(vector=everything, k=10, filter="id > 3")
    rows = pa.ipc.open_file(bytes(client.query_table(table_id, query))).read_all()
    assert sorted(rows["title"].to_pylist()) == ["Sacrifice", "film 4"]
    nearest = models.QueryTableRequest(vector=models.QueryTableRequestVector(single_vector=[2.2, 0.0]), k=1)
    assert pa.ipc.open_file(bytes(client.query_table(table_id, nearest))).read_all()["id"].to_pylist() == [2]
    assert client.count_table_rows(table_id, models.CountTableRowsRequest(predicate="id > 3")) == 2
    explained = client.explain_table_query_plan(table_id, models.ExplainTableQueryPlanRequest(query=query))
    assert "LanceRead" in explained
    analyzed = client.analyze_table_query_plan(table_id, models.AnalyzeTableQueryPlanRequest(vector=everything, k=10))
    assert "output_rows" in analyzed


def on_indices(client, namespace):
    table_id = f"{namespace}$rows"
    client.create_table_scalar_index(
        table_id, models.CreateTableIndexRequest(column="id", index_type="BTREE", name="by_id")
    )
    client.create_table_index(table_id, models.CreateTableIndexRequest(column="title", index_type="FTS"))
    listed = client.list_table_indices(table_id, models.ListTableIndicesRequest()).indexes
    assert [index.index_name for index in listed] == ["by_id", "title_idx"]
    stats = client.describe_table_index_stats(table_id, "by_id", models.DescribeTableIndexStatsRequest())
    assert (stats.index_type, stats.num_indexed_rows) == ("BTREE", 4)
    assert client.drop_table_index(table_id, "by_id").transaction_id


def on_columns_and_metadata(client, namespace):
    table_id = f"{namespace}$rows"
    new = [models.AddColumnsEntry(name="twice", expression="id * 2")]
    client.alter_table_add_columns(table_id, models.AlterTableAddColumnsRequest(new_columns=new))
    renamed = [models.AlterColumnsEntry(path="twice", rename="double")]
    client.alter_table_alter_columns(table_id, models.AlterTableAlterColumnsRequest(alterations=renamed))
    updates = [models.UpdateFieldMetadataEntry(path="double", metadata={"unit": "none"})]
    described = client.update_field_metadata(table_id, models.UpdateFieldMetadataRequest(updates=updates))
    assert described.fields == {"double": {"unit": "none"}}
    assert client.update_table_schema_metadata(table_id, {"owner": "me"}) == {"owner": "me"}
    detailed = client.describe_table(table_id, models.DescribeTableRequest(), load_detailed_metadata=True)
    assert [field.name for field in detailed.var_schema.fields] == ["id", "title", "vector", "double"]
    assert detailed.var_schema.metadata == {"owner": "me"}
    assert client.get_table_stats(table_id, models.GetTableStatsRequest()).num_rows == 4
    client.alter_table_drop_columns(table_id, models.AlterTableDropColumnsRequest(columns=["double"]))
    assert client.restore_table(table_id, models.RestoreTableRequest(version=1)).transaction_id
    assert client.count_table_rows(table_id, models.CountTableRowsRequest()) == 3


def on_tags_and_branches(client, namespace):
    table_id = f"{namespace}$rows"
    client.create_table_tag(table_id, models.CreateTableTagRequest(tag="first", version=1))
    client.update_table_tag(table_id, models.UpdateTableTagRequest(tag="first", version=2))
    assert client.get_table_tag_version(table_id, models.GetTableTagVersionRequest(tag="first")).version == 2
    assert list(client.list_table_tags(table_id).tags) == ["first"]
    client.delete_table_tag(table_id, models.DeleteTableTagRequest(tag="first"))
    client.create_table_branch(table_id, models.CreateTableBranchRequest(name="side"))
    assert list(client.list_table_branches(table_id).branches) == ["side"]
    client.delete_table_branch(table_id, models.DeleteTableBranchRequest(name="side"))
    assert client.list_table_tags(table_id).tags == {}


def on_views_and_transactions(client, namespace):
    view = f"{namespace}$view"
    schema = vectors([]).select(["id", "title"]).schema
    created = client.create_materialized_view(
        view,
        models.CreateMaterializedViewRequest(
            kind="query",
            source_query="{}",
            output_schema=base64.b64encode(schema.serialize()).decode(),
            with_no_data=False,
        ),
    )
    assert created.version == 1
    detailed = client.describe_table(view, models.DescribeTableRequest(), load_detailed_metadata=True)
    assert [field.name for field in detailed.var_schema.fields] == ["id", "title"]

    def move_on(job, status):
        action = models.AlterTransactionAction(set_status_action=models.AlterTransactionSetStatus(status=status))
        client.alter_transaction(job, models.AlterTransactionRequest(actions=[action]))

    # A view has at most one open job.
    move_on(created.job_id, "Running")
    move_on(created.job_id, "Succeeded")
    request = models.RefreshMaterializedViewRequest(src_version=1)
    refresh = client.refresh_materialized_view(view, refresh_materialized_view_request=request).job_id
    table_id = f"{namespace}$rows"
    computed = models.AddColumnsEntry(name="computed", computed="id + 1")
    client.alter_table_add_columns(table_id, models.AlterTableAddColumnsRequest(new_columns=[computed]))
    filled = models.AlterTableBackfillColumnsRequest(column="computed")
    backfill = client.alter_table_backfill_columns(table_id, filled).job_id
    for job in (refresh, backfill):
        move_on(job, "Running")
        assert client.describe_transaction(job, models.DescribeTransactionRequest()).status == "Running"
