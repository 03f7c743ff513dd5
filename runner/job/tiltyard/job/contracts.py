"""The requests, responses and exit codes of jobs, which test/runner/python-models.test.ts generates."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, NotRequired, TypedDict


class Exit(IntEnum):
    SUCCEEDED = 0
    USAGE = 2
    FAILED = 3
    CANCELED = 4
    LOST = 5
    AGAIN = 75


class JobParameters(TypedDict):
    column: NotRequired[str]
    where: NotRequired[str]
    concurrency: NotRequired[int]
    intra_applier_concurrency: NotRequired[int]
    min_checkpoint_size: NotRequired[int]
    max_checkpoint_size: NotRequired[int]
    batch_checkpoint_flush_interval_seconds: NotRequired[float]
    read_version: NotRequired[int]
    task_size: NotRequired[int]
    num_frags: NotRequired[int]
    checkpoint_size: NotRequired[int]
    commit_granularity: NotRequired[int]
    cluster: NotRequired[str]
    manifest: NotRequired[str]
    error_policy: NotRequired[str]
    max_failed_rows: NotRequired[int]
    max_failed_fraction: NotRequired[float]
    timeout_seconds: NotRequired[int]
    priority: NotRequired[str]
    src_version: NotRequired[int]
    max_rows_per_fragment: NotRequired[int]
    source_task_size: NotRequired[int]
    output_limit: NotRequired[int]
    target_rows_per_fragment: NotRequired[int]
    older_than_seconds: NotRequired[int]
    keep_versions: NotRequired[int]
    index_type: NotRequired[str]
    name: NotRequired[str]
    distance_type: NotRequired[str]
    num_partitions: NotRequired[int]
    num_sub_vectors: NotRequired[int]
    version: NotRequired[int]
    python_version: NotRequired[str]
    packages: NotRequired[list[str]]
    cluster_definition: NotRequired[str]
    function_binding: NotRequired[str]
    failed_rows_of: NotRequired[str]
    options: NotRequired[dict[str, str | float | bool]]


class Job(TypedDict):
    job_id: str
    status: Literal["Queued", "Running", "Succeeded", "Failed", "Canceled"]
    operation: str
    objects: list[list[str]]
    principal: str
    request_id: str
    column: NotRequired[str]
    progress: dict[str, int]
    result: dict[str, int]
    priority: Literal["high", "normal", "low"]
    queue_position: NotRequired[int]
    attempt: int
    interruptions: int
    paused_at_millis: NotRequired[int]
    started_at_millis: NotRequired[int]
    heartbeat: NotRequired[str]
    stalled_since_millis: NotRequired[int]
    reason: NotRequired[str]
    platform: dict[str, str]
    created_at_millis: int
    updated_at_millis: int
    ended_at_millis: NotRequired[int]
    parameters: JobParameters


class StartJobAttemptRequest(TypedDict):
    attempt: int
    claim: str


class HeartbeatJobAttemptRequest(TypedDict):
    attempt: int
    claim: NotRequired[str]
    progress: NotRequired[dict[str, int]]
    log_tail: NotRequired[str]
    reason: NotRequired[str]


class FinishJobAttemptRequest(TypedDict):
    attempt: int
    claim: NotRequired[str]
    status: NotRequired[Literal["Succeeded", "Failed"]]
    interrupted: NotRequired[bool]
    reason: NotRequired[str]
    progress: NotRequired[dict[str, int]]
    result: NotRequired[dict[str, int]]
    log_tail: NotRequired[str]


class JobFunctionInputs(TypedDict):
    parameter: str
    path: str


class FunctionField(TypedDict):
    name: str
    arrow_type: str
    nullable: bool


class FunctionOutput1(TypedDict):
    kind: Literal["scalar"]
    arrow_type: str
    nullable: bool


class FunctionOutput2(TypedDict):
    kind: Literal["named_struct"]
    fields: list[FunctionField]


class JobFunctionOutputs(TypedDict):
    result: str
    column: str


class FunctionFragment(TypedDict):
    fragment_id: int
    signature: str
    rows: int


class JobFunction(TypedDict):
    name: str
    version: int
    binding: str
    kind: Literal["python_callable", "python_bundle"]
    entrypoint: str
    content: str
    python_version: str
    packages: list[str]
    env: dict[str, str]
    gpu: bool
    secrets: list[str]
    inputs: list[JobFunctionInputs]
    input_types: list[FunctionField]
    output: FunctionOutput1 | FunctionOutput2
    outputs: list[JobFunctionOutputs]
    initialization: dict[str, Any]
    fragments: list[FunctionFragment]


class ReadJobSecretsRequest(TypedDict):
    attempt: int
    claim: str


class FunctionRowError(TypedDict):
    fragment_id: int
    row_offset: NotRequired[int]
    error_type: str
    error_message: str


class FunctionFailures(TypedDict):
    fragment_id: int
    rows: int


class RecordJobFunctionRequest(TypedDict):
    attempt: int
    claim: str
    version: int
    fragments: list[FunctionFragment]
    removed: NotRequired[list[int]]
    errors: NotRequired[list[FunctionRowError]]
    failed: NotRequired[list[FunctionFailures]]
