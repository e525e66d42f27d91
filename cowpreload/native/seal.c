/*
 * Sealing: take every hole between inherited objects, and keep it.
 *
 * Both allocators serve a request from a hole before they take fresh memory; in a
 * worker each such hole costs a copied page. So the master makes the requests first,
 * size by size, through the allocators' public functions. Once one is served from fresh
 * memory there is no hole of that size left. Which memory that is shows in the address
 * alone; what is known of the allocators is checked before it is relied on.
 */
#define _GNU_SOURCE 1 /* the very text of pyconfig.h: another is a warning */
#include "seal.h"

#include "c_heap.h"
#include "prim.h"

#include <stdlib.h>
#include <string.h>

#ifdef COW_CPYTHON
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sys/mman.h>
#include <unistd.h>

/* Python's small objects: pools of blocks of one size. */

/* pymalloc of CPython 3.10 to 3.15 on 64 bits. */
enum { POOL = 16384, HEADER = 48, STEP = 16, LARGEST = 512, PAGE = 4096 };

/* What may have been swapped out when the process was largest: 4 MiB of headers. */
enum { POOLS_LEAST = 1024 };

static void *held[POOL / STEP]; /* what one pool gave so far */

static int is_block(const void *block, size_t size) {
    size_t at = (uintptr_t)block % POOL;
    return at >= HEADER && (at - HEADER) % size == 0 && at + size <= POOL;
}

/* One block of each size stands where pymalloc would put it: other allocators do not
 * pass, nor debug hooks, which put words of their own before each block. */
int cow_is_pymalloc(void) {
    int known = 1;
    for (size_t size = STEP; known && size <= LARGEST; size += STEP) {
        void *block = PyObject_Malloc(size);
        known = block && is_block(block, size);
        PyObject_Free(block);
    }
    return known;
}

/* Give back the memory of the pool's pages on which everything is filled. The first has
 * the pool's header; what is behind the last block is nobody's. */
static uint64_t give_back(size_t size, size_t count) {
    size_t covered[POOL / PAGE] = {0};
    uintptr_t pool = (uintptr_t)held[0] & ~(uintptr_t)(POOL - 1);
    uint64_t returned = 0;
    for (size_t i = 0; i < count; i++) {
        size_t start = (uintptr_t)held[i] - pool, end = start + size;
        for (size_t page = start / PAGE; page * PAGE < end; page++) {
            size_t from = page * PAGE, to = from + PAGE;
            covered[page] += (end < to ? end : to) - (start > from ? start : from);
        }
    }
    covered[POOL / PAGE - 1] += (POOL - HEADER) % size;
    for (size_t page = 1; page < POOL / PAGE; page++)
        if (covered[page] == PAGE &&
            !madvise((void *)(pool + page * PAGE), PAGE, MADV_DONTNEED))
            returned += PAGE;
    return returned;
}

/* More pools than this there cannot be: each has a header, on a page of its own that
 * was written. An allocator that takes us to more is not the one we know. */
static uint64_t count_pools_at_most(void) {
    return cow_prim_peak() / PAGE + POOLS_LEAST;
}

/* Take blocks of one size until one pool gave as many as it has room for: it was a
 * fresh one, so that no other had a block left. `pools` is how many may be left behind
 * before that, of all sizes. */
static int fill_size(size_t size, uint64_t *pools, struct cow_seal *out) {
    size_t room = (POOL - HEADER) / size, count = 0;
    while (count < room) {
        void *block = PyObject_Malloc(size);
        if (!block) return COW_UNSEALED_MEMORY;
        if (count && (uintptr_t)block / POOL != (uintptr_t)held[0] / POOL) {
            out->returned += give_back(size, count);
            out->blocks += count;
            out->block_bytes += count * size;
            count = 0;
            if (!(*pools)--) {
                PyObject_Free(block);
                return COW_UNSEALED_UNKNOWN;
            }
        }
        held[count++] = block;
    }
    while (count) PyObject_Free(held[--count]);
    return COW_SEALED;
}

/* Whether Python's objects are malloc()'s: it serves what was freed last, or they lie
 * below the program's break, where malloc() grows. They are then part of the C heap,
 * and whatever is said of that is said of them. */
static int is_malloc(void) {
    /* Volatile: a compiler may leave malloc() and free() of one chunk out. */
    volatile uintptr_t first, second;
    void *block = PyObject_Malloc(STEP);
    first = (uintptr_t)block;
    PyObject_Free(block);
    void *chunk = malloc(STEP);
    second = (uintptr_t)chunk;
    free(chunk);
    /* Far below, and above, are mappings. */
    return first &&
           (first == second || (uintptr_t)sbrk(0) - first < (uintptr_t)1 << 40);
}

static int seal_python(struct cow_seal *out) {
    PyGILState_STATE gil = PyGILState_Ensure();
#if PY_VERSION_HEX >= 0x030b0000
    /* It holds names that were made for one lookup; each miss in a worker lets one go,
     * and its slot is a new hole: 100 pages of a worker of the example site. 3.10 would
     * number the versions of types anew, while caches of its code and of further
     * interpreters keep the old numbers: a lookup then finds what is another type's. */
    (void)PyType_ClearCache();
#endif
    int why_not = COW_SEALED;
    uint64_t pools = count_pools_at_most();
    if (cow_is_pymalloc())
        for (size_t size = STEP; !why_not && size <= LARGEST; size += STEP)
            why_not = fill_size(size, &pools, out);
    else if (!is_malloc())
        why_not = COW_UNSEALED_UNKNOWN;
    PyGILState_Release(gil);
    return why_not;
}

#else

int cow_is_pymalloc(void) { return 0; }

static int seal_python(struct cow_seal *out) {
    (void)out;
    return COW_UNSEALED_UNKNOWN;
}

#endif

void cow_seal(struct cow_seal *out) {
    memset(out, 0, sizeof *out);
    out->python = (uint32_t)seal_python(out);
    out->c_heap = (uint32_t)cow_c_heap_fill(out);
}
