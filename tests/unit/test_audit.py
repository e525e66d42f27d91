"""The audit looks and does not touch."""

from __future__ import annotations

from conftest import run

# In a process of its own: other tests' libraries may have threads. The open connection
# makes the audit look for TLS sessions, that is, at every object.
LOOK = """
import socket, ssl, weakref
from cowpreload.audit import audit, descriptors

class Lazy:
    built = 0

    @property
    def __class__(self):  # as Django's LazyObject: asking for it builds the object
        Lazy.built += 1
        return str

lazy, target = Lazy(), set()
held = [lazy, weakref.proxy(target)]
del target
before, built = descriptors(), Lazy.built
pair = socket.socketpair()
print([each.what for each in audit(before)], Lazy.built - built)
"""


def test_lazy_objects_and_dead_proxies_are_left_alone() -> None:
    done = run("-c", LOOK)
    assert done.stdout == "['connection', 'connection'] 0\n", done.stderr
