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
# The retry time of requests about a Function, equal to the lease of an attempt.
FUNCTION_RETRY_SECONDS = 60.0
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


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because a request to their target would contain the key."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirects)


class CatalogJob:
    """The requests of an attempt. The catalog rejects those of other attempts with 409.

    All of them may be repeated. They raise CatalogRefusal; CatalogUnavailable if the catalog does not respond within
    the retry time.
    """

    def __init__(self, connection: Connection, job_id: str) -> None:
        self._connection = connection
        self._job_id = job_id

    def start(self, request: contracts.StartJobAttemptRequest, retry_seconds: float) -> Answer:
        return self._attempt("start", request, retry_seconds, CALL_TIMEOUT_SECONDS)

    def heartbeat(self, request: contracts.HeartbeatJobAttemptRequest, timeout_seconds: float) -> Answer:
        return self._attempt("heartbeat", request, 0, timeout_seconds)

    def finish(self, request: contracts.FinishJobAttemptRequest, retry_seconds: float) -> Answer:
        return self._attempt("finish", request, retry_seconds, CALL_TIMEOUT_SECONDS)

    def describe_function(self) -> contracts.JobFunction:
        answer, _ = self._call("function/describe", None, FUNCTION_RETRY_SECONDS, CALL_TIMEOUT_SECONDS)
        return cast(contracts.JobFunction, answer["function"])

    def read_secrets(self, request: contracts.ReadJobSecretsRequest) -> dict[str, str]:
        """Returns the values of secrets by their environment variables."""
        answer, _ = self._call("function/secrets", request, FUNCTION_RETRY_SECONDS, CALL_TIMEOUT_SECONDS)
        return cast(dict[str, str], answer["secrets"])

    def record_function(self, request: contracts.RecordJobFunctionRequest) -> None:
        self._call("function/record", request, FUNCTION_RETRY_SECONDS, CALL_TIMEOUT_SECONDS)

    def _attempt(self, operation: str, body: Any, retry_seconds: float, timeout_seconds: float) -> Answer:
        answer, sent_at = self._call(f"attempt/{operation}", body, retry_seconds, timeout_seconds)
        try:
            return Answer(cast(contracts.Job, answer["job"]), sent_at)
        except (LookupError, TypeError) as error:
            raise CatalogUnavailable(f"no catalog responded at {self._connection.url}") from error

    def _call(self, operation: str, body: Any, retry_seconds: float, timeout_seconds: float) -> tuple[Any, float]:
        """Returns the answer, and the time at which the request was sent."""
        deadline = time.monotonic() + retry_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                sent_at = time.monotonic()
                return self._call_once(operation, body, timeout_seconds), sent_at
            except CatalogUnavailable:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, MOST_PAUSE_SECONDS)

    def _call_once(self, operation: str, body: Any, timeout_seconds: float) -> Any:
        request = urllib.request.Request(
            f"{self._connection.url}/management/v1/job/{urllib.parse.quote(self._job_id, safe='')}/{operation}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"x-api-key": self._connection.key, "content-type": "application/json"},
        )
        try:
            with OPENER.open(request, timeout=timeout_seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            detail = _detail_of(error)
            is_busy = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.TOO_MANY_REQUESTS
            # A gateway may respond in place of the catalog, for example during an update of the catalog.
            if detail is None or is_busy:
                raise CatalogUnavailable(detail or f"HTTP {error.code}") from error
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


def _detail_of(error: urllib.error.HTTPError) -> str | None:
    """Returns the text of an error of the catalog, which has a code; None for a response of another server."""
    try:
        answer = json.load(error)
        return str(answer["detail"]) if "code" in answer else None
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException):
        return None
