"""Writers: looking at one changes nothing, and what the master flushes cannot wait."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import run

from cowpreload import writers


def test_looking_at_a_temporary_file_in_memory_does_not_move_it_to_the_disk() -> None:
    """Its fileno() does; preloaded, it would be one file for all workers."""
    with tempfile.SpooledTemporaryFile(max_size=10**6) as spooled:
        spooled.write(b"line\n")
        writers.flush_shared()
        assert not spooled._rolled  # type: ignore[attr-defined]


class Counted(gzip.GzipFile):
    asked = 0

    def fileno(self) -> int:
        Counted.asked += 1
        return super().fileno()


def test_looking_at_a_writer_runs_no_code_of_its_class(tmp_path: Path) -> None:
    with Counted(tmp_path / "gz", "wb") as writer:
        writer.write(b"line\n")
        writers.flush_shared()
    assert not Counted.asked


@contextmanager
def writer_to(kind: str, tmp_path: Path) -> Iterator[Any]:
    if kind == "socket":
        here, there = socket.socketpair()
        with here, there, here.makefile("w") as writer:
            yield writer
    elif kind == "pipe":
        reading, writing = os.pipe()
        with os.fdopen(reading), os.fdopen(writing, "w") as writer:
            yield writer
    elif kind == "gz":
        with gzip.open(tmp_path / kind, "wt") as writer:
            yield writer
    else:
        with open(tmp_path / kind, "w") as writer:
            yield writer


@pytest.mark.parametrize("kind", ["socket", "pipe", "file", "gz"])
def test_what_a_writer_writes_to_is_found_below_it(kind: str, tmp_path: Path) -> None:
    with writer_to(kind, tmp_path) as writer:
        assert writers._waits(writer) is (kind in ("socket", "pipe"))


BIG_BUFFER = """
import os, signal, sys
from cowpreload import writers
reading, writing = os.pipe()
size = 128 << 10 if sys.argv[1] == "wide" else -1  # 3.14's default
small = os.fdopen(os.dup(writing), "w", size)
small.write("line")
big = open(writing, "wb", buffering=1 << 20)
signal.alarm(20)
if sys.argv[1] != "big":
    writers.flush_shared()
    print(os.read(reading, 100).decode())
else:
    del small
    os.read(reading, 100)
    big.write(b"x" * 200_000)
    writers.flush_shared()
    print("returned")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("held", "said"), [("small", "line"), ("wide", "line"), ("big", "returned")]
)
def test_a_buffer_larger_than_its_pipe_does_not_stop_the_master(
    held: str, said: str
) -> None:
    done: subprocess.CompletedProcess[str] = run("-c", BIG_BUFFER, held, check=True)
    assert done.stdout.strip() == said
