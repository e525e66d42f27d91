"""gevent: patched before the application is loaded, whole in the worker."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Servers, require_class


@pytest.mark.parametrize("ours", [True, False], ids=["cow", "without-us"])
def test_what_the_application_made_in_the_master_works_in_a_worker(
    servers: Servers, ours: bool, tmp_path: Path
) -> None:
    """Without us, users patch in gunicorn.conf.py; a warm up is ours alone."""
    require_class("gevent")
    patch = tmp_path / "patch.py"
    patch.write_text("from gevent import monkey\nmonkey.patch_all()\n")
    without = ["-k", "gevent", "--preload", "--config", str(patch)]
    with_us = ["-k", "cow_gevent", "--cow-warmup", "/", "--cow-fork-safety", "strict"]
    arguments = with_us if ours else without
    server = servers.gunicorn(*arguments, app="greenlets").wait_serving()
    for _ in range(3):
        assert server.get("/") == (200, b"gevent._socket3")


def test_no_thread_of_gevents_is_in_the_master_at_the_fork(servers: Servers) -> None:
    """One native thread resolves names at import; the fork would lose it."""
    require_class("gevent")
    arguments = ["-k", "cow_gevent", "--cow-warmup", "/"]
    server = servers.gunicorn(*arguments, app="greenlets").wait_serving()
    assert len(list(Path(f"/proc/{server.pid}/task").iterdir())) == 1
    assert " findings=0 " in server.wait_log("cow: preload objects=")
