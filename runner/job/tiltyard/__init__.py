"""What a job of a Tiltyard catalog uses inside Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltyard.connection import ConnectionSettingError, connection

if TYPE_CHECKING:
    from lance.namespace import LanceNamespace


def catalog() -> LanceNamespace:
    """The catalog of the job that this code is part of, for Lance's clients, on the driver and in tasks.

    Takes the place of `namespace_client` in `lance.dataset` and `lance.write_dataset`. It is cheap to make, and is not
    to be pickled: each task calls this for itself.

    Raises ConnectionSettingError when the environment does not say where the catalog is, or has no key.
    """
    from lance.namespace import RestNamespace

    return RestNamespace(**properties())


def properties() -> dict[str, str]:
    """The URL of the catalog and the key, under the names that Lance's clients have for them.

    For clients that connect by themselves: `namespace_client_properties` of `geneva.connect`, the second argument of
    `lancedb.connect_namespace("rest", ...)`. It has a secret: do not print it.

    Raises ConnectionSettingError as `catalog` does.
    """
    return connection().properties


__all__ = ["ConnectionSettingError", "catalog", "properties"]
