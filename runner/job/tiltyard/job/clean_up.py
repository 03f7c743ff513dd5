"""Clean-up deletes versions that are no longer needed and the files that only they refer to."""

from __future__ import annotations

import time
from typing import Any

from tiltyard.job.job import Job, Report, Result
from tiltyard.job.table import open_table

DAY_SECONDS = 24 * 60 * 60
DEFAULT_SECONDS = 14 * DAY_SECONDS
MAIN = "main"


def clean_up(job: Job, report: Report) -> Result:
    """Deletes old versions of main. Their records are deleted first, so that every record has a manifest.

    The latest versions remain, as do versions with a tag or the start of a branch. Leftovers of an earlier attempt,
    whose records no longer exist, are deleted too.
    """
    dataset = open_table(job)
    versions = _versions_of(job)
    kept = _kept(dataset, [version for version, _ in versions], job)
    before_millis = expiry_millis(job, time.time())
    deletable = sorted(version for version, millis in versions if version not in kept and millis < before_millis)
    if not deletable:
        return {"versions_deleted": 0, "bytes_removed": 0, "source_version": dataset.version}
    _delete_records(job, deletable)
    present = {version for version, _ in versions} - set(deletable)
    gone = [version for version in range(1, deletable[-1] + 1) if version not in present]
    stats = dataset.cleanup_old_versions(versions=gone, error_if_tagged_old_versions=False)
    return {
        "versions_deleted": len(deletable),
        "bytes_removed": stats.bytes_removed,
        "source_version": dataset.version,
    }


def expiry_millis(job: Job, now_seconds: float) -> float:
    """Returns the time of the oldest version that remains. No clock that is ahead can delete versions by itself: the
    earlier one counts, of this node and of the catalog when it opened the job."""
    older_than = job.integer("older_than_seconds")
    now_millis = min(now_seconds * 1_000, job.opened_at_millis)
    return now_millis - (DEFAULT_SECONDS if older_than is None else older_than) * 1_000


def _kept(dataset: Any, versions: list[int], job: Job) -> set[int]:
    latest = sorted(versions)[-max(1, job.integer("keep_versions") or 1) :]
    tagged = [tag["version"] for tag in dataset.tags.list().values() if tag.get("branch") in (None, MAIN)]
    parents = [branch["parent_version"] for branch in dataset.branches.list().values()]
    return {*latest, *tagged, *parents}


def _versions_of(job: Job) -> list[tuple[int, int]]:
    """Returns all versions of main in the catalog with the times of their commits in milliseconds."""
    from lance.namespace import RestNamespace
    from lance_namespace import ListTableVersionsRequest

    client = RestNamespace(**job.connection.properties)
    found: list[tuple[int, int]] = []
    token = None
    while True:
        page = client.list_table_versions(ListTableVersionsRequest(id=job.table, page_token=token))
        found += [(each.version, each.timestamp_millis) for each in page.versions]
        token = page.page_token
        if not token:
            return found


def _delete_records(job: Job, versions: list[int]) -> None:
    from lance.namespace import RestNamespace

    ranges: list[dict[str, int]] = []
    for version in versions:
        if ranges and ranges[-1]["end_version"] == version:
            ranges[-1]["end_version"] = version + 1
        else:
            ranges.append({"start_version": version, "end_version": version + 1})
    client = RestNamespace(**job.connection.properties)
    client.batch_delete_table_versions({"id": job.table, "ranges": ranges})
