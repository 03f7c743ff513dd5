"""Serves an AWS by moto. S3 checks the condition of a write in the same step as it writes; moto needs a lock for that."""

import functools
import threading

from moto import server
from moto.s3.responses import S3Response

lock = threading.Lock()


def one_at_a_time(method):
    @functools.wraps(method)
    def call(*args):
        with lock:
            return method(*args)

    return call


for name in ("put_object", "_key_response_post"):
    setattr(S3Response, name, one_at_a_time(getattr(S3Response, name)))
server.main()
