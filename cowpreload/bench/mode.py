"""A mode: one way to start the same application. Pure.

The scenarios declare their modes with this; `hall.py` starts them.
"""

from __future__ import annotations

from dataclasses import dataclass

from cowpreload.bench.site import WARMUP

HOSTS = ("gunicorn", "uwsgi")
SHOWN = {"gunicorn": "gunicorn", "uwsgi": "uWSGI"}


@dataclass(frozen=True)
class Mode:
    """How a server is started.

    Attributes:
        name: short, for tables; the same on both hosts.
        host: `gunicorn` or `uwsgi`.
        about: what it does, one line for the docs.
        cow: with cowpreload's worker class or plugin.
        preload: the master loads the application.
        attempt: what the program does at start: see programs/attempts.py.
        settings: variables of the environment, those of cowpreload among them.
        program: the module that is served, one of programs/.
    """

    name: str
    host: str
    about: str
    cow: bool = False
    preload: bool = True
    attempt: str = "plain"
    settings: tuple[tuple[str, str], ...] = ()
    program: str = "cowpreload.bench.programs.attempts"

    @property
    def key(self) -> str:
        """Unique in a scenario: `gunicorn plain`."""
        return f"{self.host} {self.name}"

    @property
    def shown(self) -> str:
        """For people: `uWSGI plain`."""
        return f"{SHOWN[self.host]} {self.name}"


# Each part of what cowpreload does, off; modes switch on what they are about.
IMMORTAL_OFF = ("COW_IMMORTAL", "off")
WARM = ("COW_WARMUP", ",".join(WARMUP))


def alone(host: str) -> Mode:
    """What most sites run: each worker loads the application itself."""
    return Mode("no preload", host, "each worker loads the site", preload=False)


def plain(host: str) -> Mode:
    """The host's own way to share: preloading."""
    return Mode("plain", host, "preload, as the host does it")


def ours(host: str) -> Mode:
    """cowpreload with its defaults and warm-up paths."""
    return Mode(
        "all",
        host,
        "warm up, collect, immortalize where possible, freeze, leave fast",
        cow=True,
        settings=(WARM,),
    )
