"""Checks that the Ray of a job still exists. A job outlives its Ray and would wait for its tasks forever."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

# A variable that Ray sets for its jobs to the host and the port of its head.
ADDRESS = "RAY_ADDRESS"
TIMEOUT_SECONDS = 1.0


def has_ray(environment: Mapping[str, str] = os.environ) -> bool:
    """Reports whether the head is reachable. Returns True for a process that Ray did not start."""
    host, _, port = environment.get(ADDRESS, "").rpartition(":")
    if not host or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True
