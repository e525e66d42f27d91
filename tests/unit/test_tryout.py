"""What `cowpreload try` concludes from figures, without a server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload.settings_given import read
from cowpreload.tryout import advice, answers, plan
from cowpreload.tryout.as_json import as_json
from cowpreload.tryout.logs import facts, tail
from cowpreload.tryout.own_config import (
    arguments,
    classes,
    settings,
    uwsgi_file,
    uwsgi_lines,
)
from cowpreload.tryout.page import page
from cowpreload.tryout.records import (
    Answer,
    Difference,
    Life,
    Limited,
    LogFacts,
    Measured,
    Plan,
    Probed,
    Room,
    Tried,
    Why,
)
from cowpreload.tryout.start import ENVIRON
from cowpreload.units import MIB

CHECKOUT = Path(__file__).parent.parent.parent
COW_LOG = """\
cow: preload objects=6071 immortal=28112 hot-code=93 sealed=1MiB heap=56MiB \
warmup-requests=4 findings=1 seconds=0.31
cow: fork-safety thread refresher: alive at the fork: start it in post_fork
cow: worker=1 gen=1 pid=4242 recycled private=131MiB limit=128MiB age=312s
"""


def life(workers: int, total: int, private: int, wrong: int = 0) -> Life:
    return Life(workers, 500, (private * MIB,) * workers, total * MIB, wrong)


# A ten-line Flask application with a table of 200,000 words, as it was measured.
FLASK = Tried(
    plan=plan.make(
        "app:app",
        Probed("WSGI", ("/",), "", 0.4, "sync", (("worker_class", "cow"),)),
        [],
        4,
        500,
    ),
    ways=(
        Measured(plan.PLAIN, (life(2, 108, 46), life(4, 201, 46))),
        Measured(plan.PRELOAD, (life(2, 92, 20), life(4, 132, 20))),
        Measured(
            plan.COW,
            (life(2, 65, 3), life(4, 72, 3)),
            log=LogFacts(heap=56 * MIB, immortal=28112, warmed=4),
            cpu={"n": 7, "median": 1.0, "quartiles": [0.92, 1.03], "range": [0.9, 1.1]},
            why=Why(3 * MIB, 0.25, ("0.8 MiB are new.",), (("new after the fork", 8),)),
        ),
    ),
    room=Room(2048 * MIB, "limit of /sys/fs/cgroup/memory.max"),
    versions={"python": "3.13.0", "gunicorn": "27.0.1"},
    limited=(Limited("gunicorn cow", 70 * MIB, 275, 3 * MIB, 0),),
    statuses=(("/", 200),),
)


def changed(tried: Tried, **cow: object) -> Tried:
    """The same run, with other figures of the cow way."""
    return replace(tried, ways=(*tried.ways[:2], replace(tried.ways[2], **cow)))


def with_plan(**changes: object) -> Tried:
    made: Plan = replace(FLASK.plan, **changes)
    return replace(FLASK, plan=made)


# ---- what follows from figures ---------------------------------------------------


def test_what_helps_is_compared_with_the_better_of_the_hosts_own_ways() -> None:
    (found,) = advice.verdicts(FLASK)
    assert found.helps
    assert (found.before, found.after) == (132 * MIB, 72 * MIB)
    assert "72 MiB instead of 132 (-45%), gunicorn cow against gunicorn --preload" in (
        found.text
    )
    assert not found.reasons


def test_what_saves_nothing_is_said_to_save_nothing() -> None:
    same = changed(FLASK, lives=(life(2, 91, 19), life(4, 130, 19)))
    (found,) = advice.verdicts(same)
    assert not found.helps
    assert found.text.startswith("It does not help: 4 workers need 130 MiB instead")
    assert "It does not help" in page(same)
    assert "If you want it all the same, in gunicorn.conf.py" in page(same)


def test_who_named_no_page_is_told_what_was_not_requested() -> None:
    """Of the example shop, only its product pages read the catalogue: without --get
    the answer was that 2 workers share little."""
    same = changed(FLASK, lives=(life(2, 91, 19), life(4, 130, 19)))
    named = replace(same, plan=replace(same.plan, found=()))
    assert advice.verdicts(same)[0].reasons[0].startswith("No page was named")
    assert not advice.verdicts(named)[0].reasons
    assert not advice.verdicts(FLASK)[0].reasons  # it helps


def test_a_mortal_heap_is_named_as_the_reason() -> None:
    mortal = changed(FLASK, log=LogFacts(heap=56 * MIB, immortal=0, warmed=4))
    old = replace(mortal, versions={**FLASK.versions, "python": "3.11.7"})
    assert "CPython 3.11.7 writes a reference count" in page(old)
    assert "The heap was not made immortal; the log" in page(mortal)


def test_one_worker_nothing_warmed_and_lazy_loading_are_named() -> None:
    alone = with_plan(workers=1, counts=(1, 2))
    alone = replace(
        alone, ways=tuple(replace(w, lives=(life(1, 70, 9),)) for w in alone.ways)
    )
    assert "One worker has nobody to share with" in page(alone)
    assert "1 worker needs 70 MiB" in page(alone)
    assert "a worker has 9 MiB of its own" in page(alone).replace(
        "A worker", "a worker"
    )
    cold = changed(FLASK, log=LogFacts(heap=56 * MIB, immortal=5, warmed=0))
    assert "No page was warmed" in page(cold)
    lazy = changed(
        FLASK,
        lives=(life(2, 90, 40), life(4, 170, 40)),
        why=Why(40 * MIB, 0.8, ("32.0 MiB are new.",)),
    )
    assert "80% of a worker's private memory is new since the fork" in (
        " ".join(page(lazy).split())
    )


def test_a_way_that_failed_shows_its_log_and_is_not_advised() -> None:
    failed = changed(FLASK, lives=(), error="ended with 3:\n    ValueError: no")
    shown = page(failed)
    assert "gunicorn cow could not be measured; see its error." in shown
    assert "gunicorn cow failed: ended with 3:\n    ValueError: no" in shown
    assert not advice.verdicts(failed)[0].helps
    assert not advice.configuration(failed)


@given(st.integers(0, 1 << 36))
def test_a_limit_is_well_above_what_was_seen(highest: int) -> None:
    size = advice.limit(highest)
    assert size >= max(2 * highest, highest + 64 * MIB)
    assert size % (10 * MIB) == 0


def test_one_more_worker_is_measured_and_what_fits_follows_from_it() -> None:
    plain, _, ours = FLASK.ways
    assert advice.one_more(plain) == 46.5 * MIB
    assert advice.one_more(replace(plain, lives=plain.lives[:1])) is None
    assert advice.fits(plain, FLASK.room.size) == (2048 - 15) * 10 // 465
    # 58 MiB without a worker; 3.5 for each.
    assert advice.fits(ours, 58 * MIB) == 0
    assert advice.fits(ours, 93 * MIB) == 10
    assert advice.fits(ours, 1 << 60) == 9999
    assert advice.fits_at_limit(ours, (58 + 700) * MIB, 70 * MIB) == 10


def test_the_configuration_is_what_was_run() -> None:
    files = advice.configuration(FLASK)
    space: dict[str, object] = {}
    exec(files["gunicorn.conf.py"], space)
    del space["__builtins__"]
    assert space == {
        "worker_class": "cow",
        "workers": 4,
        "cow_warmup": ["auto"],
        "cow_max_private": "70M",
    }
    assert "cow-warmup = auto\ncow-max-private = 70M" in files["uwsgi.ini"]


def test_a_limit_that_recycled_is_said_to_be_too_low() -> None:
    low = replace(FLASK.limited[0], recycled=2)
    assert "2 workers were recycled: it is too low" in " ".join(
        page(replace(FLASK, limited=(low,))).split()
    )


# ---- what is run -----------------------------------------------------------------


def test_without_paths_the_applications_own_are_requested() -> None:
    probed = Probed("WSGI", tuple(f"/{number}/" for number in range(99)))
    made = plan.make("a", probed, [], 4, 500)
    assert made.paths == made.found == ("/", *probed.routes[: plan.ROUTES])
    assert made.warmup == ("auto", "/")
    named = plan.make("a", probed, ["/x", "/x"], 4, 500)
    assert (named.paths, named.found) == (("/x",), ())


def test_one_page_of_each_kind_is_warmed_by_name() -> None:
    paths = ["/", "/product/1/", "/product/2/", "/search?q=a", "/7/"]
    assert plan.warmup(paths, ["/", "/search"]) == ("auto", "/product/1/", "/7/")
    assert plan.warmup(["/a"], []) == ("/a",)
    assert plan.warmup([], []) == ("auto",)


@pytest.mark.parametrize(
    ("workers", "counts"), [(1, (1, 2)), (2, (1, 2)), (3, (2, 3)), (8, (4, 8))]
)
def test_two_numbers_of_workers_are_measured(
    workers: int, counts: tuple[int, int]
) -> None:
    assert plan.counts(workers) == counts


# ---- answers ---------------------------------------------------------------------


def compared(plain: list[bytes], other: list[bytes], status: int = 200) -> str:
    def of(bodies: list[bytes], code: int, port: int) -> list:
        return [(code, answers.tokens(Answer(code, each), port)) for each in bodies]

    found = answers.difference("/", of(plain, 200, 8001), of(other, status, 8002))
    return found.what if found else ""


def test_what_varies_by_itself_is_no_difference() -> None:
    forms = [b"<i v=%d> total 5" % number for number in (71, 72, 73)]
    assert not compared(forms, [b"<i v=99> total 5"])
    assert not compared([b"at 127.0.0.1:8001/"], [b"at 127.0.0.1:8002/"])
    assert not compared([b"a"], [b"v=1", b"v=2 x"])
    # The other way's own variation counts, too: a table that is loaded by each.
    assert not compared([b"id 5"], [b"id 6", b"id 7"])


def test_what_differs_is_shown_in_its_place() -> None:
    assert compared([b"total 5", b"total 5"], [b"total 6"]) == (
        "in one place: 'total 6' instead of 'total 5'"
    )
    assert compared([b"x"], [b"x"], status=500) == "status 500 instead of 200"
    assert compared([b"a b c"], [b"a b c d"]) == (
        "7 bytes instead of 5: 'b c d' instead of 'b c'"
    )


def test_differences_and_lost_answers_are_on_the_page() -> None:
    worse = changed(
        FLASK,
        differences=tuple(Difference(f"/{n}", "status 500") for n in range(7)),
        lives=(life(2, 65, 3, wrong=4), life(4, 72, 3)),
    )
    shown = page(worse)
    assert "- gunicorn cow: /0: status 500" in shown
    assert "and 3 more: --json has all" in shown
    assert "the same status and body" not in shown


# ---- logs and configurations -------------------------------------------------------


def test_the_facts_of_a_log() -> None:
    found = facts(COW_LOG)
    assert found == LogFacts(
        ("thread refresher: alive at the fork: start it in post_fork",),
        heap=56 * MIB,
        immortal=28112,
        warmed=4,
        recycled=1,
    )
    assert facts("") == LogFacts()


def test_the_end_of_a_log_leaves_out_what_every_start_says() -> None:
    log = "[1] [INFO] Starting\nOperationalError: no such table\n[1] [INFO] bye\n"
    assert tail(log) == "    OperationalError: no such table"
    assert tail("[INFO] only") == "    [INFO] only"


def test_the_users_gunicorn_configuration_holds_but_for_what_makes_the_way(
    tmp_path: Path,
) -> None:
    file = tmp_path / "gunicorn.conf.py"
    file.write_text(
        "bind = '0.0.0.0:80'\nthreads = 3\nworker_class = 'cow'\npreload_app = True\n"
        "daemon = True\ncow_warmup = ['/x']\n"
    )
    plain = settings(str(file), cow=False, preload=False, plain="")
    assert plain["threads"] == 3
    assert (plain["worker_class"], plain["preload_app"]) == ("sync", False)
    assert plain["daemon"] is False
    assert not [name for name in plain if name.startswith("cow_")]
    ours = settings(str(file), cow=True, preload=True, plain="")
    assert (ours["worker_class"], ours["cow_warmup"]) == ("cow", ["/x"])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("--threads 3 --preload --env 'A=b c'", "--threads 3 --env 'A=b c'"),
        ("-p /run/shop.pid --threads=3 --error-logfile=/var/log/shop", "--threads=3"),
        ("--statsd-host h:8125 -D --error-log x --log-syslog --user", ""),
    ],
)
def test_a_variable_of_the_server_that_runs_moves_no_try_into_its_files(
    given: str, kept: str
) -> None:
    """Its access log had the trial's requests, and its pid file refused the trial."""
    assert arguments(given) == kept


