import base64
import contextlib
import functools
import itertools
import os
import subprocess
import urllib.request

import lancedb
import pytest
from catalog import PROJECT, Catalog, free_port, wait_until
from clouds import (
    CLOUDS,
    Cloud,
    FaultyPlace,
    Place,
    gcs_environment,
    gcs_options,
    list_gcs_keys,
    list_s3_keys,
    s3_environment,
    s3_options,
)
from faults import FaultyFiles, faulty_proxy
from jobs import write_films
from lance_namespace_urllib3_client import ApiClient, Configuration
from runner import Runner

# The log of a catalog with a failing store would be long.
SILENT = {"TILTYARD_LOG_LEVEL": "silent"}


def pytest_configure() -> None:
    """Aborts a run that cannot succeed, with the correct command."""
    if "TILTYARD_TEST_NODE" not in os.environ:
        pytest.exit("run these tests by npm run test:interop", returncode=1)


@contextlib.contextmanager
def checked_catalog(tmp_path_factory, **more: str):
    """A catalog with secrets and short delays, and more settings. It fails if clients have sent it unknown fields."""
    log = tmp_path_factory.mktemp("log") / "log"
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"test:{base64.b64encode(os.urandom(32)).decode()}\n")
    settings = {
        "TILTYARD_LOG_LEVEL": "info",
        "TILTYARD_AUTOMATION_DELAY": "1s",
        "TILTYARD_SECRETS_KEY_FILE": str(keys),
        **more,
    }
    with Catalog(tmp_path_factory.mktemp("data dir"), settings, log=log) as running:
        yield running
    lines = [line for line in log.read_text().splitlines() if '"ignored_fields"' in line]
    assert lines == [], "clients send fields that the catalog ignores"


@pytest.fixture(scope="session")
def catalog(tmp_path_factory):
    """A catalog whose tables are in the file system, below a folder with a space in its name. Its clients must send
    only known fields."""
    with checked_catalog(tmp_path_factory) as running:
        yield running


names = itertools.count(1)


@pytest.fixture
def namespace(catalog):
    """Returns a namespace that no other test uses."""
    name = f"ns{next(names)}"
    catalog.post(f"/v1/namespace/{name}/create")
    return name


@pytest.fixture
def remote(catalog):
    """LanceDB's remote client."""
    return lancedb.connect("db://films", api_key=catalog.key, host_override=catalog.url)


@pytest.fixture
def table(namespace):
    """Returns the identifier of a table that does not exist yet."""
    return [namespace, "table"]


@pytest.fixture
def films(catalog, table):
    """A table of films in four fragments."""
    return write_films(catalog, table)


@pytest.fixture(scope="session")
def runner(catalog, tmp_path_factory):
    """Runs the jobs of the catalog on a Ray of this machine. No process waits for jobs, because few of them use Geneva."""
    running = Runner(catalog, tmp_path_factory.mktemp("runner") / "log").start("--standby-minutes", "0")
    yield running
    running.stop()


@pytest.fixture
def generated_client(catalog):
    """The client that is generated from the protocol's own document."""
    with ApiClient(Configuration(host=catalog.url)) as client:
        client.set_default_header("x-api-key", catalog.key)
        yield client


@pytest.fixture(scope="session")
def s3():
    """The address of an S3 server with an empty bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = str(PROJECT / "test/interop/python/aws_server.py")
    with running([os.environ["TILTYARD_TEST_PYTHON"], server, "-H", "127.0.0.1", "-p", str(port)], f"{url}/moto-api/"):
        request = urllib.request.Request(f"{url}/bucket", method="PUT")
        urllib.request.urlopen(request).close()
        yield url


@pytest.fixture(scope="session")
def gcs(tmp_path_factory):
    """The address of a Google Cloud Storage server with an empty bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    buckets = f"{url}/storage/v1/b?project=test"
    server = PROJECT / "test/interop/gcs-server.ts"
    program = [os.environ["TILTYARD_TEST_NODE"], str(server), str(port), str(tmp_path_factory.mktemp("gcs"))]
    with running(program, buckets):
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(buckets, data=b'{"name": "bucket"}', headers=headers)
        urllib.request.urlopen(request).close()
        yield url


@pytest.fixture(scope="session")
def s3_cloud(s3, tmp_path_factory):
    with Catalog(tmp_path_factory.mktemp("s3"), s3_environment(s3)) as catalog:
        catalog.post("/v1/namespace/ns/create")
        yield Cloud(catalog, s3_options(s3), list_keys=functools.partial(list_s3_keys, s3))


@pytest.fixture(scope="session")
def gcs_cloud(gcs, tmp_path_factory):
    with Catalog(tmp_path_factory.mktemp("gcs data"), gcs_environment(gcs)) as catalog:
        catalog.post("/v1/namespace/ns/create")
        yield Cloud(catalog, gcs_options(gcs), list_keys=functools.partial(list_gcs_keys, gcs))


@pytest.fixture(scope="session")
def faulty_files(tmp_path_factory):
    """A catalog on a file system with failing calls."""
    faults = FaultyFiles(tmp_path_factory.mktemp("faulty") / "files")
    with Catalog(tmp_path_factory.mktemp("faulty data"), {**faults.environment, **SILENT}) as catalog:
        yield FaultyPlace(catalog, faults=faults)


@contextlib.contextmanager
def faulty_cloud(name, url, folder):
    """A catalog that accesses a cloud's server through a faulty proxy. Clients access it directly."""
    environment_of, options_of, steps = CLOUDS[name]
    with faulty_proxy(url, steps) as proxy, Catalog(folder, {**environment_of(proxy.url), **SILENT}) as catalog:
        yield FaultyPlace(catalog, options_of(url), faults=proxy)


@pytest.fixture(scope="session")
def faulty_s3(s3, tmp_path_factory):
    with faulty_cloud("s3", s3, tmp_path_factory.mktemp("faulty s3")) as place:
        yield place


@pytest.fixture(scope="session")
def faulty_gcs(gcs, tmp_path_factory):
    with faulty_cloud("gcs", gcs, tmp_path_factory.mktemp("faulty gcs")) as place:
        yield place


@pytest.fixture(params=["faulty_files", "faulty_s3", "faulty_gcs"])
def faulty(request) -> FaultyPlace:
    """Each of the possible locations of tables in turn, with failing steps."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def files(catalog):
    return Place(catalog)


@pytest.fixture(params=["files", "s3_cloud", "gcs_cloud"])
def place(request) -> Place:
    """Each of the possible locations of tables in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def postgres():
    """The URL of an empty PostgreSQL database."""
    program = [os.environ["TILTYARD_TEST_NODE"], str(PROJECT / "test/support/postgres-program.ts")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert url, "PostgreSQL did not start"
        # The server exits with its standard input.
        yield url


@contextlib.contextmanager
def running(program: list[str], url: str):
    """Runs a server until the end of the block. The block begins when the server responds."""
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: answers(url), f"the start of {program[0]}")
            yield
        finally:
            server.terminate()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
