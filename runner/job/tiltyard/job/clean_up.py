"""Clean-up deletes versions that are no longer needed, and files that no version refers to."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from tiltyard.job.geneva_checkpoints import delete_checkpoints, open_jobs
from tiltyard.job.job import Job, JobError, Report, Result
from tiltyard.job.table import open_table

DAY_SECONDS = 24 * 60 * 60
DEFAULT_SECONDS = 14 * DAY_SECONDS
MAIN = "main"
# An age that no version has. Lance then only deletes files without a version, which must be seven days old.
NO_VERSIONS = timedelta(days=100 * 365)
CLOCKS_APART_SECONDS = DAY_SECONDS


def clean_up(job: Job, report: Report) -> Result:
    """Deletes old versions of main. Their records are deleted first, so that every record has a manifest.

    The latest versions remain, as do versions with a tag or the start of a branch. Leftovers of an earlier attempt,
    whose records no longer exist, are deleted too, and so are files that no version has referenced for seven days, and
    Geneva's checkpoints of ended jobs.

    Raises JobError for a node whose clock is ahead, because Lance compares it with the times of files.
    """
    _require_agreeing_clocks(job, time.time())
    dataset = open_table(job)
    versions = _versions_of(job)
    kept = _kept(dataset, [version for version, _ in versions], job)
    before_millis = expiry_millis(job, time.time())
    deletable = sorted(version for version, millis in versions if version not in kept and millis < before_millis)
    result = {"versions_deleted": len(deletable), "source_version": dataset.version, "bytes_before": _bytes_of(dataset)}
    busy = open_jobs(job, dataset.schema)
    if busy:
        print(f"files without a version and checkpoints stay, because jobs are open: {', '.join(busy)}", flush=True)
    if deletable:
        _delete_records(job, deletable)
        present = {version for version, _ in versions} - set(deletable)
        which: dict[str, Any] = {"versions": [each for each in range(1, deletable[-1] + 1) if each not in present]}
    elif busy:
        return {**result, "bytes_after": result["bytes_before"]}
    else:
        which = {"older_than": NO_VERSIONS}
    stats = dataset.cleanup_old_versions(**which, error_if_tagged_old_versions=False)
    files = (stats.data_files_removed, stats.transaction_files_removed, stats.index_files_removed)
    result["files_removed"] = sum(files) + stats.deletion_files_removed
    if not busy:
        result |= delete_checkpoints(job, dataset.schema)
    return {**result, "bytes_after": _bytes_of(dataset)}


def _bytes_of(dataset: Any) -> int:
    """Returns the size of all files in the folder of a table, whether a version refers to them or not."""
    return sum(sum(batch["size_bytes"].to_pylist()) for batch in dataset.all_files())


def _require_agreeing_clocks(job: Job, now_seconds: float) -> None:
    ahead_seconds = now_seconds - job.started_at_millis / 1_000
    if ahead_seconds > CLOCKS_APART_SECONDS:
        raise JobError(
            f"the clock of this node is {ahead_seconds / DAY_SECONDS:.1f} days ahead of that of the catalog, so that "
            "files of running writers would look old: set both clocks"
        )


def expiry_millis(job: Job, now_seconds: float) -> float:
    """Returns the time of the oldest version that remains. No clock that is ahead can delete versions by itself: the
    earlier one counts, of this node and of the catalog when the attempt started."""
    older_than = job.parameters.get("older_than_seconds")
    now_millis = min(now_seconds * 1_000, job.started_at_millis)
    return now_millis - (DEFAULT_SECONDS if older_than is None else older_than) * 1_000


def _kept(dataset: Any, versions: list[int], job: Job) -> set[int]:
    latest = sorted(versions)[-max(1, job.parameters.get("keep_versions") or 1) :]
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