def test_a_try_writes_no_file_of_the_server_that_runs(tmp_path: Path) -> None:
    """It added its own start to the events, and its requests to what is warmed."""
    events, pages = tmp_path / "events", tmp_path / "pages"
    file = tmp_path / "gunicorn.conf.py"
    file.write_text(
        f"cow_event_log = {str(events)!r}\ncow_warmup_file = {str(pages)!r}"
    )
    named = settings(str(file), cow=True, preload=True, plain="").values()
    assert not {str(events), str(pages)} & {str(each) for each in named}
    variables = {"COW_EVENT_LOG": str(events), "COW_WARMUP_FILE": str(pages)}
    found = read({}, {**variables, **ENVIRON})
    assert (found.event_log, found.warmup_file) == (None, None)


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ("", (("worker_class", "cow"),)),
        ("gevent", (("worker_class", "cow_gevent"),)),
        ("uvicorn.workers.UvicornWorker", (("worker_class", "cow_uvicorn"),)),
        ("my.Worker", (("worker_class", "cow"), ("cow_worker", "my.Worker"))),
    ],
)
def test_each_worker_class_has_its_own_of_ours(given: str, lines: tuple) -> None:
    assert classes("", given, asgi=False)[1] == lines


def test_an_ini_listens_only_where_it_is_told() -> None:
    text = (
        "[uwsgi]\nhttp = :80\nchdir = %d\nlazy-apps = true\nmodule = shop.wsgi\n"
        "daemonize = /log\n; no\nneed-plugin = cow\ncow-warmup = auto\nprocesses=9\n"
    )
    plain = uwsgi_lines(text, "/srv/shop", cow=False)
    assert plain == ["chdir = /srv/shop/", "lazy-apps = true", "module = shop.wsgi"]
    ours = uwsgi_lines(text, "/srv/shop", cow=True)
    assert "lazy-apps = true" not in ours
    made = uwsgi_file(ours, 8001, 2, [("need-plugin", "cow"), ("cow-warmup", "/")])
    assert made.startswith("[uwsgi]\nneed-plugin = cow\nchdir")
    assert made.endswith("need-app = true\ncow-warmup = /\n")
    assert "http-socket = 127.0.0.1:8001\nprocesses = 2\n" in made


