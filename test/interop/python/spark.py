"""Spark in a separate JVM."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator

from catalog import PROJECT

PROGRAM = PROJECT / "test/interop/clients/SparkSql.java"
# The options that Arrow and Spark need with Java 17. The first one is for Arrow, and the others are those of Spark's
# own launcher.
JVM_OPTIONS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.nio",
        "sun.nio.ch",
        "java.lang",
        "java.lang.invoke",
        "java.util",
        "java.util.concurrent",
        "java.net",
    )
]


@contextlib.contextmanager
def spark_sql(properties: str) -> Iterator[Callable[[str], list[str]]]:
    """Returns a function that runs a statement and returns its rows as JSON, in a session with the properties of a
    file.

    The function raises RuntimeError with Spark's error.
    """
    jars = f"{os.environ['TILTYARD_TEST_SPARK_JARS']}/*"
    command = ["java", *JVM_OPTIONS, "-cp", jars, str(PROGRAM), properties]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as session:

        def sql(statement: str) -> list[str]:
            session.stdin.write(" ".join(statement.split()) + "\n")
            session.stdin.flush()
            answer = json.loads(session.stdout.readline())
            if "error" in answer:
                raise RuntimeError(answer["error"])
            return answer["rows"]

        try:
            yield sql
            session.stdin.close()
        finally:
            if session.poll() is None and not session.stdin.closed:
                session.kill()
