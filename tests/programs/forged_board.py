"""As nobody, hold a board that lies, as argument 1 says; end when stdin closes.

names: every slot is a worker with the pid that argument 2 is. random: whatever the
random numbers of that seed write, below the head.
"""

import os
import random
import sys

from cowpreload._core import ffi, lib, take_reading
from cowpreload.board import Board

kind, number = sys.argv[1], int(sys.argv[2])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
take_reading()
board = Board.create("\x1b[2Jgunicorn")
raw = board.raw
size, head = ffi.sizeof("struct cow_board"), ffi.offsetof("struct cow_board", "tickets")
if kind == "random":
    noise = random.Random(number).randbytes(size - head)
    ffi.memmove(ffi.cast("char *", raw) + head, noise, len(noise))
    raw.highest = 20
else:
    raw.highest = raw.slots
    for slot in raw.slot:
        slot.life.pid, slot.life.generation, slot.life.state = number, 1, lib.COW_READY
        slot.life.ready_at_ms = 1
        slot.memory.private_bytes = 7
raw.master_pid = os.getpid()
print("held", flush=True)
sys.stdin.read()
