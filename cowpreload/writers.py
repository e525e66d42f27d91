"""Writers: what this process has written to buffers that no file has seen yet.

Takes nothing: it looks for open writers among the objects that the collector lists.
In the master, `remember` and `flush_shared`; in a process that leaves by os._exit,
`flush`, which may block for ever: the caller bounds it. Works in every interpreter of
the process; must not import the native core.
"""

from __future__ import annotations

import _io
import _socket
import contextlib
import gc
import math
import os
import stat
import sys
import weakref
from typing import Any

from cowpreload.room import has_room

# How a writer is made to write: `FLUSH`, or as finalization does: `FINISH`. Below both
# are `RAW` ones, which by contract buffer nothing, but may do something when closed.
FLUSH, FINISH, RAW = "flush", "finish", "raw"
_FLUSHED = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
# They hold nothing that a flush would write.
_PLAIN = (
    *(_io.FileIO, _io.BytesIO, _io.StringIO),
    *(_io.BufferedReader, _io.BufferedRWPair),
)
# Where writing ends, and what has a descriptor of its own.
_ENDS = (_io.FileIO, _socket.socket)
# What else writes, or removes its file, when it is finalized: the method that does it.
_FINISHED_BY = {
    ("zipfile", "ZipFile"): "close",  # its directory
    ("shelve", "Shelf"): "close",  # its cache
    ("dbm.dumb", "_Database"): "close",  # its index
    ("_gdbm", "gdbm"): "close",
    ("_dbm", "dbm"): "close",
    ("tempfile", "_TemporaryFileCloser"): "__del__",
}

_inherited: list[weakref.ref[Any]] = []
_settled: list[weakref.ref[Any]] = []

# Past a metaclass, which may raise when its class is asked for an attribute.
_mro = type.__dict__["__mro__"].__get__
_module = type.__dict__["__module__"].__get__
_qualname = type.__dict__["__qualname__"].__get__


def _known(kind: type) -> str | None:
    """The method that finalization would call, of one of the classes above."""
    for each in _mro(kind):
        method = _FINISHED_BY.get((_module(each), _qualname(each)))
        if method is not None:
            return method
    return None


def _kind(kind: type) -> str | None:
    if issubclass(kind, _FLUSHED):
        return FLUSH
    if issubclass(kind, _io._IOBase):  # gzip, bz2, lzma, an upload of a library's
        if issubclass(kind, _PLAIN):
            return None
        return RAW if issubclass(kind, _io._RawIOBase) else FINISH
    return FINISH if _known(kind) else None


def _found(objects: list[Any]) -> list[tuple[str, Any]]:
    """The writers among `objects`, by type alone: a proxy would run other code."""
    # By id: a metaclass may have made its classes unhashable. In parts, because whoever
    # settles a million objects keeps the holes of what is made here: 55 ms for 400,000.
    found = []
    for start in range(0, len(objects), 4096):
        part = objects[start : start + 4096]
        numbers = list(map(id, map(type, part)))
        one_of = dict(zip(numbers, part, strict=True))
        kinds = {number: _kind(type(one)) for number, one in one_of.items()}
        if any(kinds.values()):
            named = zip(map(kinds.get, numbers), part, strict=True)
            found += [(kind, one) for kind, one in named if kind]
    return found


def _references(writers: list[Any]) -> list[weakref.ref[Any]]:
    found = []
    for each in writers:
        with contextlib.suppress(TypeError):  # dbm's know no weak references
            found.append(weakref.ref(each))
    return found


def _alive(references: list[weakref.ref[Any]]) -> list[Any]:
    return [each for each in (one() for one in references) if each is not None]


def remember() -> None:
    """In the master, before the freeze hides it: what is open now is every worker's."""
    _inherited[:] = _references([one for _, one in _found(gc.get_objects())])


def keep() -> int:
    """In a worker that settles: what is open now is its own to finish.

    Gives how many objects the collector lists. A gdbm or ndbm database is forgotten.
    """
    young = gc.get_objects()
    _settled[:] = _references(_alive(_settled) + [one for _, one in _found(young)])
    return len(young)


def _remembered() -> list[tuple[str, Any]]:
    return _found(_alive(_inherited))


def _below(writer: Any) -> list[Any]:
    """`writer` and all that it writes to, down to files and sockets.

    Found by what refers to what: to ask would run anyone's code, and the fileno() of
    tempfile's SpooledTemporaryFile moves it from memory to the disk.
    """
    found: dict[int, Any] = {}
    left = [writer]
    while left:
        one = left.pop()
        if id(one) in found:
            continue
        found[id(one)] = one
        if not issubclass(type(one), _ENDS):
            left += [each for each in _held_by(one) if _leads_to_a_file(type(each))]
    return list(found.values())


