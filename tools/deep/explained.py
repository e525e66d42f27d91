"""Differences that are consequences of immortality: each with the reason, checked.

Preloaded objects are never freed and their counts do not move; a test that asserts
the contrary of an object that was there before the fork cannot pass.
"""

from __future__ import annotations

from deep.compare import Explained

_UNFROZEN = (
    "test_freeze, before it in the file, calls gc.unfreeze(); from 3.14 on, the next "
    "collection untracks immortal objects (to 3.13 it freezes them again), and this "
    "test asks whether an inherited one is tracked. Without gc.unfreeze() it is."
)

EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "cpython",
        "test.test_gc.GCTests.test_is_tracked",
        ("3.14", "3.15"),
        _UNFROZEN,
    ),
    Explained(
        "cpython",
        "test.test_gc.GCTests.test_get_referents_on_capsule",
        ("3.14", "3.15"),
        _UNFROZEN,
    ),
    Explained(
        "cpython",
        "test.test_opcache.TestSpecializer.test_load_const",
        ("3.14",),
        "The constants of a preloaded function are immortal, and the interpreter "
        "specializes LOAD_CONST for it, as intended: to LOAD_CONST_IMMORTAL, where the "
        "test expects LOAD_CONST_MORTAL.",
    ),
)
