/*
 * The map of a process, in pieces of any length: what is offered to the kernel does not
 * depend on where a piece ends, and is memory that a line names.
 *
 * Includes what it tries; the system's calls are here.
 */
#include <assert.h>
#include <stdlib.h>

#include "../../cowpreload/native/maps.c"
#include "../../cowpreload/native/merge.c"

static const uint8_t *text;
static size_t rest, piece;

int cow_prim_open(const char *path, int *fd) {
    (void)path;
    *fd = 3;
    return 0;
}

int cow_prim_read(int fd, char *buffer, size_t size, size_t *length) {
    (void)fd;
    assert(size); /* a full buffer would be read for ever */
    size_t got = size < piece ? size : piece;
    if (got > rest) got = rest;
    memcpy(buffer, text, got);
    text += got;
    rest -= got;
    *length = got;
    return 0;
}

void cow_prim_close(int fd) { (void)fd; }

int cow_prim_mergeable(uintptr_t start, size_t size) {
    assert(size && start + size > start);
    return start & 4096 ? EINVAL : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cow_merge some, whole;
    if (!size) return 0;
    uint8_t *exact = malloc(size);
    memcpy(exact, data, size);
    text = exact + 1;
    rest = size - 1;
    piece = (size_t)exact[0] + 1;
    (void)cow_merge_offer(&some);
    text = exact + 1;
    rest = size - 1;
    piece = SIZE_MAX;
    (void)cow_merge_offer(&whole);
    assert(!memcmp(&some, &whole, sizeof some));
    free(exact);
    return 0;
}
