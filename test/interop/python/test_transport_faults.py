"""Faults of the connection between a job and the catalog, as Lance's and Geneva's clients report them to the job."""

import re
import socket
import threading

import pytest
from lance.namespace import DescribeTableRequest, RestNamespace
from tiltyard.job.failure import is_passing

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
PARTIAL = HEAD + b'content-length: 500\r\n\r\n{"version": 1'
CHUNKED = HEAD + b'transfer-encoding: chunked\r\n\r\n20\r\n{"ver'


def status(code: int, body: bytes = b"<html>x</html>", kind: bytes = b"text/html") -> bytes:
    head = b"HTTP/1.1 %d X\r\ncontent-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (code, kind, len(body)) + body


def problem(code: int, number: int) -> bytes:
    body = b'{"type": "x", "title": "x", "status": %d, "detail": "so", "code": %d}' % (code, number)
    return status(code, body, b"application/json")


@pytest.fixture
def answering():
    """Starts servers that answer each connection with the same bytes, and close it."""
    servers = []

    def start(answer: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(65_536)
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()[1]

    yield start
    for server in servers:
        # The thread of the server waits in accept.
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        pytest.param(b"", True, id="closed before the response"),
        pytest.param(PARTIAL, True, id="closed within the response"),
        pytest.param(CHUNKED, True, id="closed within a chunk"),
        pytest.param(b"\x00garbage\r\n\r\n", True, id="no HTTP"),
        *[pytest.param(status(code), True, id=f"{code} of a proxy") for code in (429, 500, 502, 503, 504)],
        pytest.param(problem(503, 17), True, id="503 of the catalog"),
        pytest.param(problem(400, 13), False, id="400 of the catalog"),
        pytest.param(problem(404, 4), False, id="404 of the catalog"),
    ],
)
def test_a_fault_of_the_connection_does_not_fail_a_job(answering, answer, passes):
    namespace = RestNamespace(uri=f"http://127.0.0.1:{answering(answer)}", **{"header.x-api-key": "k"})
    with pytest.raises(Exception, match=re.compile(".")) as raised:
        namespace.describe_table(DescribeTableRequest(id=["films"]))
    error = raised.value
    # Geneva raises the text of a worker's error.
    by_geneva = RuntimeError(f"{type(error).__module__}.{type(error).__name__}: {error}")
    assert (is_passing(error), is_passing(by_geneva)) == (passes, passes), by_geneva
