"""Calls operations with the client that openapi-python-client generated. Arguments: the URL, the key, a table, and a job."""

import sys

from generated.api.table import batch_delete_table_versions
from generated.api.transaction import alter_transaction, describe_transaction
from generated.client import Client
from generated.models import (
    AlterTransactionAction,
    AlterTransactionRequest,
    AlterTransactionSetProperty,
    AlterTransactionSetPropertyMode,
    AlterTransactionSetStatus,
    AlterTransactionSetStatusStatus,
    BatchDeleteTableVersionsRequest,
    DescribeTransactionBodyType0,
    VersionRange,
)

url, key, table, job = sys.argv[1:]
client = Client(url, headers={"x-api-key": key}, raise_on_unexpected_status=True)
actions = [
    AlterTransactionAction(set_status_action=AlterTransactionSetStatus(AlterTransactionSetStatusStatus.RUNNING)),
    AlterTransactionAction(
        set_property_action=AlterTransactionSetProperty("owner", "me", mode=AlterTransactionSetPropertyMode.FAIL)
    ),
]
altered = alter_transaction.sync(job, client=client, body=AlterTransactionRequest(actions))
assert altered.status == "Running", altered
described = describe_transaction.sync(job, client=client, body=DescribeTransactionBodyType0())
assert (described.status, described.properties["owner"]) == ("Running", "me"), described
first = BatchDeleteTableVersionsRequest([VersionRange(1, 2)])
deleted = batch_delete_table_versions.sync(table, client=client, body=first)
assert deleted.deleted_count == 1, deleted
