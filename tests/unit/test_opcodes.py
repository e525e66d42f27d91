"""Instructions are told from their caches, or nothing is known of them."""

from __future__ import annotations

import dis
import gc
import types
from itertools import islice

import pytest

from cowpreload.opcodes import OPCODES, lengths

LENGTHS = lengths()


def starts(code: bytes) -> list[int]:
    """Where instructions begin, in bytes."""
    found, at = [], 0
    while at < len(code):
        found.append(at)
        at += 2 * (LENGTHS[code[at]] or len(code))
    return found


@pytest.mark.skipif(
    not hasattr(starts.__code__, "_co_code_adaptive"),
    reason="this Python does not specialize code",
)
def test_lengths_are_those_of_code_that_runs() -> None:
    unpack = vars(dis)["_unpack_opargs"]
    functions = (each for each in gc.get_objects() if type(each) is types.FunctionType)
    codes = islice({each.__code__ for each in functions}, 5000)
    seen: set[int] = set()
    for code in codes:
        running: bytes = code._co_code_adaptive  # type: ignore[attr-defined]
        if any(not LENGTHS[running[at]] for at in starts(running)):
            continue  # a tool watches it (coverage)
        assert starts(running) == [each[0] for each in unpack(code.co_code)]
        seen |= {running[at] for at in starts(running)}
    assert len(seen) > 100  # specialized ones among them
    for name in ("INSTRUMENTED_LINE", "ENTER_EXECUTOR", "CACHE"):
        assert not LENGTHS[OPCODES.get(name, OPCODES["CACHE"])]
