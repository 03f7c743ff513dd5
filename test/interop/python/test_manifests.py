"""Where a function runs: its manifest makes the environment of its job, the one that it was added with or that of the request."""

import json
import zipfile

import geneva
import pyarrow as pa
from geneva.manifest.builder import PipManifestBuilder
from jobs import ROWS, backfill, values, write_films
from runner import ended


def zipped(folder, name: str, inside: str, source: str) -> str:
    """The URI of a zip that has one file."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(inside, source)
    return file.as_uri()


def test_a_function_runs_with_the_packages_modules_and_variables_of_its_manifest(catalog, runner, table, tmp_path):
    films = write_films(catalog, [f"manifest_{table[0]}"])
    # Ray takes the one folder that a zip has away, and looks for modules in it.
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
    assert (found["status"], found["properties"].get("reason")) == ("Succeeded", None)
    assert values(catalog, films, "described") == [f"{number} module variable" for number in range(ROWS)]


def test_the_zips_of_a_request_are_where_its_function_runs(catalog, runner, table, tmp_path):
    films = write_films(catalog, [f"zips_{table[0]}"])
    # Geneva takes zips from such a folder alone, where its client puts them.
    workspace = zipped(tmp_path / "_geneva_uploads", f"workspace-{table[0]}", "of_workspace.py", "WORD = 'workspace'")

    @geneva.udf(data_type=pa.string())
    def described(id: int) -> str:
        import of_workspace

        return of_workspace.WORD

    db = geneva.connect("db://films", api_key=catalog.key, host_override=catalog.url)
    db.open_table(films[0]).add_columns({"described": described})
    job = backfill(catalog, films, "described", manifest=json.dumps({"zips": [[workspace]]}))
    found = ended(catalog, runner, job)
    assert (found["status"], found["properties"].get("reason")) == ("Succeeded", None)
    assert values(catalog, films, "described") == ["workspace"] * ROWS
