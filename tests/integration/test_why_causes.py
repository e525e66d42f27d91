"""What makes the report trustworthy: programs that break sharing in one known way each.

The pages that a child has beyond those of an idle child are the way's; at least 95 % of
them must be booked under its cause.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from conftest import deep, once

from cowpreload import _offsets
from cowpreload.causes import Cause, How, Sharing
from cowpreload.errors import WhyError
from cowpreload.why.examine import examine
from cowpreload.why.process import Memory, mappings

PROGRAM = Path(__file__).parent.parent / "programs" / "breaks.py"
WAYS = {
    "touch": Cause.REFCOUNT,
    "keep": Cause.REFCOUNT,
    "collect": Cause.COLLECTOR,
    "hash": Cause.HASH,
    "append": Cause.STORAGE,
    "replace": Cause.STORAGE,
    "slots": Cause.ATTRIBUTES,
    "fill": Cause.ALLOCATOR,
    "pools": Cause.NEW,
    "code": Cause.SPECIALIZATION,
    "counters": Cause.COUNTERS,
    "buffer": Cause.LIBRARY,
    "bytearray": Cause.STORAGE,
    "malloc": Cause.LIBRARY,
    "map": Cause.NEW,
}
LEAST = 500  # pages that a way breaks

pytestmark = pytest.mark.skipif(_offsets.own() is None, reason=_offsets.why_not())


Report = Callable[[str], Sharing]


def examined(way: str) -> Sharing:
    """Examine the child of `breaks.py WAY` once it has done its work."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            return examine(int(process.stdout.readline()))
        finally:
            process.communicate(b"x")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on each way: one a session takes seconds, whoever asks for it."""

    @cache
    def found(way: str) -> Sharing:
        def make(directory: Path) -> None:
            (directory / "report").write_bytes(pickle.dumps(examined(way)))

        made = once(tmp_path_factory, f"why-{way}", make) / "report"
        return pickle.loads(made.read_bytes())  # type: ignore[no-any-return]

    return found


def counts(report: Sharing) -> Counter[Cause]:
    return Counter({row.cause: row.pages for row in report.rows})


@pytest.mark.parametrize(
    "way",
    # Naming what holds each dict's table takes longest; append writes tables, too.
    [*(each for each in WAYS if each != "replace"), *deep("replace")],
)
def test_each_way_is_booked_under_its_cause(report: Report, way: str) -> None:
    cause = WAYS[way]
    all_, idle = counts(report(way)), counts(report("idle"))
    broken = all_ - idle  # a Counter drops what is not positive
    total = sum(all_.values()) - sum(idle.values())
    assert total > LEAST
    if way == "replace" and sys.version_info >= (3, 14):
        # Dicts have no version there that a new value would write: only reading the
        # dict does, which counts it, and the table is elsewhere.
        assert broken[cause] > LEAST
        broken[cause] += broken[Cause.REFCOUNT]
    assert broken[cause] >= 0.95 * total, report(way).rows


def test_utf8_forms_are_apart_from_their_own_memory(report: Report) -> None:
    """The string is written, and the form is new memory; nothing else."""
    broken = counts(report("utf8")) - counts(report("idle"))
    total = sum(broken.values())
    assert broken[Cause.HASH] + broken[Cause.NEW] >= 0.95 * total
    assert broken[Cause.HASH] > LEAST


def test_attributes_are_named_by_their_class(report: Report) -> None:
    """On 3.11 and 3.12 the values are apart from the instance, whose count changes."""
    found = report("attributes").row(Cause.ATTRIBUTES)
    assert found.pages > LEAST / 2
    assert found.examples[0].text == "__main__.Record"
    if sys.version_info >= (3, 13):
        broken = counts(report("attributes")) - counts(report("idle"))
        assert broken[Cause.ATTRIBUTES] >= 0.95 * sum(broken.values())


def test_a_threads_stack_is_known(report: Report) -> None:
    """3.12 allows less depth, so that there are fewer pages."""
    assert report("stack").row(Cause.STACK).pages > LEAST / 2


def test_examples_name_what_was_written(report: Report) -> None:
    assert report("keep").row(Cause.REFCOUNT).examples[0].text == "str"
    assert "list" in report("append").row(Cause.STORAGE).examples[0].text
    # Not the first one everywhere: what ran them is on as many pages as each.
    cold = report("code").row(Cause.SPECIALIZATION).examples
    assert any("(cold" in each.text for each in cold)
    warm = report("counters").row(Cause.COUNTERS).examples
    assert any("(warm" in each.text for each in warm)
    assert "c_char_Array" in report("buffer").row(Cause.LIBRARY).examples[0].text
    assert "bytes" in report("fill").row(Cause.ALLOCATOR).examples[0].text


JEMALLOC = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


@pytest.mark.skipif(not JEMALLOC.exists(), reason="apt-get install libjemalloc2")
def test_memory_of_another_allocator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of it was taken apart word by word: a million names for 8 MB."""
    monkeypatch.setenv("LD_PRELOAD", str(JEMALLOC))
    found = examined("malloc")
    label = "anonymous memory, as libjemalloc.so.2 takes it"
    assert label in [each.text for each in found.row(Cause.LIBRARY).examples]
    assert found.row(Cause.LIBRARY).pages > LEAST
    assert found.share(Cause.UNEXPLAINED) < 0.025


@pytest.mark.parametrize("way", ["idle", "touch", "fill", "map"])
def test_the_sum_is_what_the_kernel_counts(report: Report, way: str) -> None:
    """A waiting child does not change between the page map and smaps_rollup."""
    found = report(way)
    assert found.private == found.kernel_private
    assert found.how is How.LIVE


def test_little_stays_unexplained_in_an_idle_child(report: Report) -> None:
    assert report("idle").share(Cause.UNEXPLAINED) < 0.05


def test_the_state_of_the_collector_is_read(report: Report) -> None:
    assert report("touch").frozen
    assert not report("collect").frozen
    assert report("collect").collections == 1


def test_the_end_of_a_process_is_noticed() -> None:
    """What reads as zeros must not become a report."""
    with subprocess.Popen(["sleep", "60"]) as process:
        memory = Memory(process.pid)
        code = mappings(process.pid)[0].start
        assert not memory.ended(code)
        process.kill()
        process.wait()
        assert memory.ended(code)
        with pytest.raises(WhyError, match="ended while it was read"):
            memory.read(code, 8)
        memory.close()
