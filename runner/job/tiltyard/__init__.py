"""What a job of a Tiltyard catalog uses inside Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltyard.connection import connection

if TYPE_CHECKING:
    from lance.namespace import LanceNamespace


def catalog() -> LanceNamespace:
    """The catalog of the job that this code is part of, for Lance's clients, on the driver and in tasks.

    Raises ConnectionSettingError when no job and no environment says where it is.
    """
    from lance.namespace import RestNamespace

    return RestNamespace(**connection().properties)


__all__ = ["catalog"]
