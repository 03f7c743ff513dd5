"""Compaction merges many small fragments into few large ones and removes deleted rows."""

from __future__ import annotations

from typing import Any

from tiltyard.connection import connection
from tiltyard.job.conflicts import replanned
from tiltyard.job.job import Job, JobError, Report, Result
from tiltyard.job.ray_tasks import run_tasks, task_slots
from tiltyard.job.table import open_dataset, open_table


@replanned
def compact(job: Job, report: Report) -> Result:
    """Rewrites fragments on Ray and commits all of them as one version. A plan without tasks commits nothing."""
    from lance.optimize import Compaction, RewriteResult

    dataset = open_table(job)
    source_version = dataset.version
    plan = Compaction.plan(dataset, _options_of(job))
    if plan.num_tasks() > 0:
        require_own_indices(dataset)
    rows = {task.json(): sum(fragment.num_rows for fragment in task.fragments) for task in plan.tasks}
    total = sum(rows.values())
    report(0, total)
    rewrites = []
    rewritten_rows = 0
    items = [(job.table, plan.read_version, task) for task in rows]
    for task, rewritten in run_tasks(rewrite, items, task_slots(job.parameters.get("concurrency"))):
        rewrites.append(RewriteResult.from_json(rewritten))
        rewritten_rows += rows[task]
        report(rewritten_rows, total)
    if not rewrites:
        return {"fragments_removed": 0, "fragments_added": 0, "source_version": source_version}
    metrics = Compaction.commit(dataset, rewrites)
    return {
        "fragments_removed": metrics.fragments_removed,
        "fragments_added": metrics.fragments_added,
        "source_version": source_version,
        "published_version": dataset.version,
    }


def require_own_indices(dataset: Any) -> None:
    """Raises JobError for an index whose files are in another folder, as in a shallow clone.

    pylance 14 writes new files into the folder of the table, and continues to look for them in the other one.
    """
    indices = dataset.describe_indices()
    others = [index.name for index in indices if any(part.base_id is not None for part in index.segments)]
    if others:
        raise JobError(
            f"the files of {', '.join(others)} are those of the table that this one was cloned from, and a compaction "
            "would lose them: drop these indices or build them again, and then retry"
        )


def _options_of(job: Job) -> dict[str, int]:
    rows = job.parameters.get("target_rows_per_fragment")
    return {} if rows is None else {"target_rows_per_fragment": rows}


def rewrite(item: tuple[list[str], int, str]) -> tuple[str, str]:
    """Runs one task of a plan on any node of the Ray. Plans and results are transferred as JSON."""
    from lance.optimize import CompactionTask

    table, version, task = item
    dataset = open_dataset(connection(), table, version)
    return task, CompactionTask.from_json(task).execute(dataset).json()
