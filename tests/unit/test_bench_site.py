"""The example site of the bench: what is left when a signal comes."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cowpreload.bench.interrupt import SIGNALS, Interrupted, interruptible
from cowpreload.bench.site import find_site, seeded


@pytest.fixture
def handlers() -> Iterator[None]:
    """Whoever was interrupted ignores signals for good; this process goes on."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("handlers")
def test_ctrl_c_while_the_directory_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left in /tmp once: made, and not yet known to what removes it."""
    make = tempfile.mkdtemp

    def interrupted(*arguments: str | None) -> str:
        made = make(dir=tmp_path)
        signal.raise_signal(
            signal.SIGINT
        )  # to this thread, as with the demo's only one
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    with pytest.raises(Interrupted), interruptible(), seeded(find_site()):
        pass
    assert list(tmp_path.iterdir()) == []
