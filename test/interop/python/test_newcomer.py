"""README, tour, guides and pages of clients, one after the other in one folder over one data/, as a newcomer follows them."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from catalog import PROJECT

SECONDS = 600


def blocks(page: str, language: str) -> list[str]:
    """Returns the code blocks of a page below docs/ in one language."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", (PROJECT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(text) for _, text in found]


@pytest.fixture(scope="module")
def folder(catalog, tmp_path_factory) -> Path:
    """A clone in which the catalog runs."""
    clone = tmp_path_factory.mktemp("clone")
    (clone / "data").symlink_to(catalog.data_dir)
    for name in ("examples", "node_modules"):
        (clone / name).symlink_to(PROJECT / name)
    return clone


def run(catalog, folder: Path, program: list[str]) -> str:
    """Runs a program with the Python of the tests first on the PATH. Returns its standard output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
    # The pages put the command of the clone on the PATH.
    here = [Path(sys.executable).parent, Path(os.environ["TILTYARD_TEST_NODE"]).parent, folder / "node_modules/.bin"]
    environment = {**inherited, "PATH": ":".join([*map(str, here), os.environ["PATH"]])}
    text = program[-1].replace("http://127.0.0.1:2333", catalog.url)
    ended = subprocess.run(
        [*program[:-1], text], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def shell(catalog, folder: Path, text: str) -> str:
    return run(catalog, folder, ["bash", "-euo", "pipefail", "-c", text])


@pytest.mark.timeout(SECONDS)
def test_the_quickstart_with_keep_leaves_the_console_and_its_key(catalog, folder):
    """CI runs the block of the README in its clone. This table is that of an earlier run."""
    catalog.post("/v1/table/quickstart_films/declare")
    commands = [
        # The environment of a user of another catalog.
        "TILTYARD_CATALOG_URL=http://127.0.0.1:9 TILTYARD_API_KEY=other tiltyard quickstart --keep >keep.log 2>&1 &",
        "until grep -q 'the key is in' keep.log; do kill -0 $!; sleep 0.5; done",
        "url=$(grep -o 'http://.*/console' keep.log)",
        "curl -sf $url | grep -o '<title>.*</title>'",
        "export TILTYARD_API_KEY=$(cat $(sed -n 's/.*the key is in //p' keep.log))",
        "tiltyard jobs list --table quickstart_films --url ${url%/console}",
        "kill -INT $!; wait $! || test $? = 130",
    ]
    keep = "\n".join(commands)
    title, _, job, *_ = shell(catalog, folder, keep).splitlines()
    assert "Tiltyard" in title and " Succeeded " in job and " 1,000/1,000 rows " in job


def test_the_tour_with_curl_works_twice(catalog, folder):
    [tour] = blocks("get-started/tour.md", "sh")
    answers = [shell(catalog, folder, tour).splitlines() for _ in range(2)]
    for printed in answers:
        refused = [line for line in printed if '"status"' in line]
        assert len(refused) == 1 and "not empty" in refused[0], printed
        assert '["numbers"]' in printed[2]


def test_the_tour_with_python_shows_what_it_promises(catalog, folder):
    tour = blocks("get-started/tour.md", "python")
    assert len(tour) == 3
    printed = run(catalog, folder, [sys.executable, "-c", "\n".join(tour)]).splitlines()
    assert printed[:3] == ["2 4 3", "5 4", "True 4"]
    assert printed[-1] == str([{"number": n, "squared": n * n} for n in (7, 8, 9)])


def test_local_jobs_fill_a_column_with_pylance_and_with_geneva(catalog, folder):
    [_, commands] = blocks("get-started/local-jobs.md", "sh")
    [expected] = blocks("get-started/local-jobs.md", "text")
    printed = shell(catalog, folder, commands).splitlines()
    assert [line for line in expected.splitlines() if line not in printed] == []
    filled = "tiltyard run --local -w examples -- python geneva_backfill.py"
    assert "title_length of 1000 films is filled" in shell(catalog, folder, filled)


def test_the_guide_to_jobs_works_after_the_other_pages(catalog, runner, folder):
    shell(catalog, folder, "\n".join(blocks("guides/jobs.md", "sh")))
    count = 'curl -sS -H "x-api-key: $(cat data/development.key)" -X POST http://127.0.0.1:2333/v1/table/films/count_rows'
    assert shell(catalog, folder, f"""{count} -d '{{"predicate": "title_length IS NOT NULL"}}'""").strip() == "1000"


@pytest.mark.parametrize(
    "page",
    ["guides/tables.md", "reference/management.md", "reference/settings.md", "reference/cli.md", "operations/catalog.md"],
)
def test_a_page_works_after_the_guide_to_jobs(catalog, folder, page):
    # A reader's catalog is at the port that the command calls by default.
    here = f"export TILTYARD_CATALOG_URL={catalog.url}"
    shell(catalog, folder, "\n".join([here, *blocks(page, "sh")]))


def test_client_pages_work_after_the_other_pages(catalog, folder):
    for page in ("clients/pylance.md", "clients/lancedb.md", "clients/curl.md"):
        printed = [run(catalog, folder, [sys.executable, "-c", program]) for program in blocks(page, "python")]
        printed += [shell(catalog, folder, program) for program in blocks(page, "sh")]
        assert "".join(printed) == "".join(blocks(page, "text"))
