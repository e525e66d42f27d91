"""Events: what `cow-event-log` can say, kind by kind and key by key. Pure.

Every kind is declared here once; docs/metrics.md renders the table. A record that has
a log line gives its event too, so that both are of one fact. Keys carry their units:
whole bytes, seconds. Must not read a clock, a file or a setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

# Of every line; event_log.py adds them.
COMMON: Final = {
    "time": "when the master wrote the line: RFC 3339, UTC, milliseconds",
    "event": "one of the kinds below",
    "master_pid": "who wrote it; a server that replaces another has a new one",
}

_WORKER = {
    "worker": "its slot, from 1",
    "generation": "how often the slot was filled",
    "pid": "of the worker",
}
_HEAP = {
    "objects": "containers that the collector no longer looks at",
    "immortal_objects": "objects whose count is no longer written",
    "sealed_bytes": "holes that were filled",
    "inherited_bytes": "the master's memory, which workers inherit",
}


@dataclass(frozen=True)
class Kind:
    """A kind of event: when it comes, and what its keys mean."""

    when: str
    keys: Mapping[str, str]


KINDS: Final = {
    "start": Kind(
        "the settings are read; a reload of uWSGI's is a start of its own",
        {
            "host": "`gunicorn` or `uwsgi`",
            "host_version": "its version; null: not known",
            "python_version": "of the interpreter",
            "cowpreload_version": "ours",
            "settings": "the settings in effect, as texts, as the log shows them",
        },
    ),
    "settings": Kind(
        "a reload of gunicorn's has changed settings",
        {"host": "`gunicorn`", "settings": "as of a start"},
    ),
    "warm_up": Kind(
        "the warm up at the start is over, if there was one",
        {
            "pages": "how many were warmed, by source: list, route, file, traffic",
            "requests": "that were made",
            "seconds": "that it took",
            "grew_bytes": "what the master grew by",
        },
    ),
    "finding": Kind(
        "the audit found what does not survive a fork; one event each",
        {
            "what": "the kind of thing",
            "where": "which one",
            "advice": "what to do",
        },
    ),
    "freeze": Kind(
        "the heap is collected, immortal, frozen and sealed: workers may be forked",
        {
            **_HEAP,
            "hot_code_objects": "code objects that were laid side by side",
            "warmup_requests": "made before",
            "findings": "of the audit",
            "seconds": "since the start, all stages together",
            "freeze_seconds": "of them, to collect, make immortal and freeze; null: "
            "not frozen",
        },
    ),
    "new_worker": Kind(
        "a worker can serve",
        {
            **_WORKER,
            "private_bytes": "its private memory then",
            "shared_bytes": "its shared memory, at its first reading",
            "boot_seconds": "from its slot's filling until it could serve",
        },
    ),
    "recycling": Kind(
        "a worker was told to go; it decides itself, and the master writes it",
        {
            **_WORKER,
            "action": "`recycled` after its requests, `killed`, or `unheeded`: told a "
            "second time",
            "reason": "`max-private`, `max-growth`, `budget`, `max-private-hard`, "
            "`unheeded`, `room`: little memory is left to all, `pressure`: processes "
            "wait for memory, or `renewed`: a warmer heap is there to fork",
            "private_bytes": "its private memory then",
            "limit_bytes": "the limit that it has passed; null: none",
            "total_bytes": "of the whole server, where that limit is its budget, or "
            "null",
            "left_bytes": "of `room`: what was left, or null",
            "stalled_share": "of `pressure`: the part of the time in which a process "
            "waited, or null",
            "age_seconds": "since it was forked",
            "leaving_seconds": "since it was first told; null: this is the first time",
            "missed": "decisions on this slot since the last event, which are not in "
            "the log",
        },
    ),
    "no_room": Kind(
        "the server is over its budget, and recycling a worker would not help",
        {
            "budget_bytes": "what it may take",
            "total_bytes": "what it takes",
            "workers": "that it has",
            "fresh_bytes": "private memory of a fresh one",
            "fits": "how many fresh ones there is room for",
        },
    ),
    "warm_up_anew": Kind(
        "the running master has warmed up from traffic",
        {
            **_HEAP,
            "pages": "that were warmed",
            "dropped": "that failed",
            "seconds": "that the master was busy with it",
            "reason": "why nothing was warmed, or null",
        },
    ),
    "warm_up_judged": Kind(
        "the first worker of the warmer heap has grown, less or not",
        {
            "worker": "its slot",
            "grown_bytes": "its growth",
            "before_bytes": "that of the worker before it",
            "confirmed": "whether the others are replaced, too",
        },
    ),
    "lost": Kind(
        "the file takes lines again, after some that it did not take",
        {"events": "how many are missing"},
    ),
    "end": Kind(
        "the master is told to end, or to reload (uWSGI); of workers that finish their "
        "requests, more may follow",
        {"seconds": "since its start"},
    ),
}


@dataclass(frozen=True)
class Event:
    """One line of the event log, without what all lines have.

    Attributes:
        kind: one of KINDS.
        values: by key, in the order of the declaration.
    """

    kind: str
    values: Mapping[str, Any]

    def line(self, common: Mapping[str, Any]) -> str:
        """The JSON object; `common` are the values of COMMON but for the kind."""
        head = {key: self.kind if key == "event" else common[key] for key in COMMON}
        return json.dumps({**head, **self.values}, default=str)


def event(kind: str, **values: Any) -> Event:
    """Make an Event.

    Raises:
        ValueError: a key is missing, or not declared.
    """
    keys = KINDS[kind].keys
    if keys.keys() != values.keys():
        odd = ", ".join(sorted(keys.keys() ^ values.keys()))
        raise ValueError(f"event={kind}: declared and given keys differ: {odd}")
    return Event(kind, {key: values[key] for key in keys})


def whole(seconds: float) -> float:
    """Seconds to the millisecond."""
    return round(seconds, 3)


class Fact(Protocol):
    """What is said in two ways: a line of the log, and an event."""

    def line(self) -> str:
        """One log line, without a newline."""

    def event(self) -> Event:
        """The same for the event log."""


def common_table() -> str:
    """What every line has, as docs/metrics.md shows it."""
    rows = ["| key | meaning |", "| --- | --- |"]
    return "\n".join(rows + [f"| `{key}` | {help} |" for key, help in COMMON.items()])


def table() -> str:
    """The kinds and their keys, as docs/metrics.md shows them."""
    rows = ["| event | when | keys |", "| --- | --- | --- |"]
    rows += [
        f"| `{name}` | {kind.when} | "
        + "; ".join(f"`{key}`: {help}" for key, help in kind.keys.items())
        + " |"
        for name, kind in KINDS.items()
    ]
    return "\n".join(rows)
