"""The catalog of a job. `tiltyard run` sets its address in the environment."""

import os

import lance.namespace


def properties() -> dict[str, str]:
    """Returns the properties that every Lance client needs to connect to the catalog."""
    found = {"uri": os.environ["TILTYARD_CATALOG_URL"]}
    if key := os.environ.get("TILTYARD_API_KEY"):
        found["header.x-api-key"] = key
    return found


def catalog() -> lance.namespace.LanceNamespace:
    return lance.namespace.RestNamespace(**properties())
