"""The application that an operator names, loaded into this process.

Takes `module`, `module:name` or `module:factory()`, as gunicorn does; gives the
callable. Puts the working directory on the path of imports, and nothing else.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from cowpreload.errors import NotFoundError

_NAMES = ("application", "app")


def load(text: str) -> Callable[..., Any]:
    """The application that `text` names; the working directory is on the path.

    Raises:
        NotFoundError: there is none.
    """
    module, _, name = text.partition(":")
    called = name.endswith("()")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # of the application's own
        raise NotFoundError(f"app={text}: {error}") from error
    for part in filter(None, name.removesuffix("()").split(".")):
        found = getattr(found, part, None)
    if not name:
        named = (getattr(found, each, None) for each in _NAMES)
        found = next((each for each in named if each is not None), None)
    found = found() if called and callable(found) else found
    if not callable(found):
        raise NotFoundError(
            f"app={text}: names nothing that can be called; write module:name"
        )
    return found  # type: ignore[no-any-return]
