"""A master that serves, as hosts/learning.py and hosts/rewarming.py see it.

Each host has one: gunicorn_serving.py, uwsgi_serving.py. None of its functions may
raise, but for what `own` names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from cowpreload.forks import Forks
from cowpreload.freezing import Walk
from cowpreload.settings import Settings
from cowpreload.warmup_visits import Manner


def as_another(uid: int) -> str:
    """Why this process requests nothing that visitors have chosen, or "".

    Args:
        uid: of the workers. What visitors reach must not run as root instead.
    """
    own = os.geteuid()
    return "" if uid == own else f"the master runs as uid={own}, the workers as {uid=}"


@dataclass(frozen=True)
class Part:
    """An application of this server, and what is requested of it.

    Attributes:
        manner: how it is asked.
        serves: whether a path is this application's.
    """

    app: Callable[..., Any]
    manner: Manner
    serves: Callable[[str], bool] = lambda path: True


class Serving(Protocol):
    """What its host knows of a master.

    Attributes:
        own: exceptions by which the host ends itself, in whatever it calls.
        at_fork: whether its forks call what os.register_at_fork() was given.
        forks: how it forks the child of a trial.
    """

    own: tuple[type[BaseException], ...]
    at_fork: bool
    forks: Forks

    def say(self, line: str) -> None:
        """Log one line."""

    def warn(self, line: str) -> None:
        """Log one line on a fault."""

    def say_of_page(self, line: str) -> None:
        """What visitors have requested is nobody's but the operator's, who asks for
        it."""

    def say_raised(self, line: str) -> None:
        """Log one line, and the traceback of the exception that is being handled."""

    def workers(self) -> int:
        """How many are wanted."""

    def is_alone(self) -> bool:
        """Whether it goes on as it is: nobody ends, reloads or takes over."""

    def parts(self, settings: Settings) -> list[Part]:
        """The applications, asked as `settings` say."""

    def walk(self, settings: Settings) -> Walk | None:
        """What makes the heap immortal again."""

    def at_rest(self) -> contextlib.AbstractContextManager[Callable[[], bool]]:
        """Around what may take seconds: no signal is lost that comes.

        Gives a function that says whether one has come; it is obeyed after that.
        """