def _leads_to_a_file(kind: type) -> bool:
    return issubclass(kind, (_io._IOBase, *_ENDS)) or _known(kind) is not None


def _descriptors(below: list[Any]) -> list[int]:
    """The open files and sockets among them."""
    found = []
    for each in below:
        for kind in _ENDS:
            if issubclass(type(each), kind):
                with contextlib.suppress(ValueError):  # closed
                    found.append(kind.fileno(each))
    return [each for each in found if each >= 0]


def _waits(writer: Any) -> bool:
    """Whether a write there may wait for somebody who reads."""
    below = _below(writer)
    found = _descriptors(below)
    if not found:  # closed, in memory, or a library's own way to write
        return any(_is_foreign(type(each)) for each in below)
    return any(map(_may_wait, found))


def _is_foreign(kind: type) -> bool:
    """Whether only its own code knows where it writes."""
    return issubclass(kind, _io._RawIOBase) and not issubclass(kind, _io.FileIO)


def _may_wait(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
    except OSError:
        return False


def _takes_at_once(writer: Any) -> bool:
    """Whether all that it may hold can be written without any wait."""
    below = _below(writer)
    found = _descriptors(below)
    most = _most_held(below)
    return bool(found) and all(has_room(each, most) for each in found)


def _most_held(below: list[Any]) -> float:
    """The most bytes that these can have buffered, rounded up."""
    size = 0.0
    for each in below:
        kind = type(each)
        if issubclass(kind, _io.TextIOWrapper):
            size += _io.TextIOWrapper._CHUNK_SIZE.__get__(each)  # type: ignore[attr-defined]
        elif issubclass(kind, _io.BufferedWriter):
            size += _io.BufferedWriter.__sizeof__(each)
        elif not issubclass(kind, _io.FileIO):
            return math.inf  # a compressor, or a library's
    return size


def _quietly(writer: Any, method: str) -> None:
    """What one writer raises (a full disk, a closed file) is not the others' matter."""
    with contextlib.suppress(BaseException):
        getattr(writer, method)()


def flush_shared() -> None:
    """In the master, before a fork: else each worker would write its copy at its end.

    Only where nothing can wait: it would stop the server. A pipe that is not read, and
    what C's stdio holds, is written by every process as it would be without us.
    """
    with contextlib.suppress(Exception):
        for _kind_of_it, writer in _outermost_first(
            _remembered() + _found(gc.get_objects())
        ):
            if _takes_at_once(writer):
                _quietly(writer, "flush")


def _outermost_first(writers: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """So ordered that a writer comes before those that it writes to."""
    left = [each for each in writers if each[0] != RAW]
    ordered: list[tuple[str, Any]] = []
    while left:
        held = {id(inner) for _, outer in left for inner in _held_by(outer)}
        outer = [each for each in left if id(each[1]) not in held] or left
        ordered += outer
        done = {id(each) for _, each in outer}
        left = [each for each in left if id(each[1]) not in done]
    return ordered + [each for each in writers if each[0] == RAW]


def _held_by(writer: Any) -> list[Any]:
    """What it refers to, by its attributes too."""
    direct = [each for each in gc.get_referents(writer) if each is not writer]
    return direct + [
        each for one in direct if type(one) is dict for each in one.values()
    ]


def _finish(writer: Any) -> None:
    """What finalization would do: nothing to what reads."""
    method = _known(type(writer))
    if method is not None:
        _quietly(writer, method)
        return
    with contextlib.suppress(BaseException):
        if not writer.closed and writer.writable():
            writer.close()


def flush(*, waiting: bool) -> None:
    """Write what is buffered: to files, or to what may have us wait.

    Compressed files, archives and whatever else is an `io` object of Python's are
    closed, if they were opened in this process: a second worker's end in a file that
    all of them inherited would damage it.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            if _waits(stream) is waiting:
                _quietly(stream, "flush")
    with contextlib.suppress(Exception):
        masters = {id(each) for _kind_of_it, each in _remembered()}
        found = _found(gc.get_objects() + _alive(_settled))
        for kind, writer in _outermost_first(found):
            if _waits(writer) is not waiting:
                continue
            if kind == FLUSH:
                _quietly(writer, "flush")
            elif id(writer) not in masters:
                _finish(writer)
    with contextlib.suppress(Exception):
        for _kind_of_it, writer in _outermost_first(_remembered()):
            if _waits(writer) is waiting:
                _quietly(writer, "flush")
