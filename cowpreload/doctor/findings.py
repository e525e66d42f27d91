"""What was seen of an application, as facts and advice. Pure.

Takes Seen; gives a Part, Advice by size, and the application's own lines where it
failed. Each figure of the advice is a difference of two workers that were measured, or
was measured in one.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

from cowpreload.diagnosis import Advice, Fact, Part, bad, ok, warn
from cowpreload.doctor.attend import Seen
from cowpreload.units import MIB, format_size
from cowpreload.why.advice import causes

_WORTH = MIB // 2  # of an advice
_SLOW = "; it is given up at "  # of the line on a page that takes long
_SHOWN = 3
_LINES = 20  # of what the application has printed


def application(seen: Seen, app: str) -> Part:
    """The facts, in the order in which they were seen."""
    found = [*_loaded(seen), *_pages(seen), *_fork_safety(seen), *_frozen(seen)]
    found += [*_workers(seen), *_sharing(seen), *_failed(seen)]
    return Part(f"application {app}", tuple(found))


def printed(seen: Seen) -> tuple[str, ...]:
    """The traceback, else what the application has printed, where it failed."""
    trace = tuple(seen.said.get("traceback", ()))
    if trace or seen.done:
        return trace
    return tuple(seen.printed.splitlines()[-_LINES:])


def _mib(size: int) -> str:
    return f"{size / MIB:.1f} MiB"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _loaded(seen: Seen) -> Iterator[Fact]:
    loaded = seen.said.get("loaded")
    if not loaded:
        return
    text = f"{loaded['seconds']:.1f} s, {format_size(loaded['private'])}"
    yield ok("load", f"{text}, {_count(loaded['modules'], 'module')}")
    clean = seen.clean_private
    if clean and loaded["private"] - clean >= _WORTH:
        yield warn("debug hooks", f"without them it takes {format_size(clean)}")


def _pages(seen: Seen) -> Iterator[Fact]:
    for line in [each for each in seen.lines if _SLOW not in each][:_SHOWN]:
        yield warn("warm-up", line.removeprefix("cow: "))
    if "tried" not in seen.said:
        return
    tried: list[dict[str, Any]] = seen.said["tried"]
    dropped = [each for each in tried if each["dropped"]]
    if seen.said["note"]:
        yield warn("pages", seen.said["note"])
    else:
        warmed = f"{len(tried) - len(dropped)} of {len(tried)} found would be warmed"
        rest = f"{seen.said['left_out']} left out by name, {seen.said['named']} listed"
        yield ok("pages", f"{warmed}, {rest}")
    for each in [each for each in dropped if not 300 <= each["status"] < 500][:_SHOWN]:
        yield warn("page", f"{each['path']} is not warmed: {each['dropped']}")
    served = seen.workers.get("warm", {}).get("pages", ())
    for each in [each for each in served if each["dropped"]][:_SHOWN]:
        yield warn("page", f"{each['path']} {each['dropped']} in a worker")


def _fork_safety(seen: Seen) -> Iterator[Fact]:
    if "audit" not in seen.said:
        return
    for what, where, advice in seen.said["audit"]:
        yield bad("fork safety", f"{what} {where}: {advice}")
    if not seen.said["audit"]:
        yield ok("fork safety", "nothing was left open that does not survive a fork")


def _frozen(seen: Seen) -> Iterator[Fact]:
    found = seen.said.get("frozen")
    if not found:
        return
    text = f"{_count(found['immortal'], 'object')} immortal"
    if found["why_mortal"]:
        yield warn("immortal", found["why_mortal"])
        text = f"{_count(found['objects'], 'container')} frozen"
    yield ok(
        "freeze",
        f"{text}, code of {_count(found['hot_codes'], 'function')} side by side, "
        f"{format_size(found['sealed'])} of holes filled; heap "
        f"{format_size(found['heap'])}",
    )
    for each in found["faults"]:
        yield warn("freeze", each.removeprefix("cow: "))
    for each in found["unsealed"]:
        yield warn("seal", f"left as it is: {each}")


def _workers(seen: Seen) -> Iterator[Fact]:
    warm = seen.workers.get("warm")
    if not warm:
        return
    others = [
        f"{_mib(seen.workers[way]['private'])} {how}"
        for way, how in (("cold", "without a warm-up"), ("preload", "as --preload"))
        if way in seen.workers
    ]
    yield ok(
        "worker",
        f"{_mib(warm['private'])} private after {_count(warm['requests'], 'request')} "
        f"({', '.join(others)}), {format_size(warm['shared'])} shared",
    )


def _sharing(seen: Seen) -> Iterator[Fact]:
    if seen.why_not:
        yield warn("why", seen.why_not)
    if seen.sharing is None:
        return
    page = seen.sharing.page_size
    rows = [
        f"{row.cause.value} {_mib(row.pages * page)}"
        for row in seen.sharing.rows[:_SHOWN]
    ]
    yield ok("why", ", ".join(rows))


def _failed(seen: Seen) -> Iterator[Fact]:
    if "error" in seen.said:
        yield bad(seen.phase, seen.said["error"])
    elif seen.overdue:
        text = "not through in time (--timeout); where it hangs is below"
        yield bad(seen.phase, text)
    elif not seen.done:
        yield bad(seen.phase, f"the application ended the process{_how(seen)}")
    if "failed" in seen.said:
        yield bad("worker", f"raised {seen.said['failed']}")


def _how(seen: Seen) -> str:
    code = seen.said.get("exit", 0)
    if code >= 0:
        return f" with code {code}"
    try:
        return f" by {signal.Signals(-code).name}"
    except ValueError:
        return f" by signal {-code}"


# ---- advice ------------------------------------------------------------------


def advise(seen: Seen) -> tuple[Advice, ...]:
    """Largest first; what saves less than half a MiB is none."""
    found = [*_ways(seen), *_imports(seen), *_kept(seen), *_hooks(seen), *_why(seen)]
    return tuple(sorted(found, key=lambda each: -each.bytes))


def _private(seen: Seen, way: str) -> int:
    return int(seen.workers.get(way, {}).get("private", 0))


def _ways(seen: Seen) -> Iterator[Advice]:
    plain, cold, warm = (_private(seen, way) for way in ("preload", "cold", "warm"))
    if not (plain and cold):
        return
    after = f"after {_count(seen.workers['cold']['requests'], 'request')}"
    if plain - cold >= _WORTH:
        yield Advice(
            plain - cold,
            "serve with --worker-class cow (uWSGI: need-plugin = cow): private "
            f"{after} was {_mib(cold)}, and {_mib(plain)} as --preload alone has it",
        )
    if warm and cold - warm >= _WORTH:
        yield Advice(
            cold - warm,
            f"set {_warmup(seen)}: private {after} was {_mib(warm)}, "
            f"and {_mib(cold)} without a warm-up",
        )


def _warmup(seen: Seen) -> str:
    """What warms the pages that were requested: `auto`, where it finds any."""
    auto = {each["path"] for each in seen.said.get("tried", ())}
    pages = [each["path"] for each in seen.workers["warm"]["pages"]]
    named = [path for path in pages if path not in auto][:_SHOWN]
    values = [*(["auto"] if auto & set(pages) else []), *named]
    return " and ".join(f"cow-warmup = {each}" for each in values)


def _imports(seen: Seen) -> Iterator[Advice]:
    still = {each["module"] for each in seen.workers.get("warm", {}).get("imports", ())}
    for each in seen.workers.get("cold", {}).get("imports", ()):
        if each["bytes"] < _WORTH:
            continue
        but = "not even the warm-up loads it" if each["module"] in still else ""
        yield Advice(
            each["bytes"],
            f"import {each['module']} when the application is loaded: {each['path']} "
            f"imports it at {each['where']}, in each worker; "
            f"{but or 'a warm-up of that page does it too'}",
        )


def _kept(seen: Seen) -> Iterator[Advice]:
    """Pages that no warm-up takes, and that make much."""
    for each in seen.said.get("tried", ()):
        if each["dropped"] and each["private"] >= 2 * _WORTH:
            yield Advice(
                each["private"],
                f"look at {each['path']}: its first request took that, and no warm-up "
                f"takes it ({each['dropped']}); what it keeps is each worker's own, "
                "cow-max-private limits it",
            )


def _hooks(seen: Seen) -> Iterator[Advice]:
    private = seen.said.get("loaded", {}).get("private", 0)
    if seen.clean_private and private - seen.clean_private >= _WORTH:
        yield Advice(
            private - seen.clean_private,
            "leave the debug hooks off (-X dev, PYTHONMALLOC, PYTHONTRACEMALLOC): the "
            f"master's heap was {_mib(private)} after the load with them, and "
            f"{_mib(seen.clean_private)} without",
        )


def _why(seen: Seen) -> Iterator[Advice]:
    if seen.sharing is None:
        return
    for size, text in causes(seen.sharing)[:_SHOWN]:
        if size >= _WORTH:
            yield Advice(size, f"of a warm worker, {text}")
