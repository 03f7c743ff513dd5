"""
LanceDB's crate for Rust, unmodified: `test/interop/crate` calls its operations, with and without a runner. Cargo compiles it for half
an hour of processor time. Later runs reuse the result.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from catalog import PROJECT
from conftest import checked_catalog

PACKAGE = PROJECT / "test/interop/crate"
BUILD_SECONDS = 3 * 3600
RUN_SECONDS = 1800
pytestmark = [pytest.mark.weekly, pytest.mark.timeout(BUILD_SECONDS + 2 * RUN_SECONDS)]


@pytest.fixture(scope="module")
def program():
    """Builds the program. Its dependencies need protoc, of Debian's package protobuf-compiler."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve()
    target = cache / "tiltyard/crate"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--locked"], cwd=PACKAGE, env=environment, check=True, timeout=BUILD_SECONDS)
    return target / "debug/tiltyard-crate-test"


def run(program: Path, mode: str, catalog, namespace: str) -> None:
    # A Function without packages runs with the Python of the runner, which is that of the tests.
    python = ".".join(map(str, sys.version_info[:2]))
    where = {"URL": catalog.url, "KEY": catalog.key, "NAMESPACE": namespace, "PYTHON_VERSION": python}
    subprocess.run([program, mode], env={**os.environ, **where}, check=True, timeout=RUN_SECONDS)


def test_operations_succeed_without_a_runner(program, tmp_path_factory):
    with checked_catalog(tmp_path_factory, TILTYARD_AUTO_REFRESH="on") as catalog:
        catalog.post("/v1/namespace/films/create")
        run(program, "operations", catalog, "films")
        assert catalog.get("/v1/table")["tables"] == [], "the program drops its tables"


def test_databases_are_namespaces(program, tmp_path_factory):
    with checked_catalog(tmp_path_factory, TILTYARD_REMOTE_DATABASES="on") as catalog:
        run(program, "databases", catalog, "")


def test_refreshes_run_to_their_end(program, catalog, namespace, runner):
    run(program, "refreshes", catalog, namespace)
