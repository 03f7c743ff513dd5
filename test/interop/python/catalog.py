"""The service as a process, and the clients that connect to it."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import lance.namespace

PROJECT = Path(__file__).resolve().parents[3]
START_DEADLINE_SECONDS = 60


# The ports that `client/unused-port.ts` chooses from, for its reason.
PORTS = range(20_000, 30_000)


def free_port() -> int:
    """Returns an unused port for a program that binds it later."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition, what: str | Callable[[], str], seconds: float = START_DEADLINE_SECONDS) -> None:
    """Polls a condition that depends on another process.

    `what` may be a function that describes the state after a timeout.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise TimeoutError(f"{told} did not happen in {seconds} s")
        time.sleep(0.05)


@dataclass
class Catalog:
    """A catalog service on a separate port."""

    data_dir: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen | None = None
    # The file of the log; that of the tests if None.
    log: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        bootstrap = self.environment.get("TILTYARD_BOOTSTRAP_API_KEY")
        return bootstrap or (self.data_dir / "development.key").read_text()

    @property
    def properties(self) -> dict[str, str]:
        """Returns the properties that a client needs to connect."""
        return {"uri": self.url, "header.x-api-key": self.key}

    def client(self) -> lance.namespace.RestNamespace:
        return lance.namespace.RestNamespace(**self.properties)

    def start(self) -> "Catalog":
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TILTYARD_")}
        self.process = subprocess.Popen(
            [os.environ["TILTYARD_TEST_NODE"], "service/main.ts", "serve"],
            cwd=PROJECT,
            stdout=self.log and self.log.open("a"),
            env={
                **inherited,
                "TILTYARD_PORT": str(self.port),
                "TILTYARD_DATA_DIR": str(self.data_dir),
                "TILTYARD_LOG_LEVEL": "warn",
                # The catalogs of several tests share a bucket.
                "TILTYARD_NEW_CATALOG": "1",
                **self.environment,
            },
        )
        wait_until(self.is_ready, "the start of the service")
        return self

    def __enter__(self) -> "Catalog":
        return self.start()

    def __exit__(self, failure, *_) -> None:
        """Stops the service. A failed test causes no second failure and leaves no process behind."""
        if failure is None:
            self.stop()
        else:
            self.kill()

    def is_ready(self) -> bool:
        assert self.process is not None and self.process.poll() is None, "the service ended"
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self) -> None:
        """Stops the service like an operator and requires a successful exit."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=60)

    def post(self, path: str, body: dict | None = None, key: str | None = None) -> dict:
        """Sends a request without a Lance client, with the key of the administrator unless another one is given."""
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body or {}).encode(),
            headers={"x-api-key": key or self.key, "content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, path: str) -> dict:
        request = urllib.request.Request(self.url + path, headers={"x-api-key": self.key})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def versions(self, table: list[str], branch: str | None = None) -> list[dict]:
        query = f"?branch={urllib.parse.quote(branch)}" if branch else ""
        return self.post(f"/v1/table/{'%24'.join(table)}/version/list{query}")["versions"]

    def history(self, table: list[str]) -> list[dict]:
        return self.get(f"/management/v1/table/{'%24'.join(table)}/history/list")["versions"]


def folder_of(location: str) -> Path:
    """Returns the folder of a file: location."""
    return Path(urllib.parse.unquote(urllib.parse.urlparse(location).path))


def staged_manifests(location: str) -> list[Path]:
    """Returns the remaining staged manifests of a table."""
    return those_that_stay(lambda: find_staged(location))


def those_that_stay(find: Callable[[], list]) -> list:
    """Returns the remaining staged manifests. The service deletes those of commits soon after its response."""
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: find() == [], "the end of the commits", seconds=10)
    return find()


def find_staged(location: str) -> list[Path]:
    return list(folder_of(location).rglob("*.manifest-*"))


def unfinished_manifests(location: str) -> list[Path]:
    """Returns the staged manifests of accepted commits, whose content equals that of the final ones."""

    def is_committed(staged: Path) -> bool:
        final = staged.with_name(staged.name.split("-", 1)[0])
        return final.exists() and final.read_bytes() == staged.read_bytes()

    return [staged for staged in find_staged(location) if is_committed(staged)]


def version_in_manifest_name(path: str) -> int:
    """Returns the version of a final manifest name of the scheme V2."""
    match = re.fullmatch(r"(\d{20})\.manifest", path.rsplit("/", 1)[-1])
    assert match, f"{path} is not a final manifest name"
    return 2**64 - 1 - int(match[1])
