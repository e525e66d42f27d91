"""A file of lines that is whole at any moment, whatever ends its writer.

Takes lines; gives why one could not be written. Nothing is buffered. What is left of a
line when the disk is full is taken away again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from types import TracebackType

from cowpreload.errors import NotFoundError


class LineFile:
    """A file that lines are added to; `-` is stdout.

    Attributes:
        name: for messages.
        reader_left: it is a pipe, and nobody reads it any more.
    """

    def __init__(self, path: str) -> None:
        """Open it, or make it.

        Raises:
            OSError: it cannot be written.
            NotFoundError: another process adds lines to it.
        """
        self.name = "stdout" if path == "-" else path
        self.reader_left = False
        # Whoever can read a FIFO himself is never told that its reader has left.
        pipe = os.path.exists(path) and not os.path.isfile(path)
        flags = os.O_WRONLY if pipe else os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._fd = (
            os.dup(1) if path == "-" else os.open(path, flags | os.O_CLOEXEC, 0o644)
        )
        self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode) and path != "-"
        if not self._regular:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise NotFoundError(
                f"output={path}: another recording writes to it; name another file"
            ) from None
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self.add("")  # another writer was killed in the middle of a line

    def add(self, line: str) -> str:
        """Write a line, whole; why it could not be, or ""."""
        size = os.fstat(self._fd).st_size
        rest = memoryview(f"{line}\n".encode())
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            if self._regular:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, size)
            self.reader_left = error.errno == errno.EPIPE
            return error.strerror or str(error)
        return ""

    def __enter__(self) -> LineFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
