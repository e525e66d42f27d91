"""What an operator sees of a server that runs: status, its JSON, its exit status."""

from __future__ import annotations

import json
import re

import pytest
from conftest import Servers, ready
from harness.server import Server
from unit.test_status import check

from cowpreload.cli import main

# Over its limit a worker stays, as long as it is spared.
SPARED = {"cow-max-private": "60M", "cow-min-lifetime": "600", "cow-warmup": "/sum?n=9"}


@pytest.fixture(scope="module")
def server(shared: Servers) -> Server:
    return ready(shared.on("sync", SPARED, workers=2), workers=2)


def test_status_tells_a_monitor_that_a_limit_is_being_passed(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    who = str(server.pid)
    assert main(["status", who]) == 0
    shown = capsys.readouterr().out
    assert re.match(rf"master {who}: gunicorn [\d.]+ app, 2 workers, up ", shown)
    assert "\nfrozen " in shown
    assert server.get("/grow?mb=90")[0] == 200
    assert main(["status", who]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^worker \d is over max-private: ", shown, re.MULTILINE)
    assert main(["status", "--json", who]) == 1
    text = capsys.readouterr().out
    assert "servers[].master.frozen.inherited" in check(text)
    (view,) = json.loads(text)["servers"]
    assert sorted(each["over"] for each in view["slots"]) == ["", "max-private"]
