"""An attempt at a job in the catalog, through the typed requests of its management API."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from tiltyard.connection import Connection
from tiltyard.job import contracts

CALL_TIMEOUT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.2
MOST_PAUSE_SECONDS = 5.0
TEXT_LENGTH_MAX = 4_000


class CatalogRefusal(Exception):
    """The catalog rejected a request."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class CatalogUnavailable(Exception):
    """The catalog did not respond or reported that it is unavailable."""


@dataclass(frozen=True)
class Answer:
    """A job as the catalog described it in response to a request."""

    job: contracts.Job
    # The time at which the request was sent, by time.monotonic().
    sent_at: float


class CatalogJob:
    """The requests of an attempt. The catalog answers each with the job, and rejects those of other attempts with 409.

    All of them may be repeated. They raise CatalogRefusal; CatalogUnavailable if the catalog does not respond within
    the retry time.
    """

    def __init__(self, connection: Connection, job_id: str) -> None:
        self._connection = connection
        self._job_id = job_id

    def start(self, request: contracts.StartJobAttemptRequest, retry_seconds: float) -> Answer:
        return self._call("start", request, retry_seconds, CALL_TIMEOUT_SECONDS)

    def heartbeat(self, request: contracts.HeartbeatJobAttemptRequest, timeout_seconds: float) -> Answer:
        return self._call("heartbeat", request, 0, timeout_seconds)

    def finish(self, request: contracts.FinishJobAttemptRequest, retry_seconds: float) -> Answer:
        return self._call("finish", request, retry_seconds, CALL_TIMEOUT_SECONDS)

    def _call(self, operation: str, body: Any, retry_seconds: float, timeout_seconds: float) -> Answer:
        deadline = time.monotonic() + retry_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._call_once(operation, body, timeout_seconds)
            except CatalogUnavailable:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, MOST_PAUSE_SECONDS)

    def _call_once(self, operation: str, body: Any, timeout_seconds: float) -> Answer:
        sent_at = time.monotonic()
        path = f"/management/v1/job/{urllib.parse.quote(self._job_id, safe='')}/attempt/{operation}"
        request = urllib.request.Request(
            self._connection.url + path,
            data=json.dumps(body).encode(),
            headers={"x-api-key": self._connection.key, "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_seconds) as answer:
                return Answer(cast(contracts.Job, json.load(answer)["job"]), sent_at)
        except urllib.error.HTTPError as error:
            detail = _detail_of(error)
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.TOO_MANY_REQUESTS:
                raise CatalogUnavailable(detail) from error
            raise CatalogRefusal(error.code, detail) from error
        # A response that ends prematurely is an HTTPException.
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise CatalogUnavailable(f"no response from the catalog at {self._connection.url}: {error}") from error


def as_text(text: str) -> str:
    """Returns valid Unicode within the limits of the catalog. Python maps other bytes of file names to lone surrogates.

    A long text keeps its end, because the end of an error is the most informative part.
    """
    valid = text.encode("utf-8", "backslashreplace").decode()
    if len(valid) <= TEXT_LENGTH_MAX:
        return valid
    return f"{valid[: TEXT_LENGTH_MAX // 4]}\u2026{valid[-(TEXT_LENGTH_MAX * 3 // 4 - 1) :]}"


def _detail_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"HTTP {error.code}"
