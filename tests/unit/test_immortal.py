"""Immortality as a process sees it; programs of their own, for it cannot be undone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import PROGRAMS, run

from cowpreload import _core
from cowpreload.errors import SettingsError
from cowpreload.hosts.alone import freeze
from cowpreload.immortal import WHY_NOT, _Holder, counted, plan
from cowpreload.settings import Settings
from cowpreload.settings_given import read

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CAN = sys.implementation.name == "cpython" and (3, 12) <= sys.version_info < (3, 16)
can = pytest.mark.skipif(not CAN, reason=f"no immortality here: {WHY_NOT}")


def program(name: str, *arguments: str) -> list[str]:
    """The lines that a program of tests/programs printed."""
    done = run(str(PROGRAMS / name), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_this_interpreter_is_known() -> None:
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    assert (WHY_NOT == "") is (CAN and not free_threaded)


@can
def test_the_self_check_sees_a_count_that_moves() -> None:
    """The same reads of an object that is not immortal."""
    for item in ([None], "".join(["c", "ow"])):
        holder = _Holder(item)
        assert counted(holder, id(item))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(freeze="off"), "freeze=off"),
        (Settings(exit="normal"), "exit=normal"),
        (Settings(immortal="off"), ""),
    ],
)
def test_other_settings_keep_the_heap_mortal(settings: Settings, reason: str) -> None:
    walk, why_not = plan(settings)
    assert walk is None
    assert why_not.startswith(reason if CAN or not reason else WHY_NOT)


def test_on_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(SettingsError) as caught:
        read({"immortal": "on"}, {}, immortal_why_not="it is another interpreter")
    assert caught.value.faults == (
        "immortal=on: it is another interpreter; set it to auto or off",
    )
    with pytest.raises(SettingsError, match="immortal=on: exit=normal: a whole final"):
        read({"immortal": "on", "exit": "normal"}, {})
    assert read({"immortal": "on"}, {}).immortal == "on"
    with pytest.raises(SettingsError, match="immortal=of: "):
        freeze("of")


@can
def test_reading_all_that_is_inherited_copies_next_to_nothing() -> None:
    """Every kind of object, read in every way that counts a reference."""
    figures = {}
    for mode in ("on", "off", "unhashed"):
        (line,) = program("read_heap.py", mode)
        heap, private = map(int, line.split())
        figures[mode] = private / heap
    assert figures["on"] < 0.01
    assert figures["off"] > 0.5
    assert figures["unhashed"] > 0.1, "filling hashes saves nothing"


@can
def test_what_the_collector_does_not_list_is_immortal_too() -> None:
    """Keys, names, code and its parts, untracked tuples, static types."""
    lines = program("immortal_kinds.py")
    assert len(lines) > 20
    assert [line for line in lines if not line.endswith(" immortal")] == []


@can
def test_a_constant_that_was_loaded_before_the_freeze_is_not_counted() -> None:
    """3.14 went on counting it: code decides when it first runs."""
    mortal = "counted" if sys.version_info < (3, 15) else "not counted"
    assert program("constants.py") == [
        f"mortal: {mortal}",
        "text: not counted",
        "behind an extended argument: not counted",
        f"kept mortal: {mortal}",
        "instructions: the same",
    ]


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_what_is_kept_mortal_is_freed_in_a_worker(mode: str) -> None:
    """And what a worker made; what was preloaded only where it is not immortal."""
    freed = "freed, weak reference called"
    assert program("keep_mortal.py", mode) == [
        f"kept: {freed}",
        "preloaded: stays" if CAN and mode == "auto" else f"preloaded: {freed}",
        f"young: {freed}",
        f"late: {freed}",
    ]


def test_freeze_reports_what_it_did() -> None:
    done = run("-c", "import cowpreload; print(cowpreload.freeze())")
    assert "FreezeReport(objects=" in done.stdout
    if CAN:
        assert "why_mortal=''" in done.stdout
        assert "objects=0, kept" not in done.stdout
    else:
        assert f"why_mortal={WHY_NOT!r}" in done.stdout


@can
def test_a_second_freeze_takes_what_came_since() -> None:
    code = (
        "import cowpreload, sys\n"
        "held = {}\n"
        "first = cowpreload.freeze().immortal.objects\n"
        "held['since'] = ''.join(['a', 'b'])\n"
        "second = cowpreload.freeze().immortal.objects\n"
        "print(sys.getrefcount(held['since']) > 1 << 29, 0 < second < first / 4)"
    )
    assert run("-c", code).stdout == "True True\n"


@can
def test_an_immortal_process_can_finalize_all_the_same() -> None:
    """Nobody should (nothing is freed), but a master may end by an exception."""
    code = (
        "import cowpreload, json, decimal, asyncio, sqlite3, logging, dataclasses\n"
        "cowpreload.freeze()\n"
        "raise SystemExit(7)"
    )
    done = run("-X", "faulthandler", "-c", code)
    assert (done.returncode, done.stderr) == (7, "")


def test_the_multiprocessing_example() -> None:
    done = run(str(EXAMPLES / "multiprocessing_fork.py"))
    assert done.returncode == 0, done.stderr
    share = float(done.stdout.rpartition("private=")[2].partition("%")[0])
    assert share < (10 if CAN else 100)


@can
def test_the_walk_counts_each_object_once() -> None:
    code = (
        "import gc, cowpreload\n"
        "from cowpreload import _core\n"
        "first = cowpreload.freeze()\n"
        "gc.unfreeze()\n"
        "again = _core.immortalize([])\n"
        "print(again[0] == '', again[1] < first.immortal.objects / 100)"
    )
    assert run("-c", code).stdout == "True True\n"
    assert _core.immortal_why_not() == ""


@can
def test_an_extension_of_the_old_stable_abi_frees_nothing(tmp_path: Path) -> None:
    """It counts on immortal objects, 2^33 times; see docs/immortality.md."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{sysconfig.get_paths()['include']}"]
    command += [str(PROGRAMS / "abi311.c"), "-o", str(tmp_path / f"abi311{suffix}")]
    subprocess.run(command, check=True)
    lines = program("abi311_use.py", str(tmp_path))
    assert lines[0] == "pairs: alive immortal"
    assert [line.split()[1] for line in lines] == ["alive"] * 3
