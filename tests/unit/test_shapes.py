"""Shapes: paths of one page are one, and pages of their own stay apart."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload.candidates import Served
from cowpreload.shapes import HOSTS, NAMES, SLUGS, plain_shape, shapes

WORDS = ["ash", "beech", "birch", "box", "cedar", "elm", "fir", "hazel", "holly"]
WORDS += ["larch", "lime", "maple", "oak", "palm", "pine", "plane", "rowan", "sloe"]


def served(*paths: str, host: str = "h") -> list[Served]:
    return [Served(path, host, 1) for path in paths]


def found(pages: list[Served]) -> list[str]:
    return [each.shape for each in shapes(pages)]


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/", "/"),
        ("/product/17/", "/product/#/"),
        ("/2026/11/21/news", "/#/#/#/news"),
        ("/page2-of-10.html", "/page#-of-#.html"),
        ("/u/123e4567-e89b-12d3-a456-426614174000", "/u/#"),
        ("/blob/0123456789abcdef0123456789ABCDEF.png", "/blob/#.png"),
        ("/deed/facade", "/deed/facade"),
        ("/caf%C3%A9/%D0%BF5", "/caf%C3%A9/%D0%BF#"),
        ("//a//", "//a//"),
    ],
)
def test_a_path_without_its_numbers_and_identifiers(path: str, shape: str) -> None:
    assert plain_shape(path) == shape


def slugs(count: int) -> list[str]:
    return [f"/blog/{a}-{b}/" for a in WORDS for b in WORDS][:count]


def test_many_slugs_are_one_page() -> None:
    assert found(served(*slugs(SLUGS), "/blog/archive/")) == [
        "/blog/*/",
        "/blog/archive/",
    ]


def test_the_pages_of_a_small_site_are_not_taken_for_slugs() -> None:
    pages = [f"/{word}/" for word in WORDS]
    pages += ["/about-us/", "/contact-us/", "/log-in/"]
    assert sorted(found(served(*pages))) == sorted(pages)


def test_slugs_with_pages_below_them_are_one() -> None:
    pages = [f"{path}{below}" for path in slugs(40) for below in ("", "edit/", "7/")]
    assert sorted(found(served(*pages))) == ["/blog/*/", "/blog/*/#/", "/blog/*/edit/"]


def test_many_names_below_a_parent_are_one_page() -> None:
    names = [f"{a}{b}" for a in WORDS for b in WORDS][:NAMES]
    assert found(served(*[f"/user/{name}" for name in names])) == ["/user/*"]
    assert len(found(served(*[f"/{name}" for name in names]))) == NAMES


def test_the_framework_s_route_is_better_than_the_look() -> None:
    routes = {"/ash": "tree", "/elm": "tree", "/oak-wood": "wood"}
    made = shapes(served(*routes, "/17"), lambda path: routes.get(path, ""))
    assert [(each.shape, each.path, each.count) for each in made] == [
        ("tree", "/ash", 2),
        ("/#", "/17", 1),
        ("wood", "/oak-wood", 1),
    ]


def test_the_busiest_hosts_stand_for_all() -> None:
    pages = [Served("/", f"{number}.example", 100 - number) for number in range(50)]
    made = shapes(pages)
    assert [each.host for each in made] == [f"{n}.example" for n in range(HOSTS)]


def test_the_example_is_the_path_that_was_requested_most() -> None:
    pages = [Served("/p/1/", "h", 3), Served("/p/22/", "h", 9), Served("/", "h", 10)]
    assert [(each.path, each.count) for each in shapes(pages)] == [
        ("/p/22/", 12),
        ("/", 10),
    ]


segment = st.text("ab1-.%C3é/", max_size=12) | st.sampled_from(WORDS) | st.uuids()
path = st.lists(segment.map(str), max_size=4).map(lambda each: "/" + "/".join(each))
page = st.builds(Served, path, st.sampled_from("ab"), st.integers(1, 99))


@given(st.lists(page, max_size=80), st.randoms(use_true_random=False))
def test_no_request_is_lost_and_the_order_does_not_matter(
    pages: list[Served], order: random.Random
) -> None:
    made = shapes(pages)
    assert sum(each.count for each in made) == sum(each.count for each in pages)
    assert {(each.path, each.host) for each in made} <= {
        (each.path, each.host) for each in pages
    }
    assert len({(each.shape, each.host) for each in made}) == len(made)
    assert shapes(sorted(pages, key=lambda _: order.random())) == made
