"""The manifest of a function, or that of the request, determines the environment of its job."""

import json
import zipfile

import geneva
import pyarrow as pa
import pytest
from geneva.cluster.mgr import GenevaCluster
from geneva.manifest.builder import PipManifestBuilder
from jobs import ROWS, backfill, values, write_films
from runner import ended


def zipped(folder, name: str, inside: str, source: str) -> str:
    """Creates a zip with one file. Returns its URI."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(inside, source)
    return file.as_uri()


def test_a_function_runs_with_the_packages_modules_and_variables_of_its_manifest(catalog, runner, table, tmp_path):
    films = write_films(catalog, [f"manifest_{table[0]}"])
    # Ray removes the single folder of a zip and finds modules in it.
    module = zipped(tmp_path, "of_modules", "code/of_modules/__init__.py", "WORD = 'module'")
    packages = PipManifestBuilder.create("here").pip(["sortedcontainers==2.4.0"])
    manifest = packages.py_modules([module]).env_vars({"WORD": "variable"}).build()

    @geneva.udf(data_type=pa.string(), manifest=manifest)
    def described(id: int) -> str:
        import os

        import of_modules
        from sortedcontainers import SortedList

        return " ".join(SortedList([os.environ["WORD"], of_modules.WORD, str(id)]))

    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    db.open_table(films[0]).add_columns({"described": described})
    found = ended(catalog, runner, backfill(catalog, films, "described"))
    assert (found["status"], found.get("reason")) == ("Succeeded", None)
    assert values(catalog, films, "described") == [f"{number} module variable" for number in range(ROWS)]


@pytest.mark.weekly
def test_the_zips_of_a_request_are_where_its_function_runs(catalog, runner, table, tmp_path):
    films = write_films(catalog, [f"zips_{table[0]}"])
    # Geneva accepts zips only from such a folder, where its client stores them.
    workspace = zipped(tmp_path / "_geneva_uploads", f"workspace-{table[0]}", "of_workspace.py", "WORD = 'workspace'")

    @geneva.udf(data_type=pa.string())
    def described(id: int) -> str:
        import of_workspace

        return of_workspace.WORD

    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    db.open_table(films[0]).add_columns({"described": described})
    job = backfill(catalog, films, "described", manifest=json.dumps({"zips": [[workspace]]}))
    found = ended(catalog, runner, job)
    assert (found["status"], found.get("reason")) == ("Succeeded", None)
    assert values(catalog, films, "described") == ["workspace"] * ROWS


@pytest.mark.timeout(600)
@pytest.mark.weekly
def test_the_names_of_definitions_are_those_of_geneva(catalog, runner, table, tmp_path, monkeypatch):
    # Geneva uploads the whole working folder with a manifest.
    monkeypatch.chdir(tmp_path)
    films = write_films(catalog, [f"names_{table[0]}"])

    @geneva.udf(data_type=pa.string())
    def described(id: int) -> str:
        import os

        return os.environ["WORD"]

    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    opened = db.open_table(films[0])
    opened.add_columns({"described": described})
    db.define_manifest("m2", PipManifestBuilder.create("m2").env_vars({"WORD": "variable"}).build())
    db.define_cluster("small", GenevaCluster.create_kuberay("small").namespace("elsewhere").build())
    opened.backfill("described", manifest="m2", cluster="small")
    assert values(catalog, films, "described") == ["variable"] * ROWS
    with pytest.raises(Exception, match='manifest: "m3" is not a definition'):
        opened.backfill("described", where="id > 1", manifest="m3")
    listed = catalog.get("/management/v1/namespace/$/job_definition/list")
    assert (listed["manifests"], listed["clusters"]) == (["m2"], ["small"])
