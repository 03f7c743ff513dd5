"""The Python environments of LanceDB Functions, which uv creates with packages of PyPI, without a catalog and without Ray."""

import base64
import contextlib
import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from tiltyard.job.function_child import MODULE, FunctionFailure, Start
from tiltyard.job.function_environment import Environment, Limits, _uv, bake, resolved
from tiltyard.job.function_process import FunctionProcess, schema_text
from tiltyard.job.job import Job, JobError

TITLE = "f version 1"
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
# No index has a package of this name.
HOSTILE = "tiltyard_no_such_package"
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


def found_python(monkeypatch) -> str | None:
    """Returns a minor version of Python on this machine that is not that of the runner. Pyenv's shims only find the
    versions that its user has selected."""
    folders = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin")
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    for version in sorted({"3.10", "3.11", "3.12", "3.13"} - {OWN}, reverse=True):
        with contextlib.suppress(FunctionFailure):
            _uv(["python", "find", version], "", "")
            return version
    return None


def test_a_function_with_packages_runs_in_another_python_of_the_machine(monkeypatch):
    version = found_python(monkeypatch)
    if version is None:
        pytest.skip("this machine has one minor version of Python")
    source = '''
def f(value: int) -> str:
    import sys
    import numpy
    return f"{sys.version_info.major}.{sys.version_info.minor} {numpy.arange(value).sum()}"
'''
    environment = Environment(resolved(TITLE, version, ["numpy"]))
    output = schema_text(pa.schema([pa.field("value", pa.string())]))
    process = FunctionProcess(
        Start(TITLE, "f", {f"{MODULE}.py": source}, ["value"], {}, output), {}, python=environment.python
    )
    assert process.compute(pa.record_batch({"value": [4]}))[0].to_pylist() == [f"{version} 6"]
    process.close()
    environment.close()


def test_bake_installs_the_packages_and_leaves_nothing(folder, capsys):
    assert bake(job_of("six==1.16.0", "idna"), print) == {"packages": 3}
    assert "six==1.16.0" in capsys.readouterr().out
    assert list(folder.iterdir()) == []


def test_bake_fails_with_the_lines_of_uv():
    with pytest.raises(JobError, match=r"(?s)packages of f version 1 .*tiltyard-no-such-package was not found"):
        bake(job_of("tiltyard-no-such-package"), print)


def test_a_configuration_in_a_parent_folder_has_no_effect(folder, monkeypatch):
    (folder / "uv.toml").write_text('[pip]\nindex-url = "http://127.0.0.1:9/simple"\n')
    (folder / "job").mkdir()
    monkeypatch.chdir(folder / "job")
    assert "six==1.16.0" in resolved(TITLE, OWN, ["six<1.17"]).pins


@pytest.fixture
def packages(tmp_path_factory, monkeypatch):
    """A function that adds a wheel to a source of packages: its name, its files and the lines of its metadata."""
    wheels = tmp_path_factory.mktemp("wheels")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))

    def add(name, files, *metadata):
        info = f"{name}-1.dist-info"
        records = {
            **files,
            f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1", *metadata, ""]),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        rows = [f"{path},sha256={digest(content)},{len(content)}" for path, content in records.items()]
        with zipfile.ZipFile(wheels / f"{name}-1-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in {**records, f"{info}/RECORD": "\n".join([*rows, f"{info}/RECORD,,"])}.items():
                archive.writestr(path, content)

    return add


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()


def job_of(*packages):
    parameters = {"version": 1, "python_version": OWN, "packages": list(packages)}
    return Job("a$1", "CreateFunction", ["a", "f"], parameters, None, 0, 1, "claim")


@pytest.mark.parametrize(
    "address", ["file:///tmp/other.whl", "https://127.0.0.1:9/other-1-py3-none-any.whl", "git+file:///tmp/x"]
)
def test_a_package_cannot_require_a_file_or_an_address(packages, address):
    packages(HOSTILE, {}, f"Requires-Dist: other @ {address}")
    with pytest.raises(JobError, match="URL dependenc"):
        bake(job_of(HOSTILE), print)


def test_code_of_packages_does_not_run_at_the_registration(packages, folder):
    mark = folder / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    packages(HOSTILE, {"hostile.pth": f"import os; {code}", "sitecustomize.py": code, "hostile/__init__.py": code})
    assert bake(job_of(HOSTILE), print) == {"packages": 2}
    assert not mark.exists()


@pytest.mark.parametrize(
    "path",
    ["../../../../../escaped", "/tmp/tiltyard-escaped", "tiltyard_no_such_package-1.data/data/../../../../escaped"],
)
def test_a_package_writes_only_into_its_environment(packages, folder, path):
    packages(HOSTILE, {path: "escaped"})
    with contextlib.suppress(JobError):
        bake(job_of(HOSTILE), print)
    assert not [each for each in folder.parent.rglob("*escaped*") if each.is_file()]
    assert not Path("/tmp/tiltyard-escaped").exists()
    assert not [each for each in folder.parent.parent.rglob("escaped") if each.is_file()]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(written_bytes=10_000, pause_seconds=0.01), "wrote more than"),
        (Limits(memory_bytes=10_000, pause_seconds=0.01), "used more than"),
        (Limits(seconds=0.05, pause_seconds=0.01), "took longer than"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the resources of a process")
def test_uv_is_stopped_at_its_limits(packages, folder, limits, words):
    # A wheel of some KiB that would fill the disk.
    packages(HOSTILE, {f"bomb/{number}": "0" * 10_000_000 for number in range(20)})
    _uv(["venv", str(folder / "python"), "--python", OWN], "", "venv")
    install = ["pip", "install", "--python", str(folder / "python/bin/python"), "--no-deps", HOSTILE]
    with pytest.raises(FunctionFailure, match=f"it failed: uv was stopped because it {words}"):
        _uv(install, "", "it failed", limits)
