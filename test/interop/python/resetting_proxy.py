"""A TCP proxy that resets connections at random, as load balancers and nodes that disappear do."""

import contextlib
import random
import socket
import struct
import threading

# A close with this option sends RST.
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
CHUNK_BYTES = 65_536


class ResettingProxy:
    """Each piece of data is the last one of its connection with a probability, and may be delivered or lost."""

    def __init__(self, port: int, seed: int, probability: float) -> None:
        """Forwards to a port of this machine."""
        self.resets = 0
        self._port = port
        self._chance = random.Random(seed)
        self._probability = probability
        self._open: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def reset_all(self) -> None:
        """Resets all open connections."""
        for each in list(self._open):
            self._reset(each)
            self.resets += 1

    def close(self) -> None:
        # The thread waits in accept.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.reset_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._connect, args=[client], daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        try:
            catalog = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            self._reset(client)
            return client.close()
        both = {client, catalog}
        self._open |= both
        answers = threading.Thread(target=self._forward, args=[catalog, client], daemon=True)
        answers.start()
        self._forward(client, catalog)
        answers.join()
        self._open -= both
        for each in both:
            each.close()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        """Forwards until one side closes its direction, or a reset."""
        try:
            while data := source.recv(CHUNK_BYTES):
                is_last = self._chance.random() < self._probability
                if not is_last or self._chance.random() < 0.5:
                    target.sendall(data)
                if is_last:
                    self.resets += 1
                    raise ConnectionResetError
            if source in self._open:
                target.shutdown(socket.SHUT_WR)
        except OSError:
            for each in (source, target):
                self._reset(each)

    def _reset(self, connection: socket.socket) -> None:
        self._open.discard(connection)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            # It ends the wait of the thread that reads, which then closes the connection.
            connection.shutdown(socket.SHUT_RD)
