"""The Python tour of docs/get-started/tour.md, as a newcomer pastes it."""

import os
import re
import subprocess
import sys

from catalog import PROJECT, Catalog


def test_the_tour_runs_as_it_stands(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/get-started/tour.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    with Catalog(tmp_path / "data") as catalog:
        tour = "\n".join(blocks).replace("http://127.0.0.1:2333", catalog.url)
        finished = subprocess.run(
            [sys.executable, "-c", tour], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=220
        )
    assert finished.returncode == 0, finished.stderr
    printed = finished.stdout.splitlines()
    assert printed[:2] == ["2 4 3", "5 4"]
    assert printed[2] == "['films'] 4"
    assert printed[-1] == str([{"number": n, "squared": n * n} for n in (7, 8, 9)])
