/*
 * Sealing, its whole contract: fill the holes between inherited objects, so that young
 * ones land on pages of their own.
 *
 * Takes    the GIL, once, right before the first fork and after cow_trim(). Called on
 *          the main thread: glibc gives other threads a heap of their own.
 * Gives    what was filled. It is never used and never freed.
 * Must not be called in a worker, nor change how an allocator behaves later.
 */
#ifndef COW_SEAL_H
#define COW_SEAL_H

#include <stdint.h>

/* Why a heap is left as it is. */
enum cow_unsealed {
    COW_SEALED = 0,
    COW_UNSEALED_UNKNOWN = 1, /* another allocator than the one we know */
    COW_UNSEALED_MEMORY = 2,  /* no memory to go on with */
};

struct cow_seal {
    uint64_t blocks; /* free slots of Python's small objects that were filled */
    uint64_t block_bytes;
    uint64_t chunks; /* free chunks of the C heap that were filled */
    uint64_t chunk_bytes;
    uint64_t returned; /* bytes: whole pages of filled slots, which need no memory */
    uint32_t python;   /* enum cow_unsealed: Python's small objects */
    uint32_t c_heap;   /* enum cow_unsealed: malloc's */
};

void cow_seal(struct cow_seal *out);
/* Whether Python's small objects are pymalloc's. Needs the GIL. */
int cow_is_pymalloc(void);

#endif
