"""Classification of a job's failure: whether another attempt may succeed, and the reason to report."""

from __future__ import annotations

import re

from tiltyard.job.catalog_job import CatalogUnavailable

# The errors of a machine that disappears, in Python and in Geneva.
LOST_KINDS = (
    "ConnectionError",
    "FatalWorkerCrashError",
    "FatalWorkerExitError",
    "FatalWorkerHardwareError",
    "FatalWorkerTransientError",
)
# The errors of Lance's clients that may indicate an unavailable server. Only their text distinguishes it.
PASSING_KINDS = (
    "InternalError",
    "OSError",
    "RuntimeError",
    "ServiceUnavailableError",
    "ThrottlingError",
    "TimeoutError",
)
# The beginning of the text of errors of Lance's client for the catalog. Their kind varies and may be ValueError.
NAMESPACE_ERROR = "Namespace error: "
PASSING = re.compile(r"connect|connection|timed? ?out|unavailable|slow down|\b50[234]\b", re.IGNORECASE)

CAUSED_BY = " | caused by "


def is_passing(error: BaseException) -> bool:
    """Reports whether the machines or the catalog failed instead of the job itself."""
    from ray import exceptions as ray

    lost = (
        ray.ActorDiedError,
        ray.ActorUnavailableError,
        ray.NodeDiedError,
        ray.WorkerCrashedError,
        ray.OutOfMemoryError,
        ray.LocalRayletDiedError,
        ray.ObjectLostError,
        ray.OwnerDiedError,
        ray.RaySystemError,
        ray.RpcError,
    )
    if any(isinstance(each, (*lost, CatalogUnavailable)) for each in _causes(error)):
        return True
    kind, _, text = reason_of(error).partition(": ")
    may_pass = kind in PASSING_KINDS or text.startswith(NAMESPACE_ERROR)
    return kind in LOST_KINDS or (may_pass and PASSING.search(text) is not None)


def reason_of(error: BaseException) -> str:
    """Returns the innermost error as one line. Ray's own text contains the whole stack trace of the worker."""
    cause = getattr(error, "cause", None)
    innermost = cause if isinstance(cause, BaseException) else _causes(error)[-1]
    # Geneva reports the error of a worker as text after a description of the task.
    text = str(innermost).strip()
    if CAUSED_BY in text:
        return text.rsplit(CAUSED_BY, 1)[1].removeprefix("builtins.")
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(innermost).__name__}: {lines[-1].strip()}" if lines else type(innermost).__name__


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        context = None if current.__suppress_context__ else current.__context__
        current = getattr(current, "cause", None) or current.__cause__ or context
    return chain
