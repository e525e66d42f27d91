"""The example shop as the tests ask it: what warms it, and a mix of all its pages."""

from __future__ import annotations

import json

from harness.server import Server

# One path for each kind of page.
WARMUP = ("/", "/product/1/", "/search/?q=lamp", "/browse/1/")


def mix(server: Server, count: int) -> list[str]:
    """`count` paths that walk through the whole catalogue that `server` holds."""
    parts = int(json.loads(server.get("/browse/")[1])["parts"])
    pages = []
    for number in range(count):
        kinds = (
            f"/?page={number % 40 + 1}",
            f"/product/{number % 2000 + 1}/",
            "/search/?q=lamp",
            f"/browse/{number % parts + 1}/",
        )
        pages.append(kinds[number % len(kinds)])
    return pages
