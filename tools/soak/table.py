"""A soak as a table: a row a figure, a column a server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from soak.result import HostResult, from_json
from soak.slopes import Slope


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "0"


def _slope(slope: Slope | None) -> str:
    if slope is None:
        return "-"
    if slope.low is None or slope.high is None:
        return f"{slope.first:.1f} → {slope.last:.1f}; too short to tell"
    return (
        f"{slope.first:.1f} → {slope.last:.1f}; {slope.per_hour:+.1f}/h "
        f"({slope.low:+.1f} to {slope.high:+.1f})"
    )


def _why(each: HostResult) -> str:
    if not each.cow:
        return "-"
    failures = len(each.why["failures"])
    return f"{each.why['runs']}, {failures} ({each.why['gone']} gone)"


def _rows(each: HostResult) -> dict[str, str]:
    ours = "{}" if each.cow else "-"
    return {
        "minutes; quiet at the end": (
            f"{each.seconds / 60:.1f}; {each.quiet_seconds:.0f} s"
        ),
        "requests": str(each.requests),
        "on kept connections": str(each.kept),
        "lost, explained": _counts(each.explained),
        "lost, unexplained": str(len(each.unexplained)),
        "done to it": _counts(each.acts),
        "recycled": ours.format(_counts(each.recycled)),
        "killed by a limit": ours.format(_counts(each.killed)),
        "recycled in the quiet end": ours.format(each.quiet_recycled),
        "workers that became ready": ours.format(each.generations),
        "starts, freezes": ours.format(f"{each.boards}, {each.freezes}"),
        "descriptors of the master": _slope(each.slopes["descriptors"]),
        "master private, MiB": _slope(each.slopes["master private"]),
        "master PSS, MiB": _slope(each.slopes["master PSS"]),
        "master resident, MiB": _slope(each.slopes["master resident"]),
        "fresh worker private, MiB": _slope(each.slopes["fresh worker"]),
        "zombies, processes left": f"{each.zombies}, {each.left}",
        "tickets held at most, kept at the end": ours.format(
            f"{each.tickets}, {each.tickets_left}"
        ),
        "`why`: runs, failures": _why(each),
        "workers that ended otherwise": str(len(each.unexpected)),
    }


def table(results: Sequence[HostResult]) -> str:
    """Markdown; a slope is an hour's, with its interval at 95 %."""
    names = [each.host + ("" if each.cow else ", without us") for each in results]
    lines = ["| | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    columns = [_rows(each) for each in results]
    for name in columns[0]:
        lines.append(f"| {name} | " + " | ".join(each[name] for each in columns) + " |")
    return "\n".join(lines)


def from_run(run: Mapping[str, Any]) -> str:
    """What a JSON file tells: when and where, the table, and who looked on."""
    hosts = [from_json(each) for each in run["hosts"]]
    looked = ", ".join(
        f"{each['runs']} of {name} ({len(each['failures'])} failed)"
        for name, each in run["looked"].items()
    )
    return "\n".join(
        [
            f"{run['at'][:10]}, CPython {run['python']}, {run['machine']}, "
            f"load average {run['load_average']:.0f}, seed {run['seed']}:",
            "",
            table(hosts),
            "",
            f"Of all servers at once: {looked}. Faults: {len(run['faults'])}.",
        ]
    )
