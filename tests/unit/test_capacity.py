"""The limit of memory, on recorded machines: the nearest number is not the tightest."""

from __future__ import annotations

from pathlib import Path

import pytest

from cowpreload.capacity import Capacity, capacity
from cowpreload.units import MIB

GIB = 1024 * MIB
MEMINFO = "MemTotal:       8388608 kB\nMemAvailable:   6291456 kB\n"


def machine(root: Path, files: dict[str, str], meminfo: str = MEMINFO) -> Capacity:
    """The capacity that a machine of these files gives process 7."""
    for name, text in {"proc/meminfo": meminfo, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return capacity(7, root / "proc", root / "cg")


def v2(own: str, **groups: str) -> dict[str, str]:
    found = {"proc/7/cgroup": f"0::{own}\n", "cg/cgroup.controllers": "memory cpu\n"}
    for name, limit in groups.items():
        at = "cg" + name.replace("_", "/")
        found[f"{at}/memory.max"] = f"{limit}\n"
        found[f"{at}/memory.current"] = f"{100 * MIB}\n"
    return found


def test_a_parent_that_is_tighter_than_the_own_group_counts(tmp_path: Path) -> None:
    found = machine(tmp_path, v2("/a/b", _a=str(512 * MIB), _a_b=str(GIB)))
    source = f"{tmp_path}/cg/a/memory.max"
    assert found == Capacity(512 * MIB, source, 100 * MIB, 2)


def test_no_limit_in_any_group_is_the_machine(tmp_path: Path) -> None:
    found = machine(tmp_path, v2("/a/b", _a="max", _a_b="max"))
    assert found == Capacity(8 * GIB, "machine", 2 * GIB, 2)
    assert not found.is_group


def test_a_group_larger_than_the_machine_limits_nothing(tmp_path: Path) -> None:
    assert machine(tmp_path, v2("/a", _a=str(64 * GIB))).source == "machine"


def test_of_version_1_no_limit_is_a_large_number(tmp_path: Path) -> None:
    files = {
        "proc/7/cgroup": "12:cpu:/x\n9:memory:/docker/d\n0::/x\n",
        "cg/memory/docker/d/memory.limit_in_bytes": "9223372036854771712\n",
        "cg/memory/docker/memory.limit_in_bytes": f"{GIB}\n",
        "cg/memory/docker/memory.usage_in_bytes": f"{MIB}\n",
    }
    found = machine(tmp_path, files)
    assert (found.limit, found.used, found.version) == (GIB, MIB, 1)


def test_in_a_container_the_path_of_the_host_is_not_there(tmp_path: Path) -> None:
    files = {
        "proc/7/cgroup": "9:memory:/docker/elsewhere\n",
        "cg/memory/memory.limit_in_bytes": f"{256 * MIB}\n",
    }
    assert machine(tmp_path, files).limit == 256 * MIB
    outside = v2("/../../other") | {"cg/memory.max": f"{128 * MIB}\n"}
    assert machine(tmp_path / "two", outside).limit == 128 * MIB


@pytest.mark.parametrize("meminfo", ["", "MemTotal:\n"])
def test_a_machine_that_shows_nothing_raises_nothing(
    tmp_path: Path, meminfo: str
) -> None:
    assert machine(tmp_path, {}, meminfo) == Capacity(0, "machine", 0, 0)


@pytest.mark.parametrize("line", ["4:memory:/a", "0::/a"])
def test_groups_that_are_not_mounted_are_not_said_to_be_wide(
    tmp_path: Path, line: str
) -> None:
    assert machine(tmp_path, {"proc/7/cgroup": f"{line}\n"}).version == 0


def test_this_machine_has_one() -> None:
    found = capacity()
    assert found.limit > 0
    assert found.source
