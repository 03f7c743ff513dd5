"""The transaction of a job in the catalog, through DescribeTransaction and AlterTransaction."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tiltyard.connection import Connection

Action = Mapping[str, Mapping[str, str]]

CALL_TIMEOUT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.2
MOST_PAUSE_SECONDS = 5.0
VALUE_LENGTH_MAX = 4_000


class CatalogRefusal(Exception):
    """The catalog rejected a request."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class CatalogUnavailable(Exception):
    """The catalog did not respond or reported that it is unavailable."""


@dataclass(frozen=True)
class State:
    """The state of a job in the catalog."""

    status: str
    operation: str
    # The identifiers of the changed objects, the main one first.
    objects: list[list[str]]
    properties: dict[str, str]
    # The time at which the corresponding request was sent, by time.monotonic().
    sent_at: float

    @property
    def is_open(self) -> bool:
        return self.status in ("Queued", "Running")


class Transaction:
    def __init__(self, connection: Connection, job_id: str) -> None:
        self.job_id = job_id
        self._connection = connection

    def describe(self, retry_seconds: float = 0, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> State:
        """Describes the transaction. Raises CatalogRefusal; CatalogUnavailable if the catalog does not respond within
        the retry time."""
        return self._call("describe", {}, retry_seconds, timeout_seconds)

    def alter(
        self, actions: list[Action], retry_seconds: float = 0, timeout_seconds: float = CALL_TIMEOUT_SECONDS
    ) -> State:
        """Applies all actions or none.

        Raises CatalogRefusal with status 409 if a mode Fail triggers or the transition is not allowed;
        CatalogUnavailable if the catalog does not respond within the retry time. Actions must be safe to repeat.
        """
        return self._call("alter", {"actions": actions}, retry_seconds, timeout_seconds)

    def _call(self, operation: str, body: Mapping[str, Any], retry_seconds: float, timeout_seconds: float) -> State:
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

    def _call_once(self, operation: str, body: Mapping[str, Any], timeout_seconds: float) -> State:
        sent_at = time.monotonic()
        path = f"/v1/transaction/{urllib.parse.quote(self.job_id, safe='')}/{operation}"
        request = urllib.request.Request(
            self._connection.url + path,
            data=json.dumps(body).encode(),
            headers={"x-api-key": self._connection.key, "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_seconds) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            detail = _detail_of(error)
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.TOO_MANY_REQUESTS:
                raise CatalogUnavailable(detail) from error
            raise CatalogRefusal(error.code, detail) from error
        # A response that ends prematurely is an HTTPException.
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise CatalogUnavailable(f"no answer from the catalog at {self._connection.url}: {error}") from error
        context = found.get("context", {})
        objects = json.loads(context.get("objects", "[]"))
        return State(found["status"], context.get("operation", ""), objects, found["properties"], sent_at)


def set_status(status: str) -> Action:
    return {"setStatusAction": {"status": status}}


def set_property(key: str, value: str) -> Action:
    return {"setPropertyAction": {"key": key, "value": _shorten(_as_text(value))}}


def set_new_property(key: str, value: str) -> Action:
    """Sets a property that must not exist. Otherwise the catalog rejects all actions with 409."""
    return {"setPropertyAction": {"key": key, "value": value, "mode": "Fail"}}


def unset_property(key: str) -> Action:
    """Deletes a property, which need not exist."""
    return {"unsetPropertyAction": {"key": key, "mode": "Skip"}}


def require_and_set(key: str, value: str) -> list[Action]:
    """Sets a property that must exist. Otherwise the catalog rejects all actions with 409."""
    return [{"unsetPropertyAction": {"key": key, "mode": "Fail"}}, set_property(key, value)]


def _as_text(value: str) -> str:
    """Returns valid Unicode, as the catalog requires. Python maps other bytes of file names to lone surrogates."""
    return value.encode("utf-8", "backslashreplace").decode()


def _shorten(text: str) -> str:
    """Shortens a text but keeps its end, because the end of an error is the most informative part."""
    if len(text) <= VALUE_LENGTH_MAX:
        return text
    return f"{text[: VALUE_LENGTH_MAX // 4]}\u2026{text[-(VALUE_LENGTH_MAX * 3 // 4 - 1) :]}"


def _detail_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"HTTP {error.code}"
