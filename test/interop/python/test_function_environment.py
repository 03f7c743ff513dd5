"""The Python environments of LanceDB Functions, which uv creates with packages of PyPI, without a catalog and without Ray."""

import sys

import pyarrow as pa
import pytest
from tiltyard.job.function_child import MODULE, FunctionFailure, Start
from tiltyard.job.function_environment import Environment, resolved
from tiltyard.job.function_process import FunctionProcess, schema_text

TITLE = "f version 1"
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
ANOTHER = "3.10" if OWN != "3.10" else "3.11"
SOURCE = """
def f(value: int) -> str:
    import six
    try:
        import lance
        return "the packages of the runner"
    except ImportError:
        return f"six {six.__version__}"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working folder of the job."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_imports_its_own_packages_and_not_those_of_the_runner(folder):
    environment = Environment(resolved(TITLE, OWN, ["six<1.17"]))
    output = schema_text(pa.schema([pa.field("value", pa.string())]))
    start = Start(TITLE, "f", {f"{MODULE}.py": SOURCE}, ["value"], {}, output)
    process = FunctionProcess(start, {}, python=environment.python)
    values, _ = process.compute(pa.record_batch({"value": [1]}))
    process.close()
    environment.close()
    assert values.to_pylist() == ["six 1.16.0"]
    assert list(folder.iterdir()) == []


def test_all_workers_install_the_versions_that_were_resolved_once():
    found = resolved(TITLE, OWN, ["six<1.17"])
    assert found.pins.split()[1:] == ["six==1.16.0"]
    assert found.pins.startswith("pyarrow==")


def test_a_function_without_packages_uses_the_python_of_the_runner():
    assert resolved(TITLE, OWN, []) is None


@pytest.mark.parametrize(
    ("packages", "lines"),
    [
        (["tiltyard-no-such-package"], "tiltyard-no-such-package was not found"),
        (["six==1.16", "six==1.17"], "requirements are unsatisfiable"),
        # It has no wheel, and its build would run its code with the credentials of the worker.
        (["docopt==0.6.2"], "has no usable wheels"),
    ],
)
def test_packages_that_cannot_be_installed_fail_with_the_lines_of_uv(packages, lines):
    with pytest.raises(FunctionFailure, match=f"the packages of {TITLE} for Python {OWN} were not found:") as failure:
        resolved(TITLE, OWN, packages)
    assert lines in " ".join(str(failure.value).split())


def test_a_python_that_the_machine_does_not_have_is_named(folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(folder))
    with pytest.raises(FunctionFailure, match=rf"No interpreter found for Python {ANOTHER}"):
        resolved(TITLE, ANOTHER, [])
