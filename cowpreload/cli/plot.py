"""Draw what `cowpreload record` wrote: memory over time, stacked by worker and master.

Total PSS is the height; a triangle marks a worker that was replaced, coloured by the
reason. Needs matplotlib, the extra `plot`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cowpreload.cli import needs
from cowpreload.errors import NotFoundError
from cowpreload.report.timeline import draw, timelines

HELP = "draw what was recorded, as PNG or SVG"
_ENDS = (".png", ".svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recording, and the picture."""
    parser.add_argument("file", type=Path, help="what cowpreload record has written")
    parser.add_argument(
        "--output",
        type=_picture,
        metavar="FILE",
        help="ends in .png or .svg (default: beside the recording, .png)",
    )


def _picture(text: str) -> Path:
    if not text.endswith(_ENDS):
        raise argparse.ArgumentTypeError(
            f"output={text}: ends in .png or .svg; rename it"
        )
    return Path(text)


def run(arguments: argparse.Namespace) -> int:
    """Write the picture, and say where."""
    needs.matplotlib("plot")
    with arguments.file.open(encoding="utf-8", errors="replace") as text:
        lines, bad = timelines(text)
    if bad:
        print(f"plot: {bad} lines are no readings: left out", file=sys.stderr)
    if not lines:
        raise NotFoundError(
            f"{arguments.file}: holds no reading of a server; record one with: "
            "cowpreload record --output FILE"
        )
    output = arguments.output or arguments.file.with_suffix(".png")
    draw(lines, output)
    print(f"wrote {output}")
    return 0
