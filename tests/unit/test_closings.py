"""What is closed unasked before a fork, each kind within its time."""

from __future__ import annotations

from conftest import run

CODE = """
import time
from cowpreload import closing
from cowpreload.hosts import closings

closed = []
def hang():
    time.sleep(60)

for name in closing.KINDS:
    closing._CLOSINGS[name] = lambda name=name: closed.append(name)
closing._CLOSINGS["Django's connections"] = hang
assert closings.close(closings.bounded(0.2, print)) == []
assert closed == list(closing.KINDS[1:])
"""


def test_what_does_not_close_in_time_is_named_and_leaves_the_others() -> None:
    """Superset's master said `closing before a fork: given up after 1 s`: neither what
    of four, nor what to do; and what came after it was not closed."""
    done = run("-c", CODE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "cow: closing Django's connections before a fork: given up after 0.2 s; what "
        "is still open its children share: close it in a before_fork callback\n"
    )
