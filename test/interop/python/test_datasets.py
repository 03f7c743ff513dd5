"""The operations that open datasets in the catalog, asked by the clients that people use."""

import io
import re
import urllib.request

import lancedb
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import ApiClient, Configuration, api, models


def vectors(ids: list[int]) -> pa.Table:
    values = [[float(id), 0.0] for id in ids]
    return pa.table({"id": ids, "title": [f"film {id}" for id in ids], "vector": pa.array(values, pa.list_(pa.float32(), 2))})


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.fixture
def client(catalog):
    """The client that is generated from the protocol's own document."""
    with ApiClient(Configuration(host=catalog.url)) as generated:
        generated.set_default_header("x-api-key", catalog.key)
        yield generated


def test_lancedb_pushes_operations_down(catalog, namespace):
    """lancedb 0.40 pushes searches by a vector down, and runs the others itself, whatever it is told."""
    queried = answered(catalog, "QueryTable")
    pushed = ["QueryTable", "CreateTable"]
    db = lancedb.connect_namespace("rest", catalog.properties, namespace_client_pushdown_operations=pushed)
    where = {"namespace_path": [namespace]}
    table = db.create_table("films", vectors([1, 2, 3]), **where)
    assert [row["id"] for row in table.search([2.9, 0.0]).limit(2).to_list()] == [3, 2]
    table.add(vectors([4]))
    assert [row["id"] for row in table.search([3.9, 0.0]).where("id > 3").limit(2).to_list()] == [4]
    assert sorted(table.search().limit(10).select(["id"]).to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert answered(catalog, "QueryTable") > queried


def answered(catalog, operation: str) -> int:
    """How often the catalog did an operation, since it started."""
    with urllib.request.urlopen(f"{catalog.url}/metrics", timeout=60) as answer:
        counted = re.findall(rf'_count{{operation="{operation}",status="200"}} (\d+)', answer.read().decode())
    return sum(int(count) for count in counted)


def test_what_the_catalog_writes_every_client_reads(catalog, namespace, client):
    table_id = f"{namespace}$films"
    data = api.DataApi(client)
    data.create_table(table_id, body=stream(vectors([1, 2, 3])))
    data.insert_into_table(table_id, body=stream(vectors([4])))
    db = lancedb.connect_namespace("rest", catalog.properties)
    table = db.open_table("films", namespace_path=[namespace])
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    table.add(vectors([5]))
    assert data.count_table_rows(table_id, models.CountTableRowsRequest()) == 5


def test_the_generated_client_calls_every_operation_on_datasets(namespace, client):
    table_id = f"{namespace}$films"
    data, tables, indices = api.DataApi(client), api.TableApi(client), api.IndexApi(client)

    created = data.create_table(table_id, body=stream(vectors([1, 2, 3])), properties='{"owner": "me"}')
    assert (created.version, created.properties) == (1, {"owner": "me"})
    inserted = data.insert_into_table(table_id, body=stream(vectors([4])), mode="append")
    assert (inserted.num_inserted_rows, inserted.version) == (1, 2)
    merged = data.merge_insert_into_table(
        table_id,
        on=["id"],
        body=stream(vectors([4, 5])),
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
    )
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 1)
    updated = data.update_table(
        table_id, models.UpdateTableRequest(predicate="id = 5", updates=[["title", "'Sacrifice'"]])
    )
    assert updated.updated_rows == 1
    assert data.delete_from_table(table_id, models.DeleteFromTableRequest(predicate="id = 1")).version == 5

    everything = models.QueryTableRequestVector()
    query = models.QueryTableRequest(vector=everything, k=10, filter="id > 3")
    rows = pa.ipc.open_file(bytes(data.query_table(table_id, query))).read_all()
    assert sorted(rows["title"].to_pylist()) == ["Sacrifice", "film 4"]
    nearest = models.QueryTableRequest(vector=models.QueryTableRequestVector(single_vector=[2.2, 0.0]), k=1)
    assert pa.ipc.open_file(bytes(data.query_table(table_id, nearest))).read_all()["id"].to_pylist() == [2]
    assert data.count_table_rows(table_id, models.CountTableRowsRequest(predicate="id > 3")) == 2
    explained = data.explain_table_query_plan(table_id, models.ExplainTableQueryPlanRequest(query=query))
    assert "LanceRead" in explained
    analyzed = data.analyze_table_query_plan(
        table_id, models.AnalyzeTableQueryPlanRequest(vector=everything, k=10)
    )
    assert "output_rows" in analyzed

    indices.create_table_scalar_index(
        table_id, models.CreateTableIndexRequest(column="id", index_type="BTREE", name="by_id")
    )
    indices.create_table_index(table_id, models.CreateTableIndexRequest(column="title", index_type="FTS"))
    listed = indices.list_table_indices(table_id, models.ListTableIndicesRequest()).indexes
    assert [index.index_name for index in listed] == ["by_id", "title_idx"]
    stats = indices.describe_table_index_stats(table_id, "by_id", models.DescribeTableIndexStatsRequest())
    assert (stats.index_type, stats.num_indexed_rows) == ("BTREE", 4)
    assert indices.drop_table_index(table_id, "by_id").transaction_id

    tables.alter_table_add_columns(
        table_id,
        models.AlterTableAddColumnsRequest(new_columns=[models.AddColumnsEntry(name="twice", expression="id * 2")]),
    )
    tables.alter_table_alter_columns(
        table_id,
        models.AlterTableAlterColumnsRequest(alterations=[models.AlterColumnsEntry(path="twice", rename="double")]),
    )
    described = tables.update_field_metadata(
        table_id,
        models.UpdateFieldMetadataRequest(
            updates=[models.UpdateFieldMetadataEntry(path="double", metadata={"unit": "none"})]
        ),
    )
    assert described.fields == {"double": {"unit": "none"}}
    detailed = tables.describe_table(table_id, models.DescribeTableRequest(), load_detailed_metadata=True)
    assert [field.name for field in detailed.var_schema.fields] == ["id", "title", "vector", "double"]
    assert tables.get_table_stats(table_id, models.GetTableStatsRequest()).num_rows == 4
    tables.alter_table_drop_columns(table_id, models.AlterTableDropColumnsRequest(columns=["double"]))
    assert tables.restore_table(table_id, models.RestoreTableRequest(version=1)).transaction_id
    assert data.count_table_rows(table_id, models.CountTableRowsRequest()) == 3
