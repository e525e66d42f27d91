/*
 * A file that another process holds by the board's name: any size, any seals, any
 * words where a board has its own. What is taken for a board can be read to its end.
 *
 * Links: board.c prim.c prim_memory.c
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cow.h"
#include "prim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct cow_board head;
    struct cow_board *board;
    if (size < 8) return 0;
    head.magic = COW_MAGIC;
    head.revision = COW_REVISION;
    head.slots = COW_SLOTS;
    int seals = data[0] & 31, kind = data[1] & 3;
    off_t length = (off_t)sizeof head;
    if (kind == 1) length += (off_t)data[2] - 128;
    if (kind == 2) length = data[2] * 4096;
    size_t at = data[3] % 32;
    for (size_t i = 8; i < size && i < 40; i++)
        ((uint8_t *)&head)[at + i - 8] ^= data[i];
    int writable = data[4] & 1, given = data[5] & 1 ? O_RDONLY : O_RDWR;

    int fd = memfd_create("cowpreload-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert(fd >= 0 && !ftruncate(fd, length));
    assert(pwrite(fd, &head, 64, 0) >= 0);
    (void)fcntl(fd, F_ADD_SEALS, seals);
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = open(path, given | O_CLOEXEC);
    if (cow_board_open(other, writable, &board) == COW_OK) {
        assert(board->magic == COW_MAGIC && board->revision == COW_REVISION);
        assert(board->slots == COW_SLOTS && length >= (off_t)sizeof head);
        assert(ftruncate(fd, 0)); /* it cannot be taken away from under its reader */
        volatile char *last = (char *)board + sizeof *board - 1;
        (void)*last;
        assert(cow_board_close(board) == COW_OK);
    }
    close(other);
    close(fd);
    return 0;
}
