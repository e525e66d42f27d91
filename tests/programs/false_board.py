"""Hold a file that looks like a board, as argument 1 says; end when stdin closes.

master: a board that names argument 2 as its master. loose: one whose size is not
sealed. slots: one that claims more slots than it has. file: a file of that name.
"""

import os
import sys

from cowpreload._core import ffi
from cowpreload.board import Board

kind = sys.argv[1]
board = Board.create()
if kind == "master":
    board.raw.master_pid = int(sys.argv[2])
elif kind == "slots":
    board.raw.slots = 1 << 20
else:
    size = ffi.sizeof("struct cow_board")
    whole = bytes(ffi.buffer(board.raw, size))
    os.close(board.fd)
    if kind == "loose":
        fd = os.memfd_create("cowpreload-board", os.MFD_ALLOW_SEALING)
    else:
        fd = os.open("memfd:cowpreload-board", os.O_RDWR | os.O_CREAT)
    os.write(fd, whole)
print("held", flush=True)
sys.stdin.read()
