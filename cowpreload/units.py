"""Sizes and durations as operators write them, both ways. Pure."""

from __future__ import annotations

import re

MIB = 1024 * 1024

_FACTORS = {"": 1, "K": 1024, "M": MIB, "G": 1024 * MIB, "T": 1024 * 1024 * MIB}
_MOST = 1 << 62  # what the native core can count
# "200M", "200MB" and "200MiB" all mean 1024-based units, as in gunicorn, uWSGI,
# systemd and the kernel; nobody means a decimal megabyte of memory.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Give the bytes that `text` ("200M", "1.5G", "209715200") names.

    Raises:
        ValueError: it is no size, not above zero, or a bare number below one MiB.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError("is no size; write a number with K, M, G or T, as in 200M")
    number, unit = match[1], match[2].upper()
    size = float(number) * _FACTORS[unit]
    if size >= _MOST:
        raise ValueError("is more than any machine has; write a smaller size")
    if 0 < size < MIB and not unit:
        # Who writes 200 means 200 MiB; who writes 204800, as for ulimit, KiB.
        meant = "M" if size <= 65536 else "K"
        raise ValueError(f"is that many bytes; write {number}{meant}")
    size = int(size)
    if size <= 0:
        raise ValueError("must be above zero; leave the setting out for no limit")
    return size


def format_size(size: int) -> str:
    """Write bytes as whole MiB, rounded down as the C core does: `131MiB`.

    Below one MiB as KiB: a limit of `0MiB` would not explain itself.
    """
    return f"{size // MIB}MiB" if size >= MIB else f"{size // 1024}KiB"


def format_seconds(seconds: float) -> str:
    """Write a duration without a useless fraction: `10s`, `0.5s`."""
    return f"{seconds:g}s"


def format_age(seconds: float) -> str:
    """Write an age in its two largest units, in six characters: `45s`, `3h07m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"
