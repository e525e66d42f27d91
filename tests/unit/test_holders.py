"""What the collector does not know of; programs of their own, for it is not undone."""

from __future__ import annotations

import subprocess
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import PROGRAMS, deep, run
from test_immortal import can, program

ARRAYS = all(map(find_spec, ("numpy", "pandas")))
KEPT = {"moving head", "sentinel"}  # see docs/immortality.md


def figures(name: str, mode: str) -> dict[str, list[int]]:
    """Name and numbers of each line that a program prints."""
    lines = [line.rpartition(": ") for line in program(name, mode)]
    return {name: [int(each) for each in rest.split()] for name, _, rest in lines}


@can
@pytest.mark.skipif(not ARRAYS, reason="no wheels of numpy and pandas here")
@pytest.mark.parametrize("mode", ["on", *deep("off")])
def test_reading_strings_of_arrays_and_columns_copies_next_to_nothing(
    mode: str,
) -> None:
    found = figures("read_arrays.py", mode)
    assert len(found) > 20
    shares = {name: copied / heap for name, (heap, copied) in found.items()}
    if mode == "on":
        assert {name: each for name, each in shares.items() if each > 0.10} == {}
    else:
        assert {name: each for name, each in shares.items() if each < 0.40} == {}


# With 3.14, numpy resizes what a local variable alone holds; all else it refuses.
RESIZING = """
import cowpreload, numpy, os
array = numpy.arange(9)
def resize():
    kept = cowpreload.keep_mortal(numpy.arange(9))
    cowpreload.freeze()
    kept.resize(10)
    try: array.resize(10)
    except ValueError as error: print("refcheck" in str(error))
    array.resize(10, refcheck=False)
    print(len(kept), len(array), len(numpy.resize(array, 11)), flush=True)
resize()
os._exit(0)
"""


@can
@pytest.mark.skipif(not ARRAYS, reason="no wheels of numpy and pandas here")
def test_what_the_docs_say_of_resizing_a_preloaded_array() -> None:
    assert run("-c", RESIZING, check=True).stdout == "True\n10 10 11\n"


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled extension."""
    folder = tmp_path_factory.mktemp("holder")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{sysconfig.get_paths()['include']}"]
    command += [str(PROGRAMS / "holder.c"), "-o", str(folder / f"holder{suffix}")]
    subprocess.run(command, check=True)
    return folder


@can
@pytest.mark.parametrize("told", [[], ["held_by"]], ids=["items", "held_by"])
def test_what_only_c_code_holds_can_be_named(holder: Path, told: list[str]) -> None:
    """A failing function is reported, once, and everything else becomes immortal."""
    refused, fault, *lines = program("hidden.py", str(holder), *told)
    assert refused == (
        "refused: immortal_too(3): neither iterable nor callable; "
        "give an iterable, or a function that gives one"
    )
    assert "immortal_too(<function failing at 0x" in fault
    assert "): LookupError('not there')" in fault
    assert fault.count("held_by(Pair): ZeroDivisionError") == len(told)
    mortal = [line for line in lines if not line.endswith(": immortal")]
    assert mortal == ([] if told else ["nobody told: mortal"])
    assert len(lines) == 11 + len(told)


@can
@pytest.mark.parametrize("mode", ["on", "off"])
def test_no_preloaded_object_keeps_what_comes_after_it(mode: str) -> None:
    """But for chains whose nodes nobody kept mortal; all are flat without us."""
    found = figures("chains.py", mode)
    assert len(found) > 20
    # Of 15,000 rounds: 750,000 bytes where a node is kept, 75,000 at most elsewhere.
    growing = {name for name, (grown,) in found.items() if grown > 250_000}
    assert growing == (KEPT if mode == "on" else set())


@can
@pytest.mark.parametrize(
    ("way", "fault"),
    [
        ("repr_raises", "immortal_too(<__main__.repr_raises.<locals>.Source object at"),
        ("source_exits", "): SystemExit(3)"),
        ("holder_exits", "held_by(Holder): SystemExit(3)"),
        ("error_raises", "): <__main__.error_raises.<locals>.NoTextError object at"),
        ("numpy_is_a_stub", "the objects of numpy: AttributeError("),
        ("metaclass_raises", ""),
    ],
)
def test_no_object_of_an_application_ends_the_freeze(
    monkeypatch: pytest.MonkeyPatch, way: str, fault: str
) -> None:
    monkeypatch.setenv("HOSTILE", way)
    in_walk, beside, counts = program("hostile.py")
    assert fault in in_walk
    assert bool(fault) is bool(in_walk)
    assert beside == ""
    assert all(int(each) > 0 for each in counts.split())


def test_a_walk_or_a_look_that_raises_is_left_out_and_named() -> None:
    code = (
        "import os\n"
        "from cowpreload.freezing import freeze\n"
        "def walk(*_): raise LookupError('walk')\n"
        "def look(): raise SystemExit(3)\n"
        "report = freeze(walk, look)\n"
        "print(report.immortal.fault, report.fault, report.objects > 0, flush=True)\n"
        "os._exit(0)"
    )
    assert run("-c", code).stdout == "LookupError('walk') SystemExit(3) True\n"
