"""The locations of tables: files, S3 or Google Cloud Storage."""

import json
import re
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Callable

from catalog import Catalog, those_that_stay
from faults import GCS_STEPS, S3_STEPS, Faults


@dataclass
class Place:
    """A catalog with the storage of its warehouse."""

    catalog: Catalog
    storage_options: dict[str, str] | None = None
    """The storage options that a Lance client needs to access the warehouse directly."""


@dataclass(kw_only=True)
class Cloud(Place):
    """A catalog whose warehouse is in a cloud."""

    list_keys: Callable[[str], list[str]]
    """Returns the first thousand keys of the bucket with a prefix."""

    def keys(self, table: str) -> list[str]:
        """Returns the keys of the objects of a table in the namespace ns."""
        return self.list_keys(f"ware house/ns/{table}-")

    def staged(self, table: str) -> list[str]:
        """Returns the remaining staged manifests of a table."""
        return those_that_stay(lambda: [key for key in self.keys(table) if ".manifest-" in key])


@dataclass(kw_only=True)
class FaultyPlace(Place):
    """A catalog with failing steps in its warehouse."""

    faults: Faults


def s3_options(url: str) -> dict[str, str]:
    """Returns the options that a Lance client needs to access an S3 server."""
    return {
        "aws_endpoint": url,
        "aws_region": "us-east-1",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
    }


def s3_environment(url: str) -> dict[str, str]:
    """Returns the settings that a catalog needs for a warehouse in an S3 server."""
    return {
        "TILTYARD_WAREHOUSE": "s3://bucket/ware house",
        "TILTYARD_S3_FORCE_PATH_STYLE": "1",
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def list_s3_keys(url: str, prefix: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/bucket?list-type=2&prefix={urllib.parse.quote(prefix)}") as answer:
        return re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())


def gcs_account(url: str) -> str:
    """Returns the key of a service account with which Lance's library uses an emulator."""
    return json.dumps(
        {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    )


def gcs_options(url: str) -> dict[str, str]:
    """Returns the options that a Lance client needs to access a Google Cloud Storage server."""
    return {"google_service_account_key": gcs_account(url), "allow_http": "true"}


def gcs_environment(url: str) -> dict[str, str]:
    """Returns the settings that a catalog needs for a warehouse in a Google Cloud Storage server."""
    # Google's library for Node expects the path of the API in the emulator's address.
    return {
        "TILTYARD_WAREHOUSE": "gs://bucket/ware house",
        "STORAGE_EMULATOR_HOST": f"{url}/storage/v1",
        # Lance's own library, with which the catalog opens datasets, does not support an emulator.
        "GOOGLE_SERVICE_ACCOUNT_KEY": gcs_account(url),
        "ALLOW_HTTP": "true",
    }


def list_gcs_keys(url: str, prefix: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/storage/v1/b/bucket/o?prefix={urllib.parse.quote(prefix)}") as listing:
        return [each["name"] for each in json.load(listing).get("items", [])]


CLOUDS = {"s3": (s3_environment, s3_options, S3_STEPS), "gcs": (gcs_environment, gcs_options, GCS_STEPS)}
"""The settings of a catalog and of a client for each cloud's server, and the catalog's steps there."""
