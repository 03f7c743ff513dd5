"""The job that users have all this for: Geneva fills a column on Ray, through the catalog."""

import ast
import subprocess
import sys
from pathlib import Path

from catalog import staged_manifests


def test_a_computed_column_is_added_and_backfilled(catalog):
    job = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("backfill.py")), catalog.url, str(catalog.data_dir / "development.key")],
        capture_output=True,
        text=True,
        timeout=220,
    )
    assert job.returncode == 0, job.stderr
    printed = ast.literal_eval(job.stdout.strip().splitlines()[-1])
    assert printed == {number: number * number for number in range(100)}
    location = catalog.post("/v1/table/numbers/describe")["location"]
    assert staged_manifests(location) == []