# ---- JSON --------------------------------------------------------------------------


def members(figures: object, prefix: str = "") -> set[str]:
    """The names of all members, however deep; a list's are its first item's."""
    if isinstance(figures, list):
        return members(figures[0], prefix) if figures else set()
    if not isinstance(figures, dict) or prefix in ("versions", "configuration"):
        return set()
    found = set()
    for name, value in figures.items():
        found |= {name} | members(value, name)
    return found


def test_every_member_of_the_json_is_documented() -> None:
    full = changed(FLASK, differences=(Difference("/", "status 500"),))
    full = replace(full, ways=(full.ways[2], *full.ways[:2]))
    figures = json.loads(as_json(full))
    assert figures["version"] == 1
    text = (CHECKOUT / "docs" / "try.md").read_text()
    named = members({**figures, "versions": {}, "configuration": {}})
    causes = {name for name in named if " " in name}
    assert [each for each in sorted(named - causes) if f"`{each}`" not in text] == []


def test_few_workers_of_a_site_are_one_row_a_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two runs measure 2 workers: the one that was asked for counts."""
    monkeypatch.syspath_prepend(str(CHECKOUT / "tools"))
    from tried import few_workers

    four = json.loads(as_json(FLASK))
    two = json.loads(as_json(with_plan(workers=2, counts=(1, 2), requests=250)))
    for mode in two["modes"]:
        mode["lives"][0] |= {"workers": 1, "total_pss": 50 * MIB}
        mode["lives"][1] |= {"workers": 2, "total_pss": 99 * MIB}
    made = few_workers({"mine": [four, two]})
    assert made.startswith("CPython 3.13.0, 125 requests for each worker; MiB")
    assert "| mine | gunicorn cow | 50 | 99 | 72 |" in made
