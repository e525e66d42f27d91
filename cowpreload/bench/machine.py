"""What a result was measured on: the machine and the versions of what ran."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cowpreload._version import __version__
from cowpreload.capacity import meminfo

PACKAGES = ("django", "gunicorn", "uwsgi")


def available() -> int:
    """Bytes that the machine can still give."""
    return meminfo("MemAvailable")


def machine() -> dict[str, object]:
    """Processor, memory (bytes) and kernel; no name and no address."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory": meminfo("MemTotal"),
        "swap": meminfo("SwapTotal"),
        "kernel": platform.release(),
    }


def busy() -> str:
    """What to say of a machine that does other work; nothing where it does not."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores:
        return ""
    return (
        f"begun while the machine did other work (load {load:.0f} on {cores} cores): "
        "times say little, memory is what it is"
    )


def versions() -> dict[str, str]:
    """Of the interpreter and of each package; what is not installed is left out."""
    found = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "cowpreload": __version__,
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def missing() -> list[str]:
    """The packages that a scenario needs and that are not here."""
    return [name for name in PACKAGES if name not in versions()]
