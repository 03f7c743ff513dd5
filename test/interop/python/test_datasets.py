"""The operations that open datasets in the catalog, called by real clients."""

import re
import urllib.request

import lancedb
from lance_namespace_urllib3_client import api, models
from rows import stream, vectors


def test_lancedb_pushes_operations_down(catalog, namespace):
    """lancedb 0.40 pushes vector searches down and executes the others itself, regardless of the settings."""
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
    """Returns the number of calls of an operation since the start of the catalog."""
    with urllib.request.urlopen(f"{catalog.url}/metrics", timeout=60) as answer:
        counted = re.findall(rf'_count{{operation="{operation}",status="200"}} (\d+)', answer.read().decode())
    return sum(int(count) for count in counted)


def test_what_the_catalog_writes_every_client_reads(catalog, namespace, generated_client):
    table_id = f"{namespace}$films"
    data = api.DataApi(generated_client)
    data.create_table(table_id, body=stream(vectors([1, 2, 3])))
    data.insert_into_table(table_id, body=stream(vectors([4])))
    db = lancedb.connect_namespace("rest", catalog.properties)
    table = db.open_table("films", namespace_path=[namespace])
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    table.add(vectors([5]))
    assert data.count_table_rows(table_id, models.CountTableRowsRequest()) == 5
