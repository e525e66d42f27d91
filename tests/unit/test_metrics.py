"""Metrics: as Prometheus' own parsers read them, and as its conventions want them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload import board
from cowpreload.board import Board
from cowpreload.cli.exporter import ListenError, address, look
from cowpreload.listening import addresses
from cowpreload.metrics import COUNTER, DECLARED, families
from cowpreload.report.exposition import exposition, wants_openmetrics
from cowpreload.server_names import ServerNames
from cowpreload.view import (
    REASONS,
    Counts,
    Frozen,
    MasterView,
    ServerView,
    SlotView,
    total,
)

text_parser = pytest.importorskip("prometheus_client.parser")
openmetrics_parser = pytest.importorskip("prometheus_client.openmetrics.parser")

MIB = 1 << 20
MASTER = MasterView(
    pid=4201,
    host="gunicorn 27.0.1",
    application='shop "a\\b"\n.wsgi',
    age=100.0,
    private=9 * MIB,
    shared=60 * MIB,
    pss=30 * MIB,
    rss=70 * MIB,
    frozen=Frozen(2, 80 * MIB, 1000, 2000, 0.25, 90.0),
)
SLOT = SlotView(
    slot=1,
    state="ready",
    generation=3,
    pid=4242,
    requests=5,
    private=3 * MIB,
    evictable=MIB,
    shared=61 * MIB,
    pss=20 * MIB,
    rss=65 * MIB,
    age=12.5,
    read_age=1.5,
    strikes=0,
    grown=MIB,
    ready_age=12.0,
    served=17,
    max_private=128 * MIB,
    max_private_hard=256 * MIB,
)
COUNTS = Counts(
    recycled=tuple((each, at) for at, each in enumerate(REASONS)),
    killed=tuple((each, 0) for each in REASONS),
    requests=17,
    readings=40,
    readings_failed=2,
)
GONE = replace(SLOT, slot=2, state="gone")
NEW = replace(SLOT, slot=3, state="booting", rss=0, ready_age=0.0, max_private=0)
SLOTS = (SLOT, GONE, NEW)
VIEW = ServerView(
    1.7e9, MASTER, SLOTS, COUNTS, total(MASTER, SLOTS, 512 * MIB, "machine", 100 * MIB)
)


def parsed(views: list[ServerView], openmetrics: bool) -> dict[str, dict[str, float]]:
    """Samples by name and labels, as Prometheus sees them."""
    text = exposition(families(views), openmetrics=openmetrics)
    parser = openmetrics_parser if openmetrics else text_parser
    found: dict[str, dict[str, float]] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(
                f"{name}={value}" for name, value in sample.labels.items()
            )
            samples = found.setdefault(sample.name, {})
            assert labels not in samples, "a sample stands there twice"
            samples[labels] = sample.value
    return found


@pytest.mark.parametrize("openmetrics", [False, True])
def test_prometheus_own_parsers_read_what_is_shown(openmetrics: bool) -> None:
    found = parsed([VIEW], openmetrics)
    server = f"server={MASTER.application}"
    assert found["cowpreload_worker_private_bytes"] == {f"{server},slot=1": 3 * MIB}
    assert found["cowpreload_worker_requests_total"][f"{server},slot=1"] == 17
    assert found["cowpreload_worker_limit_bytes"] == {f"{server},slot=1": 128 * MIB}
    assert found["cowpreload_worker_ready"] == {
        f"{server},slot=1": 1,
        f"{server},slot=3": 0,
    }
    assert found["cowpreload_recyclings_total"][f"{server},reason=max-growth"] == 1
    assert found["cowpreload_freeze_seconds"] == {server: 0.25}
    assert found["cowpreload_memory_limit_bytes"] == {
        f"{server},source=machine": 512 * MIB
    }
    no_budget = {"cowpreload_budget_bytes", "cowpreload_budget_counted_bytes"}
    assert set(found) == {each.sample_name for each in DECLARED} - no_budget


def test_a_budget_is_shown_where_there_is_one() -> None:
    totals = replace(VIEW.totals, budget=400 * MIB, counted=109 * MIB)
    found = parsed([replace(VIEW, totals=totals)], True)
    server = f"server={MASTER.application}"
    assert found["cowpreload_budget_bytes"] == {server: 400 * MIB}
    assert found["cowpreload_budget_counted_bytes"] == {server: 109 * MIB}


def test_both_formats_say_the_same() -> None:
    assert parsed([VIEW], False) == parsed([VIEW], True)


def test_what_could_not_be_read_is_left_out_and_not_zero() -> None:
    unread = replace(MASTER, pss=0, frozen=None)
    view = replace(VIEW, master=unread, slots=(NEW,), totals=total(unread, (NEW,)))
    found = parsed([view], True)
    for name in ("master_pss_bytes", "pss_bytes", "worker_private_bytes"):
        assert f"cowpreload_{name}" not in found
    assert "cowpreload_memory_limit_bytes" not in found
    assert found["cowpreload_workers"]


def test_servers_of_one_application_are_told_apart_the_oldest_first() -> None:
    """Each sample may be there once; and a server that is replaced keeps its name."""
    newer = replace(VIEW, master=replace(MASTER, pid=7, age=1.0))
    nameless = replace(VIEW, master=replace(MASTER, application="", age=1.0))
    app = MASTER.application
    names = ServerNames().of([newer, VIEW, nameless])
    assert names == [f"{app} (2)", app, "gunicorn 27.0.1"]
    assert len(parsed([newer, VIEW], True)["cowpreload_workers"]) == 2


def running(pid: int, age: float) -> ServerView:
    return replace(VIEW, master=replace(MASTER, pid=pid, age=age, application="shop"))


AT = {1: "a:80", 2: "b:80", 3: "a:80", 4: "b:80", 5: "c:80"}


def test_two_servers_of_one_application_do_not_swap_when_the_older_restarts() -> None:
    """They were named by age alone: each restart mixed two series of figures."""
    names = ServerNames()
    first, second = "shop", "shop (2)"
    assert names.of([running(1, 99), running(2, 50)], AT) == [first, second]
    assert names.of([running(2, 60)], AT) == [second]  # the older is gone
    assert names.of([running(2, 70), running(3, 1)], AT) == [second, first]
    assert names.of([running(3, 9)], AT) == [first]
    assert names.of([running(4, 1), running(3, 20)], AT) == [second, first]
    # At another address: there is a number to spare.
    assert names.of([running(4, 9), running(5, 1)], AT) == [second, first]
    # Both anew, the second first; and of who begins to look now.
    assert names.of([running(2, 2), running(5, 1)], AT) == [second, first]
    assert ServerNames().of([running(2, 9), running(1, 1)], AT) == [second, first]


def test_an_upgrade_by_usr2_takes_the_name_over() -> None:
    names = ServerNames()
    assert names.of([running(1, 99), running(2, 50)], AT) == ["shop", "shop (2)"]
    both = [running(1, 99), running(2, 50), running(3, 1)]
    assert names.of(both, AT) == ["shop", "shop (2)", "shop (3)"]
    assert names.of(both[1:], AT) == ["shop (2)", "shop"]


def test_servers_whose_address_is_not_seen_keep_their_names_while_they_run() -> None:
    names = ServerNames()
    assert names.of([running(1, 99), running(2, 50)]) == ["shop", "shop (2)"]
    assert names.of([running(2, 60), running(3, 1)]) == ["shop (2)", "shop"]


AGES = st.lists(
    st.dictionaries(st.integers(1, 5), st.floats(0, 99), max_size=4), max_size=8
)


@given(AGES)
def test_names_are_never_alike_and_no_neighbour_renames_a_server(
    ages: list[dict[int, float]],
) -> None:
    names, addresses = ServerNames(), {pid: f"address {pid}" for pid in range(1, 6)}
    before: dict[int, str] = {}
    for each in ages:
        found = names.of([running(pid, age) for pid, age in each.items()], addresses)
        assert len(set(found)) == len(found)
        now = dict(zip(each, found, strict=True))
        stayed = before.keys() & now.keys()
        assert {pid: now[pid] for pid in stayed} == {pid: before[pid] for pid in stayed}
        before = now


def test_where_a_process_listens_is_the_same_after_a_restart(tmp_path: Path) -> None:
    mine = addresses(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        port = tcp.getsockname()[1]
        found = addresses(os.getpid()).split()
        assert f"tcp:0100007F:{port:04X}" in found
        assert not any(each.startswith("unix") for each in found)
    assert addresses(os.getpid()) == mine
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]);"
        "s.listen(); from cowpreload.listening import addresses; import os;"
        "print(addresses(os.getpid()))"
    )
    path = str(tmp_path / "socket")
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"unix:{path}"
    assert addresses(2**22 + 1) == ""  # nobody


def test_names_and_labels_follow_the_conventions() -> None:
    assert len({each.name for each in DECLARED}) == len(DECLARED)
    for each in DECLARED:
        assert re.fullmatch(r"cowpreload(_[a-z]+)+", each.name)
        assert not each.name.endswith("_total")
        assert each.help.endswith(".")
        assert "pid" not in each.labels
        if any(word in each.name for word in ("pss", "private", "shared", "memory")):
            assert each.unit == "bytes"
        if "age" in each.name or "time" in each.name:
            assert each.unit == "seconds"
        assert each.kind != COUNTER or not each.unit


def test_no_server_is_no_fault() -> None:
    assert parsed([], True) == {}


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", False),
        ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5", True),
    ],
)
def test_a_client_gets_the_format_that_it_asks_for(
    accept: str, openmetrics: bool
) -> None:
    assert wants_openmetrics(accept) is openmetrics


def test_a_server_that_ends_in_a_scrape_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found, and gone a moment later: without a process, or without a board."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    real = Board.create("gunicorn 27.0.1")
    found = [ended.pid, os.getppid(), os.getpid()]
    monkeypatch.setattr(board, "find_masters", lambda: found)
    try:
        assert [each.master.pid for each in look()] == [os.getpid()]
    finally:
        os.close(real.fd)
    assert capsys.readouterr().err.count("holds no board") == 2


def test_an_address_is_read_or_refused() -> None:
    assert address("127.0.0.1:9178") == ("127.0.0.1", 9178)
    assert address("[::1]:0") == ("::1", 0)
    for bad in ("9178", ":9178", "localhost", "localhost:http", "localhost:70000"):
        with pytest.raises(ListenError, match="write it as in"):
            address(bad)
