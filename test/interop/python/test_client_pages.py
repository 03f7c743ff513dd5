"""The examples of docs/clients as a reader would paste them: each page runs and prints the shown output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from catalog import PROJECT
from pages import PAGES, examples
from spark import JVM_OPTIONS, spark_sql

ENGINES = {"daft", "duckdb", "polars"}
SLOW = {"functions", "geneva", "lance-ray", "ray-data"}
# test_clients.py calls the same clients.
WEEKLY = {"lance-ray", "ray-data"}
# The pages whose jobs a runner executes.
RUN = {"functions", "geneva"}
SHOWN = {"text", "properties"}
SECONDS = 600


def marks(page: Path) -> list[pytest.MarkDecorator]:
    languages = examples(page).keys()
    if "sql" in languages:
        # Spark needs minutes for it.
        return [pytest.mark.jvm, pytest.mark.weekly]
    if "java" in languages:
        return [pytest.mark.jvm]
    if page.stem in WEEKLY:
        return [pytest.mark.slow, pytest.mark.weekly]
    return [pytest.mark.slow] if page.stem in SLOW else []


PARAMETERS = [
    pytest.param(page, marks=marks(page), id=page.stem) for page in sorted(PAGES.glob("*.md")) if examples(page)
]


@pytest.mark.parametrize("page", PARAMETERS)
def test_a_page_prints_what_it_shows(catalog, tmp_path, request, page):
    if page.stem in RUN:
        request.getfixturevalue("runner")
    (tmp_path / "data").symlink_to(catalog.data_dir)
    (tmp_path / "node_modules").symlink_to(PROJECT / "node_modules")
    programs = {
        language: text.replace("http://127.0.0.1:2333", catalog.url).replace("=KEY\n", f"={catalog.key}\n")
        for language, text in examples(page).items()
    }
    # An example also works a second time in the same folder. Those that start a Ray are too slow to prove that here.
    for _ in range(1 if page.stem in SLOW else 2):
        printed = "".join(run(page, language, programs, tmp_path) for language in programs if language not in SHOWN)
        assert "text" not in programs or printed == programs["text"]


def run(page: Path, language: str, programs: dict[str, str], folder: Path) -> str:
    """Runs the examples of a page in one language. Returns their output."""
    text = programs[language]
    if language == "python":
        python = os.environ["TILTYARD_TEST_ENGINES"] if page.stem in ENGINES else sys.executable
        return output([python, write(folder / "example.py", text)], folder)
    if language == "js":
        return output([os.environ["TILTYARD_TEST_NODE"], write(folder / "example.mjs", text)], folder)
    if language == "java":
        jars = f"{os.environ['TILTYARD_TEST_JAVA_JARS']}/*"
        return output(["java", *JVM_OPTIONS, "-cp", jars, write(folder / "Example.java", text)], folder)
    if language == "sql":
        with spark_sql(write(folder / "spark.properties", programs["properties"])) as sql:
            rows = [row for statement in re.findall(r"(.*?);\n", text, re.DOTALL) for row in sql(statement)]
        return "".join(f"{row}\n" for row in rows)
    assert language == "sh", f"{page.name} has an example in {language}"
    # The packages that a page installs are already installed for the test.
    return output(["bash", "-euc", re.sub(r"^(pip|npm) install .*\n", "", text, flags=re.MULTILINE)], folder)


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def output(program: list[str], folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
