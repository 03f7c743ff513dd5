"""The parts of a job of a Tiltyard catalog that its code uses inside Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltyard.connection import ConnectionSettingError, connection

if TYPE_CHECKING:
    from lance.namespace import LanceNamespace


def catalog() -> LanceNamespace:
    """Returns the catalog of the current job for Lance's clients, on the driver and in tasks.

    Pass it as `namespace_client` to `lance.dataset` and `lance.write_dataset`. It is cheap to create and must not be
    pickled: each task calls this function itself.

    Raises ConnectionSettingError if the environment does not specify the catalog or a key.
    """
    from lance.namespace import RestNamespace

    return RestNamespace(**properties())


def properties() -> dict[str, str]:
    """Returns the URL of the catalog and the key under the names of Lance's clients.

    They are for clients that connect themselves: `namespace_client_properties` of `geneva.connect`, or the second
    argument of `lancedb.connect_namespace("rest", ...)`. They contain a secret: do not print them.

    Raises ConnectionSettingError like `catalog`.
    """
    return connection().properties


__all__ = ["ConnectionSettingError", "catalog", "properties"]
