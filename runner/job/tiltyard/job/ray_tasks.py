"""Work that is divided among the tasks of the job's Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tiltyard.job import needs

Item = TypeVar("Item")
Done = TypeVar("Done")

TASK = needs.Resources(cpus=1)
DRIVER_CPUS = 1
# On a Ray whose nodes are made when they are needed, where a request says nothing: as many as Geneva takes.
AUTOSCALED_TASKS = 8


def room(wanted: int | None) -> int:
    """How many tasks of one CPU each run at a time, at most as many as are wanted.

    Raises JobError where no worker of the Ray cluster has a CPU.
    """
    import ray

    ray.init(ignore_reinit_error=True, log_to_driver=True)
    found = needs.workers()
    if found is not None:
        needs.require("a task", TASK, found)
        return AUTOSCALED_TASKS if wanted is None else max(1, wanted)
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)) - DRIVER_CPUS)
    return cpus if wanted is None else max(1, min(wanted, cpus))


def run_tasks(task: Callable[[Item], Done], items: Sequence[Item], at_once: int) -> Iterator[Done]:
    """Runs a function of a module on each item, and yields what is done as it is done. Raises what a task raises."""
    import ray

    remote = ray.remote(num_cpus=1)(task)
    waiting = list(reversed(items))
    running: list[object] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(remote.remote(waiting.pop()))
        done, running = ray.wait(running)
        yield from ray.get(done)


def groups_of(items: Sequence[Item], count: int) -> list[list[Item]]:
    """Divides items into at most so many groups of like size, none of them empty."""
    count = min(count, len(items))
    return [list(items[number::count]) for number in range(count)]
