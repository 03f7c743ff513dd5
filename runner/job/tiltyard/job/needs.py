"""Checks for resources that no worker of the Ray cluster will ever have. Ray itself would wait for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltyard.job.job import JobError

# A variable that the runner sets for a job on a Ray with an autoscaler: the nodes that can be created.
WORKERS = "TILTYARD_RAY_WORKERS"
GIB = 2**30


@dataclass(frozen=True)
class Resources:
    """The resources of one worker or for one task."""

    cpus: float = 0
    gpus: float = 0
    memory_bytes: float = 0

    def fits(self, worker: Resources) -> bool:
        return self.cpus <= worker.cpus and self.gpus <= worker.gpus and self.memory_bytes <= worker.memory_bytes

    def __str__(self) -> str:
        parts = [
            f"{self.cpus:g} CPUs" if self.cpus else "",
            f"{self.gpus:g} GPUs" if self.gpus else "",
            f"{self.memory_bytes / GIB:.3g} GiB" if self.memory_bytes else "",
        ]
        return ", ".join(part for part in parts if part) or "nothing"


def workers(environment: Mapping[str, str] = os.environ) -> dict[str, Resources] | None:
    """Returns the possible workers of the Ray cluster by group; None if they are unknown."""
    given = environment.get(WORKERS)
    if given is None:
        return None
    groups = json.loads(given)
    return {each["name"]: Resources(each["cpus"], each["gpus"], each["memory_bytes"]) for each in groups}


def needs_of(udf: Any) -> Resources:
    """Returns the resources that an applier of a function reserves, without Geneva's own additions."""
    return Resources(udf.num_cpus or 0, udf.num_gpus or 0, udf.memory or 0)


def require(what: str, needs: Resources, found: dict[str, Resources] | None) -> None:
    """Raises JobError if no worker has enough resources."""
    if found is None or any(needs.fits(worker) for worker in found.values()):
        return
    present = "; ".join(f"{name}: {worker}" for name, worker in found.items()) or "none"
    raise JobError(
        f"{what} needs {needs}, and no worker of this Ray cluster has that ({present}): "
        "name another one in the request's cluster, or ask for one"
    )
