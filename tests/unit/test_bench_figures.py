"""What the benchmark computes from its figures, without a server."""

from __future__ import annotations

import gc
import json
import runpy
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cowpreload.bench import allocator_tables, plots, scenario_tables
from cowpreload.bench.allocators import ALLOCATORS, Allocator
from cowpreload.bench.demo_table import demo_table
from cowpreload.bench.journal import Journal, text
from cowpreload.bench.lines import Lines, seated
from cowpreload.bench.mode import HOSTS, IMMORTAL_OFF
from cowpreload.bench.observe import Memory, Worker
from cowpreload.bench.render import Table
from cowpreload.bench.run import SCENARIOS, estimate
from cowpreload.bench.scenarios import SIZES, allocators, instagram, nelson, scale
from cowpreload.bench.stats import fit, spread
from cowpreload.units import MIB

FIGURES = Path(__file__).parent.parent.parent / "docs" / "figures"
RESULTS = sorted(path for name in SCENARIOS for path in FIGURES.glob(f"{name}-*.json"))
DRAWN = next(path for path in RESULTS if path.with_suffix(".png").exists())
numbers = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(slope=numbers, start=numbers, xs=st.sets(st.integers(1, 64), min_size=2))
def test_a_line_is_found_again(slope: float, start: float, xs: set[int]) -> None:
    line = fit([(x, slope * x + start) for x in xs])
    assert line.slope == pytest.approx(slope, rel=1e-6, abs=1e-3)
    assert line.start == pytest.approx(start, rel=1e-6, abs=1e-1)
    assert line.error == pytest.approx(0, abs=1e-3)


def test_an_allocator_that_is_not_installed_is_a_row_that_says_so() -> None:
    absent = Allocator("odd", "", ("no-such-malloc",), "libodd")
    assert absent.missing() == "libodd"
    assert not ALLOCATORS[0].missing()
    figures = {
        "allocators": {"odd": {"missing": "libodd"}},
        "method": {"plan": vars(allocators.PLANS["tiny"])},
    }
    for table in allocator_tables.tables(figures):
        assert table.rows[0][:2] == ("odd", "not installed")
        assert len(table.rows[0]) == len(table.head)


def test_a_ratio_of_one_pair_is_not_shown() -> None:
    assert allocator_tables.ratio(spread([1.3])) == "-"
    assert allocator_tables.ratio(spread([1.0, 1.2, 1.3])) == "1.20 (1.10 to 1.25)"


def test_each_allocator_is_compared_with_itself_under_ours() -> None:
    for allocator in ALLOCATORS:
        first, second = allocators.modes(allocator)
        assert (first.cow, second.cow) == (False, True)
        assert set(allocator.environ()) <= set(first.settings) & set(second.settings)
    names = [mode.name for each in ALLOCATORS for mode in allocators.modes(each)]
    assert names[0] == allocators.REFERENCE
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("blobs", ["0", "1"])
def test_a_cache_is_as_large_as_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, blobs: str
) -> None:
    """Records, lists and trees, or bytes: the rows of one column are comparable."""
    monkeypatch.setenv("BENCH_CACHE_MB", "2")
    monkeypatch.setenv("BENCH_CACHE_BLOBS", blobs)
    monkeypatch.setattr(gc, "callbacks", [])  # the program adds its own
    space = runpy.run_module("cowpreload.bench.programs.caches")
    parts = (space["RECORDS"], space["SHEETS"], space["LRU"])
    sizes = [space["size"](part) for part in parts]
    assert all(0.4 < size / 1e6 < 1.0 for size in sizes), sizes


def test_points_beside_the_line_show_in_the_error() -> None:
    line = fit([(2, 100), (4, 141), (8, 219), (16, 381)])
    assert line.slope == pytest.approx(20, abs=0.2)
    assert 0 < line.error < 0.5


def test_one_place_makes_no_line() -> None:
    with pytest.raises(ValueError, match="two places"):
        fit([(4, 100), (4, 110)])


@settings(deadline=None)
@given(st.lists(numbers, min_size=1))
def test_a_median_lies_within_its_spread(values: list[float]) -> None:
    found = spread(values, 9)
    least, most = found["range"]
    low, high = found["quartiles"]
    assert found["n"] == len(values)
    parts = [least, low, found["median"], high, most]
    assert all(a <= b + 1e-6 for a, b in pairwise(parts))


def test_every_scenario_has_every_size_and_says_how_long_it_takes() -> None:
    for scenario in SCENARIOS.values():
        assert set(scenario.PLANS) == set(SIZES)
        assert scenario.METHOD
    assert estimate(list(SCENARIOS), "quick") < 5 * 60
    assert estimate(list(SCENARIOS), "full") <= 75 * 60


def test_each_host_has_the_same_modes_in_the_same_order() -> None:
    names = [[mode.name for mode in instagram.modes(host)] for host in HOSTS]
    assert names[0] == names[1]
    keys = [mode.key for mode in instagram.MODES]
    assert len(set(keys)) == len(keys)


def test_only_the_last_mode_may_make_the_heap_immortal() -> None:
    for mode in instagram.MODES:
        if mode.cow and mode.name != "all":
            assert IMMORTAL_OFF in mode.settings
        assert not (mode.cow and mode.attempt != "plain")


def test_a_combination_is_expected_to_go_on_as_it_did() -> None:
    assert scale.expected([(2, 200), (4, 300)], 50, 8) == 500
    assert scale.expected([(2, 200)], 50, 4) == 400
    assert scale.expected([], 1000, 2) > 1000 * MIB


