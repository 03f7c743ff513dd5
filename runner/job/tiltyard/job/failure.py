"""Classification of a job's failure: whether another attempt may succeed, and the reason to report."""

from __future__ import annotations

import re

from tiltyard.job.catalog_job import CatalogUnavailable
from tiltyard.job.job import JobError

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
PASSING = re.compile(r"connect|connection|timed? ?out|unavailable|slow down|\b(?:408|425|429|50\d)\b", re.IGNORECASE)
# The kinds of errors of Rust's HTTP client, which Lance's clients contain: a request was not sent, or its response not
# received or read. Another kind is that of an invalid request.
TRANSPORT = re.compile(r"reqwest::Error \{ kind: (?:Request|Body|Decode|Connect|Upgrade)\b|error sending request")
# The errors of Lance's clients for an unavailable server, which Geneva passes on as text.
UNAVAILABLE = re.compile(r"\blance_namespace\.errors\.(?:InternalError|ServiceUnavailableError|ThrottlingError)\b")

# Geneva's errors for a process that ended, whose text describes a task of Geneva.
ENDED = re.compile(r"^(FatalWorker(?:Crash|Exit)Error): .*", re.DOTALL)
ENDED_HINT = "Does the function exit, crash, or exceed the memory of its worker?"
# Geneva's error for rows that one of several processes of a worker did not return in time. They may only be slow.
STALLED = re.compile(r"^FatalWorkerCrashError: .*\bhas not returned in (\d+)s.*", re.DOTALL)
STALLED_REASON = (
    r"some rows were not done after \1 s. Set the limit in seconds with GENEVA_APPLIER_WORKER_STALL_TIMEOUT_S in "
    "env_vars of the manifest, set a smaller checkpoint_size, or leave intra_applier_concurrency out"
)

# The location in Lance's sources that ends its errors, on the machine that compiled it.
SOURCE = re.compile(r",? /\S+\.rs:\d+:\d+")

CAUSED_BY = " | caused by "
# A frame of a traceback, with its code and the marks below it.
FRAME = re.compile(r'^ +File "[^"\n]*", line \d+, in .*\n(?:    .*\n)*', re.MULTILINE)


def is_passing(error: BaseException) -> bool:
    """Reports whether the machines or the catalog failed instead of the job itself."""
    from ray import exceptions as ray

    causes = _causes(error)
    # Its text may contain an error of a user's function, such as one of the network.
    if any(isinstance(each, JobError) for each in causes):
        return False
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
    if any(isinstance(each, (*lost, CatalogUnavailable)) for each in causes):
        return True
    if any(_is_unavailability(each) for each in causes):
        return True
    kind, _, text = _last_line_of(error).partition(": ")
    may_pass = kind in PASSING_KINDS or text.startswith(NAMESPACE_ERROR)
    return kind in LOST_KINDS or (may_pass and PASSING.search(text) is not None)


def _is_unavailability(error: BaseException) -> bool:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    text = _text_of(error)
    return any(pattern.search(each) for pattern in (UNAVAILABLE, TRANSPORT) for each in (name, text))


def reason_of(error: BaseException) -> str:
    """Returns the innermost error with all lines of its text, or the last line of an error of Ray.

    Ray's own text contains the whole stack trace of the worker.
    """
    reason = STALLED.sub(STALLED_REASON, SOURCE.sub("", _reason_of(error)))
    return ENDED.sub(rf"\1: its process ended. {ENDED_HINT}", reason)


def _reason_of(error: BaseException) -> str:
    innermost = _innermost(error)
    text = _text_of(innermost).strip()
    # Geneva raises the error of a task as text, with the traceback of the worker before the error itself.
    frames = list(FRAME.finditer(text))
    if frames and CAUSED_BY not in text and (error_of_task := text[frames[-1].end() :].strip()):
        return error_of_task
    is_wrapped = CAUSED_BY in text or type(innermost).__module__.partition(".")[0] == "ray"
    return _last_line_of(error) if is_wrapped or not text else f"{type(innermost).__name__}: {text}"


def _last_line_of(error: BaseException) -> str:
    innermost = _innermost(error)
    # Geneva reports the error of a worker as text after a description of the task.
    text = _text_of(innermost).strip()
    if CAUSED_BY in text:
        return text.rsplit(CAUSED_BY, 1)[1].removeprefix("builtins.")
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(innermost).__name__}: {lines[-1].strip()}" if lines else type(innermost).__name__


def _text_of(error: BaseException) -> str:
    """Returns the text of an error. The class of a user's error may fail to return one."""
    try:
        return str(error)
    except Exception:
        return ""


def _innermost(error: BaseException) -> BaseException:
    causes = _causes(error)
    # Its own text says what to do, unlike that of its cause.
    if of_job := [each for each in causes if isinstance(each, JobError)]:
        return of_job[0]
    return _cause_in(error) or causes[-1]


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        context = None if current.__suppress_context__ else current.__context__
        current = _cause_in(current) or current.__cause__ or context
    return chain


def _cause_in(error: BaseException) -> BaseException | None:
    """Returns the cause that Ray's errors have as an attribute. Errors of functions may have any other value there."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else None
