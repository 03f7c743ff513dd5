"""Index building: tasks on Ray build segments of an index, each of some fragments, and one commit publishes all of
them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tiltyard.connection import connection
from tiltyard.job.conflicts import replanned
from tiltyard.job.job import Job, JobError, Report, Result
from tiltyard.job.ray_tasks import groups_of, run_tasks, task_slots
from tiltyard.job.table import open_dataset, open_table

# The index types whose names in the protocol and in Lance differ.
NAMES = {"FTS": "INVERTED"}
DEFAULT_METRIC = "l2"
PARTITION_ROWS = 4_096
# The number of rows per centroid that k-means samples, if the table has enough.
SAMPLE_RATE = 256
PQ_CENTROIDS = 256


@dataclass(frozen=True)
class Segment:
    """A part of an index that one task builds."""

    table: list[str]
    version: int
    column: str
    index_type: str
    name: str
    fragments: list[int]
    options: dict[str, Any] = field(default_factory=dict)


@replanned
def build(job: Job, report: Report) -> Result:
    """Builds an index and replaces one of the same name. Vectors share one model, so that all segments agree."""
    dataset = open_table(job)
    parameters = job.parameters
    column = parameters["column"]
    index_type = parameters["index_type"].upper()
    index_type = NAMES.get(index_type, index_type)
    name = parameters.get("name", f"{column}_idx")
    fragments = {fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}
    if not fragments:
        raise JobError(f"{'$'.join(job.table)} has no rows to index")
    total = sum(fragments.values())
    report(0, total)
    at_once = task_slots(job.parameters.get("concurrency"))
    options = _model_of(dataset, job, index_type, total) if index_type.startswith("IVF") else {}
    segments = [
        Segment(job.table, dataset.version, column, index_type, name, group, options)
        for group in groups_of(list(fragments), at_once)
    ]
    built = []
    indexed = 0
    for segment, index in run_tasks(build_segment, segments, at_once):
        built.append(index)
        indexed += sum(fragments[each] for each in segment.fragments)
        report(indexed, total)
    source_version = dataset.version
    published = dataset.commit_existing_index_segments(name, column, built)
    return {"segments": len(built), "source_version": source_version, "published_version": published.version}


def build_segment(segment: Segment) -> tuple[Segment, Any]:
    """Writes a segment, which belongs to no version yet, on any node of the Ray."""
    dataset = open_dataset(connection(), segment.table, segment.version)
    index = dataset.create_index_uncommitted(
        segment.column,
        segment.index_type,
        name=segment.name,
        replace=True,
        fragment_ids=segment.fragments,
        **segment.options,
    )
    return segment, index


def _model_of(dataset: Any, job: Job, index_type: str, rows: int) -> dict[str, Any]:
    from lance.indices import IndicesBuilder

    metric = job.parameters.get("distance_type", DEFAULT_METRIC).lower()
    partitions = job.parameters.get("num_partitions") or max(1, rows // PARTITION_ROWS)
    builder = IndicesBuilder(dataset, job.parameters["column"])
    ivf = builder.train_ivf(partitions, distance_type=metric, sample_rate=_sample_rate(rows, partitions))
    model: dict[str, Any] = {"metric": metric, "num_partitions": partitions, "ivf_centroids": ivf.centroids}
    if not index_type.endswith("_PQ"):
        return model
    if rows < PQ_CENTROIDS:
        raise JobError(f"{index_type} needs {PQ_CENTROIDS} rows at least, and the table has {rows:,}: use IVF_FLAT")
    pq = builder.train_pq(ivf, job.parameters.get("num_sub_vectors"), sample_rate=_sample_rate(rows, PQ_CENTROIDS))
    return {**model, "pq_codebook": pq.codebook, "num_sub_vectors": pq.num_subvectors}


def _sample_rate(rows: int, centroids: int) -> int:
    return max(2, min(SAMPLE_RATE, rows // centroids))
