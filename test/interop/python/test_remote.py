"""Tests LanceDB's own remote client, unmodified, with this catalog as its server."""

import lancedb
import pytest
from catalog import Catalog
from jobs import ROWS, values, write_films
from lancedb.exceptions import JobFailedError


@pytest.fixture
def source(catalog, table):
    return write_films(catalog, [f"remote_{table[0]}"])


def add_computed(catalog, table: list[str], name: str, expression: str) -> None:
    columns = {"new_columns": [{"name": name, "computed": expression}]}
    catalog.post(f"/v1/table/{'%24'.join(table)}/add_columns", columns)


def test_a_job_that_is_canceled_or_fails_is_told_as_such(tmp_path):
    """Without a runner, the catalog alone reports the state of jobs."""
    with Catalog(tmp_path / "data") as catalog:
        source = write_films(catalog, ["films"])
        add_computed(catalog, source, "twice", "id * 2")
        remote = lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)
        table = remote.open_table(source[0])
        canceled = table.refresh_column_async("twice")
        assert remote.cancel_job(canceled.id)
        assert canceled.status() == "cancelled"
        failed = table.refresh_column_async("twice")
        actions = [
            {"setPropertyAction": {"key": "reason", "value": "ValueError: no such film"}},
            {"setStatusAction": {"status": "Failed"}},
        ]
        catalog.post(f"/v1/transaction/{failed.id}/alter", {"actions": actions})
        with pytest.raises(JobFailedError, match="no such film"):
            failed.wait()
        assert not remote.cancel_job("missing")


def test_a_column_is_refreshed_to_the_end(catalog, runner, remote, source):
    add_computed(catalog, source, "twice", "id * 2")
    job = remote.open_table(source[0]).refresh_column_async("twice")
    result = job.wait()
    assert (result.rows_assigned, result.rows_remaining) == (ROWS, 0)
    assert result.published_version > result.source_version
    assert values(catalog, source, "twice") == [2 * number for number in range(ROWS)]
    assert job.status() == "finished"
    assert [event["state"] for event in job.events().to_pylist()] == ["queued", "claim", "done"]
    assert [event["state"] for event in job.events(filter="state = 'done'").to_pylist()] == ["done"]
    # The cancellation of an ended job succeeds without an effect.
    job.cancel()
    listed = {each.job_id: each for each in remote.list_jobs()}
    assert (listed[job.id].state, listed[job.id].table) == ("finished", source[0])
