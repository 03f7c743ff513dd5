"""Whether the Ray that started a job is still there. A job outlives it, and would wait for its tasks for ever."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

# Ray sets it for the jobs that it starts, to the host and port of its head.
ADDRESS = "RAY_ADDRESS"
TIMEOUT_SECONDS = 1.0


def has_ray(environment: Mapping[str, str] = os.environ) -> bool:
    """True also for a process that no Ray has started."""
    host, _, port = environment.get(ADDRESS, "").rpartition(":")
    if not host or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True