def test_two_numbers_of_workers_tell_a_cost_but_no_error() -> None:
    points = [(2, 100 * MIB), (4, 130 * MIB)]
    assert scale.cost(points)["mib_a_worker"] == 15
    assert scale.cost(points)["standard_error"] is None
    assert scale.cost([*points, (8, 198 * MIB)])["standard_error"] > 0


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(1, 9), max_size=4), max_size=8))
def test_who_stays_keeps_the_seat(steps: list[set[int]]) -> None:
    seats = [0, 0, 0, 0]
    for pids in steps:
        before, seats = seats, seated(seats, sorted(pids))
        assert {pid for pid in seats if pid} == pids
        assert len(seats) == 4
        for seat, pid in enumerate(before):
            if pid in pids:
                assert seats[seat] == pid


def test_a_replacement_goes_on_in_the_same_line() -> None:
    lines = Lines(2)
    for private, pids in ((10, (7, 8)), (20, (7, 8)), (1, (9, 8)), (2, (9,))):
        lines.add(
            Memory(tuple(Worker(pid, private, 5, 6, 0) for pid in pids), private * 3)
        )
    figures = lines.figures()
    assert figures["private"] == [[10, 20, 1, 2], [10, 20, 1, None]]
    assert figures["replaced"] == 1
    assert figures["end"]["most_total_pss"] == 60


def test_a_rate_is_over_all_blocks_up_to_its_mark() -> None:
    found = nelson.rates(100, [1, 1, 2, 4], [100, 100, 100, 0])
    assert found == {"100": 100, "200": 100, "300": 75, "400": 37.5}


texts = st.text('ab[],{}" \n', max_size=6)
json_values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(texts, json_values, max_size=3))
def test_the_file_holds_the_figures(figures: dict[str, object]) -> None:
    assert json.loads(text(figures)) == figures


# ---- the journal ----------------------------------------------------------------


def test_a_journal_is_whole_whenever_it_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.json", "scale", "tiny", {})
    over = threading.Event()

    def write() -> None:
        for number in range(60):
            journal.put("heaps", str(number), value=["filler"] * 100)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    sizes = []
    while not over.is_set():
        sizes.append(len(json.loads(journal.path.read_text()).get("heaps", {})))
    writer.join()
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 2


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.json", "scale", "tiny", {})
    journal.put("heaps", "50", value=1)
    with pytest.raises(TypeError):
        journal.put("heaps", "250", value=object())
    assert json.loads(journal.path.read_text())["heaps"] == {"50": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


# ---- tables and plots -----------------------------------------------------------


def test_a_table_is_aligned_and_is_markdown_too() -> None:
    table = Table("Title", ("mode", "MiB"), (("plain", "88.1"), ("all", "3.2")), "Foot")
    assert table.terminal().splitlines()[2:] == [
        "mode    MiB",
        "plain  88.1",
        "all     3.2",
        "Foot",
    ]
    assert "| all | 3.2 |" in table.markdown()


def test_there_are_results_to_show() -> None:
    assert {path.stem.split("-")[0] for path in RESULTS} == set(SCENARIOS)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_report_fits_the_terminal(path: Path) -> None:
    figures = json.loads(path.read_text())
    lines = scenario_tables.report(figures).splitlines()
    assert len(lines) > 6
    assert max(map(len, lines)) <= 80, max(lines, key=len)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_that_measured_nothing_yet_is_reported(
    tmp_path: Path, scenario: str
) -> None:
    plan = vars(SCENARIOS[scenario].PLANS["tiny"])
    journal = Journal(tmp_path / "x.json", scenario, "tiny", {"plan": plan})
    assert "INCOMPLETE" in scenario_tables.report(journal.figures)
    assert plots.draw(journal.path) is None


def test_a_picture_names_the_figures_it_was_drawn_from(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / DRAWN.name
    path.write_bytes(DRAWN.read_bytes())
    picture = plots.draw(path)
    assert picture
    assert plots.drawn_from(picture) == plots.figures_hash(path)
    path.write_text(path.read_text() + " ")
    assert plots.drawn_from(picture) != plots.figures_hash(path)


def test_without_matplotlib_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert plots.missing().endswith("pip install 'cowpreload[plot]'")
    with pytest.raises(ImportError, match="cowpreload"):
        plots.draw(DRAWN)


def test_the_demo_shows_few_workers_and_no_ratio_to_what_shares_nothing() -> None:
    def row(mode: str, cpu: dict | None = None) -> dict:
        sizes = dict.fromkeys(("private", "shared", "total_pss"), 40 * MIB)
        few = {"1": 50 * MIB, "2": 60 * MIB}
        return {"mode": mode, **sizes, "recyclings": 0, "few": few, "cpu": cpu}

    ratio = {"ratio": spread([0.9, 1.0, 1.1])}
    rows = [row("gunicorn"), row("gunicorn --preload"), row("gunicorn cow", ratio)]
    versions = dict.fromkeys(("python", "django", "gunicorn", "uwsgi"), "1")
    figures = {**versions, "workers": 4, "requests": 9, "rows": rows}
    table = demo_table(figures)
    assert table.head[3:6] == ("total PSS", "of 1", "of 2")
    assert [each[-1] for each in table.rows] == ["-", "1", "1.00 (0.95 to 1.05)"]
    del figures["rows"][0]["few"]  # a run from before
    assert "of 1" not in demo_table(figures).head
