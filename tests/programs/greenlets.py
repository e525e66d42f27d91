"""A WSGI application that uses at import and in requests what gevent makes of it."""

import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

LOCK = threading.Lock()
LOCAL = threading.local()
QUEUE: "queue.Queue[int]" = queue.Queue()
POOL = ThreadPoolExecutor(2)
socket.getaddrinfo("localhost", 80)  # gevent: in a native thread of its pool


def work() -> str:
    time.sleep(0.01)
    return socket.socket.__module__


def application(environ, start_response):  # type: ignore[no-untyped-def]
    with LOCK:
        socket.getaddrinfo("localhost", 80)
        LOCAL.found = POOL.submit(work).result(timeout=5)
        QUEUE.put(1)
        QUEUE.get(timeout=5)
    body = LOCAL.found.encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
