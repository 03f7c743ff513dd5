"""
The loop of every client of test_clients.py: it runs one operation for each name that it reads.

It works on the table `films` of the namespace `NAMESPACE`, in the catalog of `URL`, with the key of `KEY`. It prints
the names of its operations, and then, for each name that it reads, the ids that the operation found, or its exception.
"""

import json
import os
import sys
from collections.abc import Callable

URL, KEY, NAMESPACE = (os.environ[name] for name in ("URL", "KEY", "NAMESPACE"))
TABLE = [NAMESPACE, "films"]


def row(id: int, title: str | None = None) -> dict:
    return {"id": id, "title": title or f"film {id}", "vector": [float(id), 0.0]}


def serve(**operations: Callable[[], object]) -> None:
    """Runs the requested operations until the end of the input. Any other output to stdout is redirected to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print(json.dumps(list(operations)), file=answers)
    for line in sys.stdin:
        try:
            found = operations[line.strip()]()
            answer = {"found": found if isinstance(found, list) else None}
        except Exception as error:  # Each client has errors of its own.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)
