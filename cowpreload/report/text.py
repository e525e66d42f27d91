"""Tables for a terminal, 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from cowpreload.units import MIB
from cowpreload.view import SlotView

_HEAD = (
    f"{'worker':>6} {'gen':>4} {'pid':>7} {'state':<7} {'requests':>8} "
    f"{'private':>8} {'evictable':>9} {'shared':>7} {'pss':>7} {'age':>8}"
)


def board_table(master_pid: int, slots: Sequence[SlotView]) -> str:
    """One line a worker, sizes in MiB, ages in seconds."""
    lines = [f"master {master_pid}, {len(slots)} workers, MiB", _HEAD]
    lines += [
        f"{each.slot:>6} {each.generation:>4} {each.pid:>7} {each.state:<7} "
        f"{each.requests:>8} {each.private / MIB:>8.1f} {each.evictable / MIB:>9.1f} "
        f"{each.shared / MIB:>7.1f} {each.pss / MIB:>7.1f} {each.age:>7.0f}s"
        for each in slots
    ]
    return "\n".join(lines)
