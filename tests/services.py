"""The servers that applications talk to, as fixtures: one each a process of pytest's.

Gives fixtures to conftest.py; a test that asks for one that is not installed is
skipped, with the Debian package that brings it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from harness import services
from harness.services import MissingError, Postgres, Redis, Tls

Service = TypeVar("Service")


@contextlib.contextmanager
def _started(
    start: Callable[[Path], contextlib.AbstractContextManager[Service]],
) -> Iterator[Service]:
    # Not pytest's own directory: a path of a socket has 107 bytes at most.
    with (
        tempfile.TemporaryDirectory(prefix="cow-") as name,
        contextlib.ExitStack() as e,
    ):
        try:
            service = e.enter_context(start(Path(name)))
        except MissingError as error:
            pytest.skip(str(error))
        yield service


@pytest.fixture(scope="session", name="postgres")
def start_postgres() -> Iterator[Postgres]:
    with _started(services.postgres) as service:
        yield service


@pytest.fixture(scope="session", name="redis_server")
def start_redis() -> Iterator[Redis]:
    with _started(services.redis) as service:
        yield service


@pytest.fixture(scope="session", name="tls_server")
def start_tls() -> Iterator[Tls]:
    with _started(services.tls) as service:
        yield service
