"""What the programs of measure/ gave, as tables of the docs. Pure."""

from __future__ import annotations

from typing import Any


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


MODES = {
    "preload": "--preload",
    "unsealed": "cow, `cow-seal = off`",
    "sealed": "cow, `cow-hot-code = off`",
    "cow": "cow",
}


def applications(measured: list[dict[str, Any]]) -> str:
    """Real applications, a row a mode: memory in MB, what a request costs.

    Args:
        measured: what `measure/applications.py` gave for each application.
    """
    lines = [
        f"{measured[0]['workers']} workers; MB after {measured[0]['requests']} "
        "requests: private a worker and total PSS; processor time of a request "
        "relative to `--preload`, median and quartiles of blocks that all modes served "
        "in turn:",
        "",
        "| application | | private | total PSS | CPU a request |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for each in measured:
        shown = f"{each['installed'].replace('==', ' ')}, CPython {each['python']}"
        for mode, words in MODES.items():
            if mode not in each["modes"]:
                continue
            lines.append(f"| {shown} | {words} | {_application(each['modes'][mode])} |")
            shown = ""
    return "\n".join(lines)


def _application(figures: dict[str, Any]) -> str:
    private = sum(figures["private_mb"]) / len(figures["private_mb"])
    ratio = figures["ratio"]
    low, high = ratio["quartiles"]
    cost = f"{ratio['median']:.2f} ({low:.2f} to {high:.2f})" if low < high else "1"
    return f"{private:.1f} | {figures['pss_mb']:.0f} | {cost}"


def celery_pools(measured: list[dict[str, Any]]) -> str:
    """A child of Celery's pool and all of a worker, a row an interpreter and mode.

    Args:
        measured: what `measure/celery_pool.py` gave for each interpreter.
    """
    lines = [
        "| CPython | pool | private / child, MB | before its first task "
        "| total PSS, MB | children for 40 tasks, limit 100 MB |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for each in measured:
        for mode, found in each["modes"].items():
            taken = found.get("children_taken", "-")
            lines.append(
                f"| {each['python']} | {mode} | {found['private_mb']:.1f} "
                f"| {found['fresh_private_mb']:.1f} | {found['total_pss_mb']:.0f} "
                f"| {taken} |"
            )
    return "\n".join(lines)


def process_pools(measured: list[dict[str, Any]]) -> str:
    """What a child of multiprocessing copies, a row an interpreter and start method.

    Args:
        measured: what `measure/process_pools.py` gave for each interpreter.
    """
    modes = list(measured[0]["methods"]["fork"])
    lines = [
        "| CPython | start method | " + " | ".join(modes) + " |",
        "| --- | --- | " + "---: | " * len(modes),
    ]
    for each in measured:
        for method, found in each["methods"].items():
            cells = " | ".join(f"{found[mode]:.1f}" for mode in modes)
            lines.append(f"| {each['python']} | {method} | {cells} |")
    return "\n".join(lines)


def quick_start(measured: list[dict[str, Any]]) -> str:
    """The README's first table: its application under three command lines.

    Args:
        measured: what `measure/quick_start.py` gave; the newest interpreter's is shown.
    """
    newest = measured[-1]
    lines = [
        f"Four workers of the [small application below](#quick-start), CPython "
        f"{newest['python']}, after {newest['requests']} requests; all that the kernel "
        "counts (PSS), in MiB:",
        "",
        "| | memory | of one worker alone |",
        "| --- | ---: | ---: |",
    ]
    for line, figures in newest["lines"].items():
        total, private = f"{figures['total_pss']:.0f}", f"{figures['private']:.1f}"
        if "cow" in line:
            total, private = f"**{total}**", f"**{private}**"
        lines.append(f"| `gunicorn {line}` | {total} | {private} |")
    return "\n".join(lines)
