"""Distribution of work among the tasks of the job's Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tiltyard.job import needs

Item = TypeVar("Item")
Done = TypeVar("Done")

TASK = needs.Resources(cpus=1)
DRIVER_CPUS = 1
# The default number of tasks on a Ray that creates nodes on demand, equal to Geneva's.
AUTOSCALED_TASKS = 8


def task_slots(wanted: int | None, what: str = "a task", resources: needs.Resources = TASK) -> int:
    """Returns the number of concurrent tasks with one CPU each, at most the wanted number.

    Raises JobError if no worker of the Ray cluster has the resources of one.
    """
    import ray

    ray.init(ignore_reinit_error=True, log_to_driver=True)
    found = needs.workers()
    if found is not None:
        needs.require(what, resources, found)
        return AUTOSCALED_TASKS if wanted is None else max(1, wanted)
    present = ray.cluster_resources()
    slots = max(1, int(present.get("CPU", 1)) - DRIVER_CPUS)
    if resources.gpus:
        here = needs.Resources(present.get("CPU", 0), present.get("GPU", 0), present.get("memory", 0))
        needs.require(what, resources, {"this Ray": here})
        slots = min(slots, int(here.gpus))
    return slots if wanted is None else max(1, min(wanted, slots))


def run_tasks(task: Callable[[Item], Done], items: Sequence[Item], at_once: int) -> Iterator[Done]:
    """Runs a module function on each item and yields results in the order of completion. Raises errors of tasks."""
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
    """Divides items into at most `count` groups of similar size, none of which is empty."""
    count = min(count, len(items))
    return [list(items[number::count]) for number in range(count)]
