"""The stages right before the first fork that gunicorn has for itself.

Takes settings and gunicorn's log. Only a strict audit ends the start.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from gunicorn import __version__ as gunicorn_version
from gunicorn.errors import HaltServer

from cowpreload.audit import Descriptors, descriptors
from cowpreload.hosts.gunicorn_signals import running_arbiter
from cowpreload.hosts.stages import look_for_findings, refusal
from cowpreload.settings import Settings

HOST = f"gunicorn {gunicorn_version}"


def run_audit(before: Descriptors, settings: Settings, log: Any) -> int:
    """The number of findings; `before` was open before the application was loaded.

    Raises:
        HaltServer: there are some, and fork-safety is strict.
    """
    # The wake-up pipe of older masters was made after the application was loaded.
    pipe = getattr(running_arbiter(), "PIPE", None) or ()
    findings = look_for_findings(before | descriptors(pipe), settings, log)
    why_not = refusal(findings, settings)
    if why_not:
        raise HaltServer(why_not)
    return findings


def import_control_server(cfg: Any) -> None:
    """Load what gunicorn's master would load after it has forked its first workers.

    What the master writes then, those workers cannot share: it was 0.7 MiB of them.
    """
    if not getattr(cfg, "control_socket_disable", True):
        with contextlib.suppress(Exception):  # the master itself says what is wrong
            importlib.import_module("gunicorn.ctl.server")
