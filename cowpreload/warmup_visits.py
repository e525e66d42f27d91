"""Requests in this process, one after another; each answer is handed to a function.

Takes the WSGI or ASGI callable and candidates, which may be made while they are asked
for; the function says whether to go on. A warm up and a trial request the same way.
Must leave no event loop and no thread behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cowpreload.candidates import Answered, Candidate
from cowpreload.deadline import Bounds, named
from cowpreload.errors import is_interrupt
from cowpreload.interface import Interface, as_asgi, kind_of
from cowpreload.settings import Settings
from cowpreload.warmup_asgi import run_asgi
from cowpreload.warmup_wsgi import (
    AGENT,
    default_host,
    header_environ,
    request_wsgi,
    secure_environ,
    wsgi_environ,
)

Headers = tuple[tuple[str, str], ...]

# No login is known by these.
_HARMLESS = {
    *("accept", "accept-encoding", "accept-language", "user-agent"),
    *("x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"),
}


@dataclass(frozen=True)
class Manner:
    """How an application is asked.

    Attributes:
        interface: what the server speaks.
        prefix: SCRIPT_NAME of a WSGI application.
        host: of all requests that name none.
        headers: name and value of each.
        lifespan: whether the server runs that of an ASGI application.
        cookie: of `warmup-user`, for what is requested as that user; "" without one.
    """

    interface: Interface
    prefix: str
    host: str
    headers: Headers = field(repr=False)  # a reporter of errors shows its frames'
    lifespan: bool
    cookie: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        app: Callable[..., Any],
        settings: Settings,
        prefix: str = "",
        interface: Interface | None = None,
        lifespan: bool = True,
    ) -> Manner:
        """As the settings say; an interface that is None goes by the application."""
        return cls(
            interface or kind_of(app) or Interface.WSGI,
            prefix,
            settings.warmup_host or default_host(),
            settings.warmup_header,
            lifespan,
        )

    def each_way(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Each as anybody requests it, then, where there is one, as the user does.

        What redirects the one may answer the other: a page behind a login, and the
        page of the login itself.
        """
        ways = (False, True) if self.cookie else (False,)
        return [replace(each, user=user) for each in candidates for user in ways]

    def headers_of(self, candidate: Candidate) -> Headers:
        """Those of its request; where visitors chose the path, with no login but that
        of the user who is meant for them."""
        headers = self.headers
        if candidate.is_visited:
            headers = tuple(each for each in headers if each[0].lower() in _HARMLESS)
        return (*headers, ("Cookie", self.cookie)) if candidate.user else headers


def visit(
    app: Callable[..., Any],
    candidates: Iterable[Candidate],
    manner: Manner,
    bounds: Bounds,
    answered: Answered,
) -> None:
    """Request them in order, until `answered` says no.

    Raises:
        WarmupError: the lifespan failed, or the end of its loop took too long; and
            whatever `answered` raises.
    """
    if manner.interface is Interface.WSGI:
        _visit_wsgi(app, candidates, manner, bounds, answered)
        return

    def environ(candidate: Candidate) -> dict[str, str]:
        host = candidate.host or manner.host
        base = {"HTTP_HOST": host, "HTTP_USER_AGENT": AGENT, **secure_environ()}
        return base | header_environ(manner.headers_of(candidate))

    run_asgi(as_asgi(app), candidates, environ, bounds, answered, manner.lifespan)


def _visit_wsgi(
    app: Callable[..., Any],
    candidates: Iterable[Candidate],
    manner: Manner,
    bounds: Bounds,
    answered: Answered,
) -> None:
    for each in candidates:
        request = named(request_wsgi, each.frame)
        host = each.host or manner.host
        headers = manner.headers_of(each)
        environ = wsgi_environ(each.path, host, manner.prefix, headers)
        status, fault = 0, None
        try:
            with bounds.over(f"warmup={each.logged}"):
                status = request(app, environ)
        except BaseException as error:
            if is_interrupt(error):
                raise
            fault = error
        if not answered(each, status, fault):
            return
