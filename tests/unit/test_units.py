"""Sizes as operators write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload.units import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("4194304", 4 << 20), ("200M", 200 << 20), ("1.5G", 3 << 29), ("10kib", 10240)],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["200X", "-1", "", "0", "M", "1e3", "2 00M"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=";"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=1 << 30))
def test_whole_mebibytes_survive_both_ways(mib: int) -> None:
    assert parse_size(format_size(mib << 20)) == mib << 20
