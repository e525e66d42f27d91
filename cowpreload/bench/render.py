"""How a table is written: for a terminal of 80 columns, and as Markdown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

WIDTH = 80  # columns


@dataclass(frozen=True)
class Table:
    """Text cells; the first column is read, the others are compared."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: str = ""

    def terminal(self) -> str:
        """The table at 80 columns."""
        cells = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        gap = "  " if sum(widths) + 2 * len(widths) - 2 <= WIDTH else " "
        lines = [*wrap(self.title, WIDTH), ""]
        for row in cells:
            first, *others = (
                cell.ljust(width) if index == 0 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append(gap.join([first, *others]).rstrip())
        return "\n".join(lines + wrap(self.foot, WIDTH))

    def markdown(self) -> str:
        """The table for a document."""
        lines = [
            self.title,
            "",
            "| " + " | ".join(self.head) + " |",
            "| --- " + "| ---: " * (len(self.head) - 1) + "|",
        ]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines + (["", self.foot] if self.foot else []))
