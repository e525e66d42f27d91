"""Measured figures as tables: for a terminal, README.md and docs. Pure."""

from __future__ import annotations

from typing import Any

from cowpreload.units import MIB


def _cells(figures: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            row["mode"],
            f"{row['private'] / MIB:.1f}",
            f"{row['shared'] / MIB:.1f}",
            f"{row['total_pss'] / MIB:.0f}",
            f"{row['rate']:.2f}",
            str(row["recyclings"]),
        )
        for row in figures["rows"]
    ]


HEAD = ("mode", "private/worker", "shared/worker", "total PSS", "req/s", "recycled")


def terminal(figures: dict[str, Any]) -> str:
    """The table at 80 columns, sizes in MiB, rate relative to the plain host."""
    head = "{:<19}{:>15}{:>14}{:>11}{:>8}{:>10}"
    lines = [head.format(*cells) for cells in [HEAD, *_cells(figures)]]
    return "\n".join(lines)


def markdown(figures: dict[str, Any]) -> str:
    """The table of README.md."""
    lines = [
        f"CPython {figures['python']}, Django {figures['django']}, "
        f"gunicorn {figures['gunicorn']}, uWSGI {figures['uwsgi']}; "
        f"{figures['workers']} workers, {figures['requests']} requests; MiB; "
        "req/s relative to the plain host:",
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- " + "| ---: " * (len(HEAD) - 1) + "|",
    ]
    lines += ["| " + " | ".join(cells) + " |" for cells in _cells(figures)]
    return "\n".join(lines)


def steps(measured: list[dict[str, Any]]) -> str:
    """The ablation, a row a step: private / shared / PSS in MB, a column a version.

    Args:
        measured: what `measure/ablation.py` gave for each interpreter.
    """
    names = list(dict.fromkeys(name for each in measured for name in each["steps"]))
    versions = [each["python"] for each in measured]
    lines = [
        "A worker after "
        f"{measured[0]['requests']} requests that read the whole catalogue; MB, "
        "private / shared / PSS (of two processes, master and worker):",
        "",
        "| | " + " | ".join(versions) + " |",
        "| --- " + "| ---: " * len(versions) + "|",
    ]
    for name in names:
        cells = [_step(each["steps"].get(name)) for each in measured]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _step(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return "-"
    return " / ".join(
        f"{figures[name]:.1f}" if name == "private_mb" else f"{figures[name]:.0f}"
        for name in ("private_mb", "shared_mb", "pss_mb")
    )


def shares(measured: list[dict[str, Any]]) -> str:
    """Private memory of a worker on the hosts, a row a version, a column a mode.

    Args:
        measured: what `measure/servers.py` gave for each interpreter.
    """
    modes = list(measured[0]["modes"])
    lines = [
        "Private memory of the largest of 4 workers, MB, and its share of the heap:",
        "",
        "| CPython | heap | " + " | ".join(modes) + " |",
        "| --- | ---: " + "| ---: " * len(modes) + "|",
    ]
    for each in measured:
        found = [each["modes"][mode] for mode in modes]
        cells = [
            f"{max(one['private_mb']):.1f} ({100 * one['largest_share']:.1f} %)"
            for one in found
        ]
        heap = f"{found[0]['heap_mb']:.0f}"
        lines.append(f"| {each['python']} | {heap} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
