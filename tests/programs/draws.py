"""Random values of every source, made at import and used there: `/` gives one of each.

The names that begin with "seeded" were given a seed; "instance" is a random.Random of
the application's, "reseeded" one with the recipe of docs/fork-safety.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import ssl
import tempfile
import uuid
from collections.abc import Callable

import numpy
from django.conf import settings
from django.utils.crypto import get_random_string

import cowpreload

settings.configure(SECRET_KEY="tests only")
random.seed(7)
instance, reseeded = random.Random(), random.Random()
if "COW" in os.environ:
    cowpreload.after_fork(reseeded.seed)
rng, seeded_rng = numpy.random.default_rng(), numpy.random.default_rng(7)
state = numpy.random.RandomState()
names = tempfile._get_candidate_names()  # type: ignore[attr-defined]

SOURCES: dict[str, Callable[[], object]] = {
    "random": random.random,
    "random bits": lambda: random.getrandbits(64),
    "shuffle": lambda: str(random.sample(range(1000), 20)),
    "SystemRandom": random.SystemRandom().random,
    "secrets": secrets.token_hex,
    "urandom": lambda: os.urandom(16).hex(),
    "OpenSSL": lambda: ssl.RAND_bytes(16).hex(),
    "uuid1": lambda: str(uuid.uuid1()),
    "uuid4": lambda: str(uuid.uuid4()),
    "tempfile": lambda: next(names),
    "hash": lambda: hashlib.sha256(random.randbytes(16)).hexdigest(),
    "django": lambda: get_random_string(16),
    "numpy": lambda: float(numpy.random.random()),
    "numpy normal": lambda: float(numpy.random.normal()),
    "numpy rng": lambda: float(rng.random()),
    "numpy state": lambda: float(state.normal()),
    "seeded rng": lambda: float(seeded_rng.random()),
    "instance": instance.random,
    "reseeded": reseeded.random,
}


def draw() -> bytes:
    drawn = {name: source() for name, source in SOURCES.items()}
    return json.dumps({"pid": os.getpid(), "drawn": drawn}).encode()


draw()


def application(environ, start_response):  # type: ignore[no-untyped-def]
    body = draw()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        return
    body = draw()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
