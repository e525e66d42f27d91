"""Text that others have written: names of files, threads and servers hold any bytes."""

from __future__ import annotations

from pathlib import Path


def printable(text: str) -> str:
    """The text, with a question mark for each character that a terminal would obey:
    who has made a server, or named a file of it, may be another than who looks."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "?" for each in text)


def proc_lines(path: Path | str) -> list[str]:
    """The lines of a file of /proc, printable.

    A name in one holds any byte but a newline: much that splitlines() takes for the end
    of a line, and what is no UTF-8.

    Raises:
        OSError: it cannot be read.
    """
    text = Path(path).read_bytes().decode("utf-8", "replace").removesuffix("\n")
    return [printable(each.replace("\t", " ")) for each in text.split("\n")]
