"""The audit looks and does not touch."""

from __future__ import annotations

import ssl
import weakref

from cowpreload.audit import audit, descriptors


class Lazy:
    """As Django's LazyObject: asking for the class builds the object."""

    built = 0

    @property
    def __class__(self) -> type:  # type: ignore[override]
        Lazy.built += 1
        return str


def test_lazy_objects_and_dead_proxies_are_left_alone() -> None:
    assert ssl.SSLSocket
    lazy, target = Lazy(), set[int]()
    proxy = weakref.proxy(target)
    del target
    held = [lazy, proxy]
    before = Lazy.built
    assert audit(descriptors()) == []
    assert Lazy.built == before
    assert held
