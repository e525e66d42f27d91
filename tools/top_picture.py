"""The picture of `cowpreload top` in docs/: a real screen of servers that run now.

    build/venv-3.13/bin/python tools/top_picture.py docs/figures/top.svg

Start a server, and load that recycles workers; this watches for a minute, asks no
question, and writes the last screen as textual draws it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path

from cowpreload.cli.record import taker
from cowpreload.cli.top_screen import Top


def small(svg: str) -> str:
    """Without fonts from another host: the reader's own monospace will do."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code", "monospace")


async def picture(who: str, seconds: float, width: int, height: int) -> str:
    """What is on the screen after so many seconds."""
    app = Top(taker(who), 2.0)
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause(seconds)
        return small(app.export_screenshot(title="cowpreload top"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--who", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--height", type=int, default=24)
    given = parser.parse_args()
    svg = asyncio.run(picture(given.who, given.seconds, given.width, given.height))
    given.output.write_text(svg)
    print(f"wrote {given.output}, {len(svg) // 1024} KiB")


if __name__ == "__main__":
    main()
