"""Differences that are consequences of immortality: each with the reason, checked.

Preloaded objects are never freed and their counts do not move; a test that asserts
the contrary of an object that was there before the fork cannot pass.
"""

from __future__ import annotations

from deep.compare import Explained

EXPLAINED: tuple[Explained, ...] = ()
