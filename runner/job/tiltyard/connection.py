"""The location of the catalog and its key. The key is read from the environment or a file, never from arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

URL = "TILTYARD_CATALOG_URL"
KEY = "TILTYARD_API_KEY"
KEY_FILE = "TILTYARD_API_KEY_FILE"


class ConnectionSettingError(Exception):
    """The environment does not specify how to reach the catalog."""


@dataclass(frozen=True)
class Connection:
    url: str
    key: str = field(repr=False)

    @property
    def properties(self) -> dict[str, str]:
        """Returns the properties that Lance's clients need to connect."""
        return {"uri": self.url, "header.x-api-key": self.key}


def connection(environment: Mapping[str, str] = os.environ) -> Connection:
    """Reads the environment. A key file with a relative path is in the job's working directory on every node.

    Raises ConnectionSettingError.
    """
    url, key, file = (environment.get(name) for name in (URL, KEY, KEY_FILE))
    if not url:
        raise ConnectionSettingError(f"{URL} is not set: it names the catalog, e.g. http://127.0.0.1:2333")
    if not key and not file:
        raise ConnectionSettingError(f"set {KEY}, or {KEY_FILE} to the path of a file that has it")
    if not key:
        try:
            key = Path(str(file)).read_text().strip()
        except OSError as error:
            raise ConnectionSettingError(f"{KEY_FILE}: cannot be read: {error}") from error
    return Connection(url.rstrip("/"), key)
