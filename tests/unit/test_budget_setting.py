"""What an operator may ask for as `cow-budget`, and the bytes that it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cowpreload.budget import Budget, find
from cowpreload.capacity import Capacity, capacity
from cowpreload.errors import SettingsError
from cowpreload.kinds import CELERY, GUNICORN, UWSGI
from cowpreload.lifecycle import Start
from cowpreload.settings import Settings, declared_on
from cowpreload.settings_given import read, unknown_faults

MIB = 1 << 20
MACHINE = Capacity(8192 * MIB, "machine", 0, 2)
GROUP = Capacity(512 * MIB, "/sys/fs/cgroup/a/memory.max", 0, 2)


@pytest.mark.parametrize(
    ("text", "budget", "shown"),
    [
        ("512M", Budget(size=512 * MIB), "512MiB"),
        ("80%", Budget(percent=80), "80%"),
        (" 12.5 % ", Budget(percent=12.5), "12.5%"),
        ("auto", Budget(auto=True), "auto"),
        ("OFF", Budget(), "off"),
    ],
)
def test_what_is_read_is_shown_again(text: str, budget: Budget, shown: str) -> None:
    settings = read({"budget": text}, environ={})
    assert settings.budget == budget
    assert f" budget={shown} " in Start(settings, GUNICORN).line()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("120%", "is no part of a whole; write one up to 100, as in 80%"),
        ("0%", "is no part of a whole"),
        ("%", "is no part of the memory; write a number and %, as in 80%"),
        ("-5%", "is no part of the memory"),
        ("80", "is that many bytes; write 80%, in an ini of uWSGI's 80%%"),
        ("200", "is that many bytes; write 200M"),
        ("much", "is no size"),
    ],
)
def test_what_is_no_budget_is_refused(text: str, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({"budget": text}, environ={})
    assert caught.value.faults[0].startswith(f"budget={text}: {rule}")


def test_a_part_is_of_the_control_group_or_else_of_the_machine() -> None:
    found = find(Budget(percent=80), GROUP)
    assert found.bytes == 512 * MIB * 8 // 10
    assert found.line == (
        "cow: budget=409MiB (80% of 512MiB, /sys/fs/cgroup/a/memory.max)"
    )
    assert find(Budget(percent=50), MACHINE).bytes == 4096 * MIB
    assert find(Budget(size=MIB), GROUP).line == ""
    assert find(Budget(percent=50), Capacity(0, "machine", 0, 0)).bytes == 0


def test_auto_is_off_where_no_control_group_limits() -> None:
    """80 % of a machine that others use would be nobody's measure."""
    assert find(Budget(auto=True), GROUP).bytes == 512 * MIB * 8 // 10
    assert find(Budget(auto=True), MACHINE).bytes == 0
    assert "budget=off: auto" in find(Budget(auto=True), MACHINE).line


@pytest.mark.parametrize("limited", ["pod", "slice"])
def test_the_nearest_limit_up_the_tree_counts(tmp_path: Path, limited: str) -> None:
    """A pod of version 2, as recorded: its container has no limit of its own, or a
    slice above has a tighter one."""
    groups, proc = tmp_path / "cgroup", tmp_path / "proc"
    pod = groups / "slice" / "pod"
    pod.mkdir(parents=True)
    (groups / "cgroup.controllers").write_text("memory\n")
    for each in (groups / "slice", pod):
        is_limited = each.name == limited
        (each / "memory.max").write_text(f"{400 * MIB}\n" if is_limited else "max\n")
        (each / "memory.current").write_text("1\n")
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cgroup").write_text("0::/slice/pod\n")
    (proc / "meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    found = find(Budget(percent=50), capacity(7, proc, groups))
    assert found.bytes == 200 * MIB
    assert found.line.endswith(f"{limited}/memory.max)")


def test_it_is_off_by_default_and_not_on_celery() -> None:
    assert not Settings().budget
    on = {host: [each.key for each in declared_on(host)] for host in (UWSGI, CELERY)}
    assert "budget" in on[UWSGI]
    assert "budget" not in on[CELERY]
    (fault,) = unknown_faults(["cow_budget"], CELERY)
    assert "a setting for gunicorn and uwsgi alone; remove it" in fault
