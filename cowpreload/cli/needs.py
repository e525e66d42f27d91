"""What a command needs beside the package, asked before it has done anything."""

from __future__ import annotations

from importlib.util import find_spec

from cowpreload.errors import NotFoundError


def matplotlib(what: str) -> None:
    """For a picture.

    Args:
        what: the command or the option that was given.

    Raises:
        NotFoundError: it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise NotFoundError(
            f"{what}: needs matplotlib; run: pip install 'cowpreload[plot]'"
        )
