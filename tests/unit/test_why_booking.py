"""Pages are booked whole, once, and the sums are exact."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cowpreload.causes import Cause
from cowpreload.why.booking import EXAMPLES, book, runs, sum_up

PAGE = 4096
FOUND = st.dictionaries(
    st.tuples(st.sampled_from(Cause), st.sampled_from(["", "a", "b.c", "d"])),
    st.integers(1, 50),
    max_size=6,
)
PAGES = st.dictionaries(st.integers(0, 200).map(lambda n: n * PAGE), FOUND, max_size=40)


@given(PAGES)
def test_every_page_is_booked_once(pages) -> None:  # type: ignore[no-untyped-def]
    rows = sum_up(pages)
    assert sum(row.pages for row in rows) == len(pages)
    assert len({row.cause for row in rows}) == len(rows)
    for row in rows:
        assert 0 <= row.alone <= row.pages
        assert len(row.examples) <= EXAMPLES
        assert sum(each.pages for each in row.examples) <= row.pages


@given(PAGES)
def test_runs_are_the_pages_again(pages) -> None:  # type: ignore[no-untyped-def]
    found = {}
    for run in runs(pages, PAGE):
        for number in range(run.pages):
            address = run.start + number * PAGE
            assert address not in found
            found[address] = run.cause
    assert found == {address: book(each) for address, each in pages.items()}


@given(FOUND)
def test_the_strongest_cause_wins(found) -> None:  # type: ignore[no-untyped-def]
    cause = book(found)
    weights = {
        each: sum(n for (c, _), n in found.items() if c is each) for each in Cause
    }
    assert weights[cause] == max(weights.values())


def test_a_tie_goes_to_the_cause_that_is_named_first() -> None:
    found = {(Cause.ALLOCATOR, "slots"): 2, (Cause.REFCOUNT, "str"): 2}
    assert book(found) is Cause.REFCOUNT
    assert book({}) is Cause.UNEXPLAINED


def test_alone_is_what_would_be_shared_without_that_cause() -> None:
    pages = {
        0: {(Cause.REFCOUNT, "str"): 3},
        PAGE: {(Cause.REFCOUNT, "str"): 3, (Cause.HASH, "str"): 1},
    }
    (row,) = sum_up(pages)
    assert (row.pages, row.alone) == (2, 1)
    assert row.examples[0].text == "str"
    assert (row.examples[0].pages, row.examples[0].count) == (2, 6)
