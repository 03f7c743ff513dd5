"""Jobs of LanceDB's Functions that reveal a secret, and what remains of it."""

import base64
import json
import os
import secrets
import urllib.parse
import urllib.request
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest
from catalog import Catalog
from jobs import values
from lancedb import col, udf
from lancedb.secrets import EnvVarSecret
from processes import ray_folders
from runner import JOB_SECONDS, Runner, ended

ROWS = 40
KEYS = "TILTYARD_SECRETS_KEY_FILE"
SECRET = [EnvVarSecret("token", "TOKEN")]


@udf
def reveals(id: int) -> int:
    import os
    import subprocess

    token = os.environ["TOKEN"]
    print("the token is", token)
    subprocess.run(["/bin/sh", "-c", "echo the shell has $TOKEN; echo $TOKEN > file; echo $TOKEN > /dev/stderr"])
    with open("own-file", "w") as file:
        file.write(token)
    if id == 1:
        raise ValueError(f"no access with {token}")
    if id == 2:
        os.abort()
    return len(token)


@udf
def ends(id: int) -> int:
    import os

    print("the last words are", os.environ["TOKEN"], flush=True)
    os._exit(3)


@udf
class does_not_start:
    def __init__(self):
        import os

        raise RuntimeError(f"the token {os.environ['TOKEN']} has expired")

    def __call__(self, id: int) -> int:
        return id


@udf
class looks_around:
    """Returns the names of variables of its worker that it has, and the status of a request without a key."""

    def __init__(self, catalog: str):
        self.catalog = catalog

    def __call__(self, id: int) -> str:
        import os
        import urllib.error
        import urllib.request

        try:
            with urllib.request.urlopen(f"{self.catalog}/v1/namespace/$/list", timeout=30) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        own = sorted(name for name in os.environ if name.startswith(("TILTYARD_", "RAY_", "AWS_", "UV_", "HOME")))
        return f"{own} {status}"


def files_with(folder: Path, forms: list[bytes]) -> list[Path]:
    """Returns the files that contain one of the texts."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes()
            if any(form in content for form in forms):
                found.append(file)
    return found


def answers_about(catalog, jobs: list[str], table: str) -> str:
    """Returns all that the catalog answers to its administrator about jobs, functions, secrets and their audit."""

    def answered(path: str, body: dict | None = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        headers = {"x-api-key": catalog.key, "content-type": "application/json", "x-lancedb-database": "numbers"}
        with urllib.request.urlopen(urllib.request.Request(catalog.url + path, data, headers), timeout=60) as answer:
            # The errors of rows are an Arrow stream.
            return answer.read().decode(errors="backslashreplace")

    found = [answered("/v1/namespace/$/function/list?include_definition=true"), answered("/metrics")]
    found += [answered("/v1/namespace/$/secret/list"), answered("/management/v1/namespace/$/job/list")]
    found += [answered("/management/v1/namespace/$/transaction/list")]
    for job in jobs:
        path = f"/management/v1/job/{urllib.parse.quote(job, safe='')}"
        found += [answered(f"{path}/describe"), answered(f"{path}/log")]
        found += [answered(f"/v1/jobs/{name}", {"job_id": job}) for name in ("query_events", "describe")]
        found += [answered(f"/v1/table/{table}/errors", {"job_id": job})]
    return "\n".join(found)


@pytest.mark.weekly
@pytest.mark.timeout(2 * JOB_SECONDS)
def test_secrets_are_in_no_file_log_or_answer_after_jobs_that_reveal_them(tmp_path):
    (tmp_path / "keys").write_text(f"test:{base64.b64encode(os.urandom(32)).decode()}\n")
    value = f"s3cret-{secrets.token_hex(20)}"
    forms = [value.encode(), base64.b64encode(value.encode()).rstrip(b"="), value.encode("utf-16-le")]
    settings = {KEYS: str(tmp_path / "keys"), "TILTYARD_LOG_LEVEL": "debug"}
    # The files of Ray and of processes of functions.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with (
        Catalog(tmp_path / "data", settings, log=tmp_path / "catalog.log") as catalog,
        Runner(catalog, tmp_path / "runner.log", {"TMPDIR": str(temporary)}).start("--standby-minutes", "5") as runner,
    ):
        remote = lancedb.connect("db://numbers", api_key=catalog.key, host_override=catalog.url)
        numbers = remote.create_table("numbers", pa.table({"id": pa.array(range(ROWS), pa.int64())}))
        remote.create_secret("token", value)
        for function in (reveals, ends, does_not_start):
            version = remote.create_function(function, secrets=SECRET)
            numbers.add_columns({version.name: version(id=col("id"))})
        numbers.add_columns({"seen": remote.create_function(looks_around)(id=col("id"), catalog=catalog.url)})
        jobs = [numbers.refresh_column_async(name).id for name in ("reveals", "ends", "does_not_start", "seen")]
        described = [ended(catalog, runner, job) for job in jobs]
        assert [each["status"] for each in described] == ["Succeeded", "Failed", "Failed", "Succeeded"], described
        assert values(catalog, ["numbers"], "reveals") == [None if id in (1, 2) else len(value) for id in range(ROWS)]
        assert set(values(catalog, ["numbers"], "seen")) == {"[] 401"}
        errors = numbers.function_errors(job_id=jobs[0]).records
        assert "no access with ***" in {error.error_message for error in errors}
        assert "exited with code 3" in described[1]["reason"]
        assert "the token *** has expired" in described[2]["reason"]
        answers = answers_about(catalog, jobs, "numbers")
        assert "the token is ***" in answers and value not in answers
        assert runner.process is not None
        rays = ray_folders(runner.process.pid)
        assert files_with(rays[0], [b"the token is ***"]) != []
        found = [file for folder in [tmp_path, *rays] for file in files_with(folder, forms)]
        assert found == []
