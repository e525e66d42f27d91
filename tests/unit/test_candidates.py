"""What is said of pages that nobody has listed."""

from __future__ import annotations

import threading

from cowpreload import origins
from cowpreload.candidates import AutoReport, Candidate, Tried
from cowpreload.deadline import named
from cowpreload.warmup import why_dropped


def page(source: str) -> Candidate:
    return Candidate("/people/alice", "h", source)


def test_no_log_shows_what_visitors_have_requested_by_an_exception_s_text() -> None:
    raised = why_dropped(0, KeyError("/people/alice"))
    assert raised == "raised KeyError: '/people/alice'"  # for who asks for it
    leaves = "leaves file path=/srv/people/alice"
    dropped = (raised, leaves, "answered 302", "no answer within 5 s")
    tried = tuple(
        Tried(page(source), 500, dropped=each)
        for source in ("file", "traffic")
        for each in dropped
    )
    assert "/people" not in "".join(each.told for each in tried)
    for each in tried[:4]:
        lines = "\n".join(AutoReport((each,), {"file": 0}, 0, 0.0).lines())
        assert "people" not in lines
        assert f"cow: warmup file pages=1 dropped: {each.told}\n" in lines
    assert [each.told for each in tried[:4]] == [
        *("raised KeyError", "leaves something open"),
        *("answered 302", "no answer within 5 s"),
    ]
    assert Tried(page("route"), 500, dropped=raised).told == raised


def start() -> threading.Thread:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return thread


def test_no_finding_shows_what_visitors_have_requested_by_where_it_began() -> None:
    end = origins.record()
    try:
        for source in ("route", "file", "traffic"):
            origin = origins.of(named(start, page(source).frame)())  # type: ignore[arg-type]
            assert origin is not None
            visited = source != "route"
            assert origin.during == ("warmup" if visited else "warmup=/people/alice")
    finally:
        end()


def test_a_path_of_8_kb_is_cut_in_the_log() -> None:
    tried = tuple(Tried(Candidate(f"/{name * 8191}"), 200) for name in "ab")
    (line, _) = AutoReport(tried, {"route": 0}, 4, 1.0).lines()
    assert line == f"cow: warmup path=/{'a' * 199}...,/{'b' * 199}... warmed"
