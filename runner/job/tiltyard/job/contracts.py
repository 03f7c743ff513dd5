"""The requests and responses of jobs. Generated from the contracts: test/runner/python-models.test.ts."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Job(TypedDict):
    job_id: str
    status: Literal["Queued", "Running", "Succeeded", "Failed", "Canceled"]
    operation: str
    objects: list[list[str]]
    principal: str
    request_id: str
    parameters: dict[str, str]
    progress: dict[str, int]
    result: dict[str, int]
    attempt: int
    started_at_millis: NotRequired[int]
    heartbeat: NotRequired[str]
    reason: NotRequired[str]
    platform: dict[str, str]
    created_at_millis: int
    updated_at_millis: int
    ended_at_millis: NotRequired[int]


class StartJobAttemptRequest(TypedDict):
    attempt: int
    claim: str


class HeartbeatJobAttemptRequest(TypedDict):
    attempt: int
    claim: NotRequired[str | None]
    progress: NotRequired[dict[str, int] | None]
    log_tail: NotRequired[str | None]
    reason: NotRequired[str | None]


class FinishJobAttemptRequest(TypedDict):
    attempt: int
    claim: NotRequired[str | None]
    status: NotRequired[Literal["Succeeded", "Failed"] | None]
    reason: NotRequired[str | None]
    progress: NotRequired[dict[str, int] | None]
    result: NotRequired[dict[str, int] | None]
    log_tail: NotRequired[str | None]
