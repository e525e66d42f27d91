"""The pages that are requested: what plain workers answer, and who answers otherwise.

Takes running servers; keeps status and body of each page in each way. Decides which
pages are requested at all: those that plain workers serve without an error.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cowpreload.bench.client import Load, LoadReport
from cowpreload.bench.server import Server
from cowpreload.errors import NotFoundError
from cowpreload.tryout import answers
from cowpreload.tryout.advice import hint
from cowpreload.tryout.logs import tail
from cowpreload.tryout.records import Answer, Difference, Plan, Way

LOADS = 120.0  # seconds that one load may take
SAMPLES = 4  # answers of each page that are compared
COMPARED = 30  # pages that are
_SHOWN = 6
Bodies = dict[str, list[tuple[int, answers.Tokens]]]


class Pages:
    """The pages of one plan.

    Attributes:
        plan: with what plain workers serve alone, once they were asked.
    """

    def __init__(self, plan: Plan, note: Callable[[str], None]) -> None:
        self.plan, self._note = plan, note
        self._plain = plan.ways[0].name
        self._bodies: dict[str, Bodies] = {}
        self._usual: dict[str, set[int]] = {}

    def ask(self, way: Way, server: Server) -> None:
        """Request each page a few times; plain workers come first.

        Raises:
            NotFoundError: they serve none of them; the text has the log's end.
        """
        found: Bodies = {}
        for path in self.plan.paths[:COMPARED]:
            given = [
                fetch(server.port, path, self.plan.headers) for _ in range(SAMPLES)
            ]
            found[path] = [
                (each.status, answers.tokens(each, server.port)) for each in given
            ]
        self._bodies[way.name] = found
        if way.name == self._plain:
            self._usual = {
                path: {status for status, _ in given} for path, given in found.items()
            }
            self._keep(server)

    def _keep(self, server: Server) -> None:
        worst = {path: max(statuses) for path, statuses in self._usual.items()}
        failed = [path for path, status in worst.items() if not 0 < status < 400]
        served = tuple(path for path in self.plan.paths if path not in failed)
        shown = ", ".join(f"{path} ({worst[path]})" for path in failed[:_SHOWN])
        if not served:
            raise NotFoundError(
                f"app={self.plan.app}: no page answers without an error: {shown}; "
                f"{hint(self._usual)}the server's log ends with\n{tail(server.log)}"
            )
        if failed:
            self._note(
                f"{len(failed)} of {len(self.plan.paths)} paths answer with an error "
                f"and are left out: {shown}."
            )
        if any(worst[path] >= 500 for path in failed):
            self._note(f"The log of plain workers ends with\n{tail(server.log)}")
        if all(300 <= worst[path] < 400 for path in served if path in worst):
            self._note(
                "All pages only redirect, and what they redirect to was not requested: "
                "name it with --get, or what it asks for with --header (a Cookie of a "
                "login, 'X-Forwarded-Proto: https')."
            )
        warm = tuple(each for each in self.plan.warmup if each not in failed)
        self.plan = replace(self.plan, paths=served, warmup=warm or ("auto",))

    def statuses(self) -> tuple[tuple[str, int], ...]:
        """What plain workers answer first, by path."""
        plain = self._bodies.get(self._plain, {})
        return tuple((path, given[0][0]) for path, given in plain.items())

    def uncompared(self) -> tuple[str, ...]:
        """Pages that differ in length from request to request."""
        plain = self._bodies.get(self._plain, {})
        return tuple(
            path
            for path, given in plain.items()
            if answers.varies([body for _, body in given])
        )

    def differences(self, way: Way) -> Iterator[Difference]:
        """What `way` answers otherwise than plain workers."""
        plain, other = (self._bodies.get(each, {}) for each in (self._plain, way.name))
        for path in self.plan.paths:
            if way.name != self._plain and path in other:
                found = answers.difference(path, plain[path], other[path])
                if found:
                    yield found

    def mix(self, requests: int) -> list[str]:
        """So many paths, each page as often as the others."""
        paths = self.plan.paths
        return [paths[number % len(paths)] for number in range(requests)]

    def load(self, server: Server, paths: Sequence[str]) -> LoadReport:
        """Request them, and check that each has a status that the page has had."""

        def check(path: str, status: int, body: bytes) -> bool:
            return status in self._usual.get(path, {status})

        return (
            Load(
                server.port,
                paths,
                requests=len(paths),
                seconds=LOADS,
                concurrency=max(4, self.plan.workers),
                headers=dict(self.plan.headers),
                check=check,
            )
            .start()
            .finish()
        )


def fetch(port: int, path: str, headers: Sequence[tuple[str, str]]) -> Answer:
    """One request on a connection of its own; status 0 where no answer came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return Answer(0, b"")
    finally:
        connection.close()
