"""What `cowpreload doctor` says of recorded machines, interpreters and servers.

Each file of recorded/machines/ is one machine: the files that were read, by path.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cowpreload.diagnosis import Advice, Diagnosis, Part, bad, ok, warn
from cowpreload.doctor.checks import INTERPRETER, MACHINE, part
from cowpreload.doctor.interpreter import Interpreter, read_interpreter
from cowpreload.doctor.machine import Machine, read_machine
from cowpreload.doctor.server_checks import SERVERS
from cowpreload.doctor.servers import Servers
from cowpreload.report.doctor import WIDTH, doctor_json, doctor_text
from cowpreload.units import MIB

RECORDED = Path(__file__).parent / "recorded" / "machines"


def machine(name: str, root: Path, memfd: str = "") -> Machine:
    for path, text in json.loads((RECORDED / f"{name}.json").read_text()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return read_machine(root / "proc", root / "sys", memfd=memfd)


def not_ok(found: Part) -> dict[str, str]:
    return {each.name: each.text for each in found.facts if each.status.value != "ok"}


def said(found: Part) -> dict[str, str]:
    return {each.name: each.text for each in found.facts}


def test_a_root_of_a_machine_with_version_1_has_nothing_to_change(
    tmp_path: Path,
) -> None:
    found = part("machine", MACHINE, machine("root-v1", tmp_path))
    assert set(not_ok(found)) == {"pagemap"}  # what a folder cannot play
    assert said(found)["memory limit"].endswith("no control group (v1) is tighter")
    assert said(found)["swap"] == "none"


def test_a_user_hears_what_the_machine_costs_and_hides(tmp_path: Path) -> None:
    found = part("machine", MACHINE, machine("user-v2", tmp_path, "not permitted"))
    faults = not_ok(found)
    assert "1023MiB of 2047MiB in use" in faults["swap"]
    limit = f"1024MiB by {tmp_path}/sys/fs/cgroup/system.slice/shop.service/memory.max"
    assert faults["memory limit"].startswith(f"{limit} (v2), 51MiB free")
    assert "need root" in faults["ptrace scope"]
    assert faults["/proc"].startswith("hidepid=invisible: ")
    assert faults["huge pages"].startswith("always: ")
    assert "each fork is charged the whole heap" in faults["overcommit"]
    assert "(not permitted)" in faults["memfd"]
    assert said(found)["ksm"].startswith("on: ")


def test_a_container_without_sys_raises_nothing(tmp_path: Path) -> None:
    found = part("machine", MACHINE, machine("no-sys", tmp_path))
    assert said(found)["memory limit"].endswith("control groups cannot be read")
    assert said(found)["huge pages"] == "not told by this system"
    assert not_ok(found)["smaps_rollup"] == "has no SwapPss: swap is not counted"


def test_a_hardened_machine_is_told_what_cannot_be_read(tmp_path: Path) -> None:
    faults = not_ok(part("machine", MACHINE, machine("hardened", tmp_path)))
    assert faults["ptrace scope"].startswith("3: nobody may read another process")
    assert faults["smaps_rollup"].startswith("cannot be read; ")
    assert faults["pagemap"].startswith("cannot be read: ")
    assert "huge pages" not in faults


def test_a_machine_that_shows_nothing_raises_nothing(tmp_path: Path) -> None:
    found = part("machine", MACHINE, machine("nothing", tmp_path))
    assert len(found.facts) == len(MACHINE)
    assert "memory limit" in not_ok(found)


def test_another_system_is_bad(tmp_path: Path) -> None:
    other = replace(machine("nothing", tmp_path), kernel="Darwin 24 arm64")
    assert "need Linux" in not_ok(part("machine", MACHINE, other))["kernel"]
    assert Diagnosis((part("machine", MACHINE, other),)).is_bad


def test_this_machine_is_read() -> None:
    found = read_machine()
    assert found.page_map
    assert found.capacity.limit > 0
    assert {"Private_Dirty", "SwapPss"} <= set(found.rollup or ())


@pytest.mark.parametrize(
    ("found", "name", "text"),
    [
        (Interpreter("CPython 3.13.0", dev_mode=True), "debug hooks", "-X dev is on"),
        (
            Interpreter("CPython 3.13.0", malloc="malloc_debug"),
            "debug hooks",
            "PYTHONMALLOC=malloc_debug is on",
        ),
        (Interpreter("CPython 3.13.0", tracemalloc=25), "debug hooks", "25 frames"),
        (Interpreter("CPython 3.13.0", debug_build=True), "python", "a debug build"),
        (
            Interpreter("CPython 3.11.7", immortal_why_not="3.12 or newer is needed"),
            "immortal",
            "3.12 or newer is needed: whoever reads an object copies its page",
        ),
        (
            Interpreter("PyPy 3.11.15", freeze_why_not="no gc.freeze()"),
            "freeze",
            "no gc.freeze()",
        ),
        (Interpreter("CPython 3.16.0", why_why_not="not known"), "why", "not known"),
    ],
)
def test_what_an_interpreter_cannot_or_has_left_on(
    found: Interpreter, name: str, text: str
) -> None:
    assert text in not_ok(part("interpreter", INTERPRETER, found))[name]


@pytest.mark.parametrize("malloc", ["", "default", "pymalloc", "malloc"])
def test_an_allocator_of_choice_is_no_debug_hook(malloc: str) -> None:
    found = Interpreter("CPython 3.13.0", malloc=malloc)
    assert not found.is_debugging
    assert not not_ok(part("interpreter", INTERPRETER, found))
    # -X dev switches hooks on, but for who has chosen.
    dev = replace(found, dev_mode=True)
    assert dev.debugs_malloc == (malloc in ("", "default"))


def test_this_interpreter_is_read() -> None:
    found = read_interpreter({"PYTHONMALLOC": "debug", "LD_PRELOAD": "/libjemalloc.so"})
    assert found.debugs_malloc
    assert "jemalloc by" in said(part("", INTERPRETER, found))["allocator"]


GOOD = Servers(
    gunicorn="27.0.1", knows_us=True, startup="/p/cowpreload.pth", uwsgi="/bin/uwsgi",
    uwsgi_version="2.0.31", uwsgi_python="3.13.0", plugin="/p/cow_plugin.so",
)  # fmt: skip


def test_servers_as_they_should_be() -> None:
    assert not not_ok(part("servers", SERVERS, GOOD))
    alone = replace(GOOD, uwsgi="", plugin="", brings_python=True)
    assert not not_ok(part("servers", SERVERS, alone))


@pytest.mark.parametrize(
    ("change", "name", "text"),
    [
        ({"gunicorn": "20.1.0"}, "gunicorn", "older than 23"),
        (
            {"gunicorn": "unknown", "gunicorn_said": "ImportError: x"},
            "gunicorn",
            "does not import: ImportError: x",
        ),
        ({"gunicorn": "", "uwsgi": ""}, "gunicorn", "nor is uWSGI"),
        ({"startup": ""}, "start-up file", "pip install --target"),
        ({"startup_off": True}, "start-up file", "COWPRELOAD_STARTUP=0"),
        (
            {"knows_us": False, "gunicorn_said": "cow: gunicorn 99 is not known"},
            "start-up file",
            "does not know `cow`: cow: gunicorn 99 is not known",
        ),
        ({"uwsgi_version": "2.0.21"}, "uwsgi", "2.0.28 or newer"),
        ({"uwsgi_python": ""}, "uwsgi", "has no Python"),
        (
            {"plugin_said": "cow: this plugin was built for another uwsgi; run: x"},
            "plugin",
            "/p/cow_plugin.so: was built for another uwsgi; run: x",
        ),
        (
            {"plugin_stale": "was built by another cowpreload"},
            "plugin",
            "/p/cow_plugin.so: was built by another cowpreload; run: cowpreload plugin",
        ),
    ],
)
def test_what_is_wrong_with_a_server(
    change: dict[str, str], name: str, text: str
) -> None:
    assert text in not_ok(part("servers", SERVERS, replace(GOOD, **change)))[name]


def test_a_page_fits_a_terminal_and_is_data() -> None:
    found = Diagnosis(
        (
            Part(
                "one", (ok("a", "x " * 100), warn("start-up file", "y"), bad("c", "z"))
            ),
        ),
        (Advice(3 * MIB, "do this " * 20),),
        ("Traceback",),
    )
    text = doctor_text(found)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith("1 ok, 1 warn, 1 bad")
    data = json.loads(doctor_json(found))
    assert data["bad"] is True
    assert data["parts"][0]["facts"][1] == {
        "status": "warn", "name": "start-up file", "text": "y",
    }  # fmt: skip
    assert data["advice"][0]["bytes"] == 3 * MIB
