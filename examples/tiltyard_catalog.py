"""The catalog, as a job finds it: `tiltyard run` says where it is in the environment."""

import os

import lance.namespace


def properties() -> dict[str, str]:
    """What every Lance client needs to reach the catalog."""
    found = {"uri": os.environ["TILTYARD_CATALOG_URL"]}
    if key := os.environ.get("TILTYARD_API_KEY"):
        found["header.x-api-key"] = key
    return found


def catalog() -> lance.namespace.LanceNamespace:
    return lance.namespace.RestNamespace(**properties())
