"""The report: a table at 80 columns, JSON with the same sums, advice that follows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from cowpreload.causes import Cause, Example, How, Row, Run, Sharing, Span
from cowpreload.report.picture import cells, draw
from cowpreload.report.why import why_json, why_text
from cowpreload.why.advice import advise

PAGE = 4096
LONG = (
    "a_rather_long_module.of_an_application.A_class.with_a_function (and/its_file.py)"
)


def row(cause: Cause, pages: int, *names: str) -> Row:
    return Row(
        cause,
        pages,
        pages // 2,
        len(names),
        tuple(Example(name, pages // (i + 2), pages) for i, name in enumerate(names)),
    )


def sharing(*rows: Row, **given: object) -> Sharing:
    start, runs = 0x10000, []
    for each in rows:
        runs.append(Run(start, each.pages, each.cause))
        start += each.pages * PAGE
    known: dict[str, object] = {
        "pid": 7,
        "master_pid": 6,
        "version": "3.11.7",
        "how": How.STILL,
        "pause": 0.0039,
        "seconds": 3.2,
        "page_size": PAGE,
        "kernel_private": 1,
        "frozen": True,
        "collections": 0,
        "rows": rows,
        "runs": tuple(runs),
        "spans": (Span(0x8000, start + 0x8000, "[heap]", 1),),
        "notes": (),
    }
    return Sharing(**{**known, **given})  # type: ignore[arg-type]


ALL = sharing(*(row(cause, 3000 - 100 * i, LONG, "b") for i, cause in enumerate(Cause)))


def test_the_report_fits_80_columns() -> None:
    noted = dataclasses.replace(ALL, notes=("something that is long " * 9,))
    text = why_text(noted, advise(noted))
    assert max(map(len, text.splitlines())) <= 80
    assert "held the worker for at most 3.9 ms" in " ".join(text.split())


def test_a_process_that_is_not_ours_is_not_called_a_worker() -> None:
    assert why_text(ALL, (), ours=True).startswith("Worker 7 of master 6")
    assert why_text(ALL, (), ours=False).startswith("Process 7 of master 6")


def test_the_table_sums_up_to_the_private_memory() -> None:
    lines = why_text(ALL, ()).splitlines()
    names = [cause.value for cause in Cause]
    pages = [
        int(line[40:49]) for line in lines if any(line.startswith(n) for n in names)
    ]
    assert len(pages) == len(names)
    assert sum(pages) == ALL.pages
    assert f"{ALL.pages}" in lines[-1]
    assert "100.0%" in lines[-1]


def test_json_has_the_same_figures() -> None:
    figures = json.loads(why_json(ALL, advise(ALL)))
    assert sum(each["bytes"] for each in figures["rows"]) == figures["private"]
    assert sum(each[1] for each in figures["runs"]) == figures["pages"]
    assert figures["advice"] == list(advise(ALL))
    assert figures["how"] == "still copy"


def test_a_worker_without_private_memory_is_no_error() -> None:
    empty = sharing()
    assert "100" not in why_text(empty, advise(empty))
    assert advise(empty)


@pytest.mark.parametrize(
    ("version", "said"),
    [("3.11.7", "CPython 3.11 writes one"), ("3.13.0", "cow-immortal = on")],
)
def test_counts_can_be_avoided_from_3_12_on(version: str, said: str) -> None:
    found = sharing(row(Cause.REFCOUNT, 9728, "str"), version=version)
    (advice,) = advise(found)
    assert advice.startswith("38.0 MiB by reference counts")
    assert said in advice


def test_functions_that_a_warm_up_would_reach_are_named() -> None:
    found = sharing(row(Cause.SPECIALIZATION, 3072, "view (shop/views.py:7)"))
    advice, _ = advise(found)
    assert advice.startswith("12.0 MiB by code that first ran after the fork, in 1 ")
    assert "add the paths that run them to cow-warmup" in advice
    assert "view (shop/views.py:7)" in advice


def test_the_advice_ends_with_what_finds_the_cold_pages() -> None:
    rows = (row(Cause.SPECIALIZATION, 2048, "f"), row(Cause.HASH, 512, "str"))
    last = advise(sharing(row(Cause.REFCOUNT, 4096, "str"), *rows))[-1]
    assert last.startswith("10.0 MiB of that a warm up may save: cow-warmup = auto ")
    assert "`cowpreload warmup`" in last
    assert "warm up" not in advise(sharing(row(Cause.REFCOUNT, 4096, "str")))[-1]


def test_no_warm_up_is_advised_against_counters_of_warm_code() -> None:
    found = sharing(row(Cause.COUNTERS, 3072, "view (shop/views.py:7)"))
    (advice,) = advise(found)
    assert advice.startswith("12.0 MiB by counters in the code of 1 functions")
    assert "more of cow-warmup does not help" in advice


def test_small_causes_get_no_advice_and_every_cause_can_get_some() -> None:
    found = sharing(row(Cause.REFCOUNT, 9900, "str"), row(Cause.HASH, 90, "str"))
    assert len(advise(found)) == 1
    for cause in Cause:
        assert "MiB" in advise(sharing(row(cause, 5000, "x"), version="3.13.0"))[0]


def test_collecting_an_unfrozen_heap_is_answered_by_freezing() -> None:
    found = sharing(row(Cause.COLLECTOR, 5000, "dict"), frozen=False, collections=3)
    (advice,) = advise(found)
    assert "3 full collections" in advice
    assert "cow-freeze = on" in advice


def test_page_maps_alone_do_not_lead_to_advice() -> None:
    found = sharing(row(Cause.UNEXPLAINED, 5000, "[heap]"), how=How.MAPS)
    assert "MiB" not in advise(found)[0]


def test_the_picture_shows_every_private_page_once() -> None:
    line, scale, names = cells(ALL)
    assert scale == 1
    assert names == [(0, "[heap]")]
    for each in ALL.rows:
        assert line.count(each.cause) == each.pages
    assert line.count(None) == 16


def test_a_large_address_space_is_scaled_and_a_reservation_left_out() -> None:
    found = sharing(row(Cause.NEW, 300_000))
    line, scale, _names = cells(found)
    assert scale > 1
    assert line.count(Cause.NEW) in range(300_000 // scale - 1, 300_000 // scale + 3)
    huge = dataclasses.replace(found, spans=(Span(0, 1 << 40, "anonymous", 1),))
    assert cells(huge)[0] == []


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "why.png"
    draw(ALL, path)
    assert path.read_bytes().startswith(b"\x89PNG")
