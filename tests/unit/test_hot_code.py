"""Hot code, in programs of their own: where it lies, what it does, what stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import PYPY, deep, run

pytestmark = [
    pytest.mark.each_python,
    pytest.mark.skipif(
        PYPY or sys.version_info < (3, 12), reason="its code is not known"
    ),
]
PROGRAMS = Path(__file__).parent.parent / "programs"


def printed(code: str, **environ: str) -> str:
    """What a program prints that can import the test programs."""
    return run(
        "-c", code, check=True, env={"PYTHONPATH": str(PROGRAMS), **environ}
    ).stdout.strip()


@pytest.mark.parametrize("immortal", ["auto", "off"])
def test_code_that_was_moved_does_what_it_did(immortal: str) -> None:
    """Frames, generators, closures, tracebacks, debuggers: see the program."""
    done = run("tests/programs/moved_code.py", immortal)
    assert done.stdout == "all as before\n", done.stderr


def test_c_code_that_watches_code_is_told_of_all_that_is_laid() -> None:
    """As a JIT does that keeps what it has compiled by the address of the code."""
    done = run("tests/programs/watched_code.py")
    assert done.stdout == "all as told\n", done.stderr


def test_hot_code_lies_on_few_pages() -> None:
    """400 functions, a page apart, run in a child: its private memory."""

    def private(hot_code: str) -> int:
        return int(
            printed(
                "import os, cowpreload, hot_app\n"
                "from cowpreload import _core\n"
                "hot_app.run_hot()\n"
                f"cowpreload.freeze(hot_code={hot_code!r})\n"
                "if not os.fork():\n"
                "    before = _core.take_reading().private\n"
                "    hot_app.run_hot()\n"
                "    print(_core.take_reading().private - before, flush=True)\n"
                "    os._exit(0)\n"
                "os.wait()\n"
                "os._exit(0)"
            )
        )

    assert private("off") > 400 * 4096
    assert private("on") < 200 * 4096


def test_only_what_ran_since_the_loading_is_moved() -> None:
    """And nothing is left of the old code: it would be garbage for ever."""
    assert (
        printed(
            "import sys, hot_app\n"
            "from cowpreload import hot_code\n"
            "early, late = hot_app.HOT[:2]\n"
            "for _ in range(9): early(hot_app.Anything())\n"
            "hot_code.begin()\n"
            "for _ in range(9): late(hot_app.Anything())\n"
            "names = late.__code__.co_names\n"
            "functions = early, late, hot_app.ALL[1]['cold_1']\n"
            "before = [id(each.__code__) for each in functions]\n"
            "count = sys.getrefcount(names)\n"
            "report = hot_code.lay(lambda: True)\n"
            "after = [id(each.__code__) for each in functions]\n"
            "print([a == b for a, b in zip(before, after)], report.why_not,\n"
            "      sys.getrefcount(names) - count)"
        )
        == "[True, False, True]  0"
    )


@pytest.mark.parametrize(
    ("before", "why_not"),
    [
        ("sys.settrace(lambda *_: None)", "the process is being traced or profiled"),
        *deep(
            (
                "sys.setprofile(lambda *_: None)",
                "the process is being traced or profiled",
            ),
            ("threading.settrace(print)", "the process is being traced or profiled"),
        ),
        ("threading.setprofile(print)", "the process is being traced or profiled"),
        ("sys.monitoring.use_tool_id(1, 'it')", "a tool uses sys.monitoring"),
        (
            "sys.addaudithook(lambda event, _: 1 / (event != 'code.__new__'))",
            "ZeroDivisionError: division by zero",
        ),
        (
            "sys.addaudithook(lambda event, about: 1 / (\n"
            "    event != 'object.__setattr__' or about[1] != '__code__'))",
            "__code__ cannot be set",
        ),
    ],
)
def test_whoever_follows_code_keeps_it_where_it_is(before: str, why_not: str) -> None:
    code = (
        "import sys, threading, cowpreload, hot_app\n"
        "hot_app.run_hot()\n"
        f"{before}\n"
        "report = cowpreload.freeze()\n"
        "sys.settrace(None)\n"
        "print(report.hot.functions, report.fault, hot_app.run_hot() == 800,\n"
        "      report.hot.why_not)"
    )
    found = printed(code)
    assert found.startswith("0  True ")
    assert found.endswith(why_not)


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_coverage_of_the_whole_server_leaves_hot_code_where_it_is(core: str) -> None:
    """Started before the freeze, it goes on counting in the code that it knows."""
    pytest.importorskip("coverage")
    found = printed(
        "import coverage, cowpreload, hot_app\n"
        "measured = coverage.Coverage(data_file=None, config_file=False)\n"
        "with measured.collect():\n"
        "    hot_app.run_hot()\n"
        "    print(cowpreload.freeze().hot.why_not)",
        COVERAGE_CORE=core,
    )
    traced, monitored = "the process is being traced or profiled", "sys.monitoring"
    assert (traced if core == "ctrace" else monitored) in found


@pytest.mark.skipif(
    not (hasattr(sys, "_jit") and sys._jit.is_available()), reason="not built in"
)
def test_code_stays_where_the_jit_knows_its_address() -> None:
    found = printed("import cowpreload; print(cowpreload.freeze().hot)", PYTHON_JIT="1")
    assert found.startswith("HotReport(codes=0, functions=0, ")
    assert "CPython's JIT is on" in found


def test_code_stays_where_holes_cannot_be_filled() -> None:
    found = printed(
        "import cowpreload, hot_app\n"
        "hot_app.run_hot()\n"
        "print(cowpreload.freeze().hot.why_not)",
        PYTHONMALLOC="debug",
    )
    assert found == "the holes of the heap cannot be filled"


def test_calls_stay_specialized() -> None:
    """Setting __code__ makes each call of a function slow, on 3.14 for ever."""
    assert (
        printed(
            "import dis, hot_kinds\n"
            "from cowpreload import hot_code\n"
            "def names():\n"
            "    code = hot_kinds.runs_everything.__code__\n"
            "    return [each.opname for each in dis.Bytecode(code, adaptive=True)]\n"
            "for _ in range(99): hot_kinds.runs_everything()\n"
            "before, old = names(), id(hot_kinds.runs_everything.__code__)\n"
            "hot_code.lay(lambda: True)\n"
            "carried = names() == before\n"
            "for _ in range(99): hot_kinds.runs_everything()\n"
            "print(carried, names() == before,\n"
            "      old != id(hot_kinds.runs_everything.__code__))"
        )
        == "True True True"
    )
