"""Settings: one declaration, every fault at once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload.cli.settings import table
from cowpreload.errors import SettingsError
from cowpreload.kinds import GUNICORN, UWSGI
from cowpreload.lifecycle import Start
from cowpreload.settings import DECLARED, Settings
from cowpreload.settings_given import read, unknown_faults, unknown_variables

ROOT = Path(__file__).parent.parent.parent


def refused(**given: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(given, environ={})
    return list(caught.value.faults)


def test_every_default_passes_its_own_check() -> None:
    given = {
        each.attribute: each.kind.show(each.default)
        for each in DECLARED
        if each.default not in (None, ())
    }
    assert read(given, environ={}) == Settings()


@pytest.mark.parametrize("text", ["200X", "-1", ""])
def test_a_limit_that_is_no_size_is_refused(text: str) -> None:
    (fault,) = refused(max_private=text)
    assert fault.startswith(f"max-private={text}: ")
    assert "; " in fault


def test_a_soft_limit_above_the_hard_one_is_refused() -> None:
    (fault,) = refused(max_private="300M", max_private_hard="200M")
    assert "max-private=300MiB: is above max-private-hard=200MiB" in fault


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"check_interval": "0"}, "check-interval=0: is too low"),
        ({"check_interval": "nan"}, "check-interval=nan: is no number"),
        ({"warmup": ["shop"]}, "warmup=shop: does not begin with a slash"),
        ({"strikes": "0"}, "strikes=0: is too low"),
        ({"strikes": "many"}, "strikes=many: is no whole number"),
        ({"exit": "slow"}, "exit=slow: is not known; write fast or normal"),
        ({"max_recycling": 0}, "max-recycling=0: is too low"),
        ({"min_lifetime": "-3"}, "min-lifetime=-3: is too low"),
        ({"strikes": "99999999999"}, "strikes=99999999999: is too high"),
        ({"max_private": "9" * 400}, "max-private=" + "9" * 400 + ": is more than"),
        ({"max_private": "200"}, "max-private=200: is that many bytes; write 200M"),
        ({"max_private_hard": 512}, "max-private-hard=512: is that many bytes; "),
        ({"max_growth": "204800"}, "max-growth=204800: is that many bytes; write 20"),
        (
            {"warmup": ["http://localhost"]},
            "warmup=http://localhost: is a URL; write /, with warmup-host=localhost",
        ),
        (
            {"warmup": "https://shop.example:8000/a?b=1"},
            "warmup=https://shop.example:8000/a?b=1: is a URL; write /a?b=1, "
            "with warmup-host=shop.example:8000",
        ),
        ({"warmup": "h://["}, "warmup=h://[: does not begin with a slash; "),
        ({"warmup_header": "Cookie"}, "warmup-header=...: has no colon; "),
        ({"warmup_header": "X_A: s3"}, "warmup-header=...: servers drop a name with"),
        ({"warmup_header": "A B: s3"}, "warmup-header=...: the name is no header's"),
        ({"warmup_header": "Host: a"}, "warmup-header=Host:...: is not for headers; "),
        ({"warmup_header": ["X-A:"]}, "warmup-header=X-A:...: the value is empty; "),
        ({"warmup_header": ["X-A: s3\0"]}, "warmup-header=X-A:...: the value holds"),
        ({"warmup_header": ["X-A: s3\u20ac"]}, "warmup-header=X-A:...: the value ho"),
        ({"warmup_timeout": "0"}, "warmup-timeout=0: is too low"),
    ],
)
def test_a_bad_value_is_refused(given: dict[str, Any], start: str) -> None:
    (fault,) = refused(**given)
    assert fault.startswith(start)


def test_all_faults_are_listed_at_once() -> None:
    faults = refused(max_private="x", strikes="y", warmup=["z"])
    assert len(faults) == 3


def test_an_unknown_name_is_shown_its_nearest() -> None:
    (fault,) = unknown_faults(["cow_max_privat", "bind"], GUNICORN)
    assert fault == "cow_max_privat: no such setting; did you mean cow_max_private?"
    (fault,) = unknown_faults(["cow-strike"], UWSGI)
    assert fault.endswith("did you mean cow-strikes?")


def test_a_setting_of_the_other_host_is_named_as_such() -> None:
    assert unknown_faults(["cow_worker"], GUNICORN) == []
    (fault,) = unknown_faults(["cow-worker"], UWSGI)
    assert fault == "cow-worker: a setting for gunicorn alone; remove it"
    (fault,) = unknown_faults(["cow-workr"], UWSGI)
    assert "cow-worker" not in fault


def test_a_worker_class_may_be_given_as_a_class() -> None:
    assert read({"worker": Path}, environ={}).worker == f"{Path.__module__}.Path"


def test_a_file_may_hold_numbers_lists_and_booleans() -> None:
    settings = read({"strikes": 5, "warmup": ["/a", "/b"], "gc": False}, environ={})
    assert (settings.strikes, settings.warmup, settings.gc) == (5, ("/a", "/b"), "off")


def test_a_comma_in_the_query_of_a_warm_up_path_does_not_part_it() -> None:
    given = {"warmup": "/x?ids=1,2, /y,/z?a=b,c"}
    assert read(given, environ={}).warmup == ("/x?ids=1,2", "/y", "/z?a=b,c")
    environ = {"COW_WARMUP": "/x?ids=1,2"}
    assert read({}, environ=environ).warmup == ("/x?ids=1,2",)
    listed = {"warmup": ["/x?next=a,/b"]}
    assert read(listed, environ={}).warmup == ("/x?next=a,/b",)


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ("auto", ()),
        ("/,auto", ("/",)),
        ("auto, /x?a=1,auto,/y", ("/x?a=1", "/y")),
        (["/auto", " auto "], ("/auto",)),
    ],
)
def test_auto_stands_beside_paths(given: str, listed: tuple[str, ...]) -> None:
    settings = read({"warmup": given}, environ={})
    assert settings.warmup_auto
    assert settings.warmup_listed == listed
    assert not read({"warmup": "/auto"}, environ={}).warmup_auto


def test_a_warm_up_header_is_never_shown_with_its_value() -> None:
    given = {"warmup_header": "Cookie: session=s3cret: x\nX-Token:s3cret"}
    settings = read(given, environ={})
    assert "s3cret" not in repr(settings)
    assert settings.warmup_header == (
        ("Cookie", "session=s3cret: x"),
        ("X-Token", "s3cret"),
    )
    assert "warmup-header=Cookie,X-Token " in Start(settings, GUNICORN).line()
    assert "s3cret" not in Start(settings, GUNICORN).line()


def test_a_raw_header_reads_the_same_and_shows_nothing() -> None:
    (declared,) = (each for each in DECLARED if each.attribute == "warmup_header")
    for raw in ("X-A: s3cret", ["X-A: s3cret"]):
        hidden = declared.hidden(raw)
        assert "s3cret" not in f"{hidden} {hidden!r} " + str(hidden)
        assert declared.texts(hidden) == ["X-A: s3cret"]


def test_a_slip_in_a_variable_is_a_fault_and_anothers_variable_is_not() -> None:
    environ = {
        "COW_MAX_PRIVAT": "1",
        "COW_WARM_UP": "/",
        "COW_STRIKES": "3",
        "COW_PATH": "/usr/share/cows",
        "COW_GCP": "1",
        "COW_SANITIZE": "address",
        "COWPRELOAD_STARTUP": "0",
    }
    faults, note = unknown_variables(environ)
    assert faults == [
        "COW_MAX_PRIVAT: no such setting; did you mean COW_MAX_PRIVATE?",
    ]
    assert note == (
        "cow: no settings of ours: COW_GCP, COW_PATH, "
        "COW_WARM_UP (did you mean COW_WARMUP?)"
    )
    assert unknown_variables({"COW_EXIT": "fast"}) == ([], "")


def test_a_variable_of_the_users_own_near_a_short_name_is_no_fault() -> None:
    faults, note = unknown_variables({"COW_WORKERS": "4", "COW_EXITS": "1"})
    assert faults == []
    assert "COW_WORKERS (did you mean COW_WORKER?)" in note


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_variable_is_unset(text: str) -> None:
    environ = {each.environment: text for each in DECLARED}
    assert read({}, environ=environ) == Settings()


def test_the_environment_gives_what_is_not_given() -> None:
    environ = {"COW_MAX_PRIVATE": "200M", "COW_WARMUP": "/a,/b", "COW_STRIKES": "9"}
    settings = read({"strikes": "4"}, environ=environ)
    assert settings.max_private == 200 << 20
    assert settings.warmup == ("/a", "/b")
    assert settings.strikes == 4


@given(
    st.dictionaries(st.sampled_from([each.attribute for each in DECLARED]), st.text())
)
def test_any_text_gives_settings_or_faults(given: dict[str, Any]) -> None:
    try:
        line = Start(read(given, environ={}), GUNICORN).line()
    except SettingsError as error:
        line = error.faults[0]
    assert "=" in line


def test_max_recycling_is_a_tenth_and_at_least_one() -> None:
    assert [Settings().limits(n, 30).max_recycling for n in (1, 9, 10, 25, 100)] == [
        1,
        1,
        1,
        2,
        10,
    ]


def test_the_documented_table_is_the_declared_one() -> None:
    assert table() in (ROOT / "docs" / "settings.md").read_text()
