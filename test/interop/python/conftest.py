import itertools
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from catalog import Catalog, free_port, wait_until


@pytest.fixture(scope="session")
def catalog(tmp_path_factory):
    """A catalog whose tables are in the file system, below a folder with a space in its name."""
    running = Catalog(tmp_path_factory.mktemp("data dir")).start()
    yield running
    running.stop()


names = itertools.count(1)


@pytest.fixture
def namespace(catalog):
    """A namespace that no other test uses."""
    name = f"ns{next(names)}"
    catalog.post(f"/v1/namespace/{name}/create")
    return name


@pytest.fixture
def table(namespace):
    """The identifier of a table that does not exist yet."""
    return [namespace, "table"]


@pytest.fixture(scope="session")
def s3():
    """An S3 server with a bucket, as the options that Lance takes and the environment that the service takes."""
    port = free_port()
    server = subprocess.Popen(
        [os.environ["TILTYARD_TEST_PYTHON"], "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/moto-api/"), "the start of moto")
    request = urllib.request.Request(f"{url}/bucket", method="PUT")
    urllib.request.urlopen(request).close()
    yield url
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def gcs(tmp_path_factory):
    """The address of a Google Cloud Storage server with a bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    root: Path = tmp_path_factory.mktemp("gcs")
    server = subprocess.Popen(
        [
            os.environ["TILTYARD_TEST_FAKE_GCS_SERVER"],
            *["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-filesystem-root", str(root)],
            *["-external-url", url, "-public-host", f"127.0.0.1:{port}"],
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: answers(f"{url}/storage/v1/b?project=test"), "the start of fake-gcs-server")
    request = urllib.request.Request(
        f"{url}/storage/v1/b?project=test",
        data=b'{"name": "bucket"}',
        headers={"content-type": "application/json"},
    )
    urllib.request.urlopen(request).close()
    yield url
    server.kill()
    server.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
