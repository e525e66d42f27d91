/*
 * Merging by the kernel (KSM): which of a process's memory it may merge. Part of
 * cow.h's contract.
 *
 * Takes    this process's maps, from /proc. Gives how much was offered. Every process
 *          that is forked later has offered it too; what it allocates on its own is not
 *          part of it, so that the kernel need not scan that.
 * Must not offer what is shared, which the kernel could not merge, nor stacks, which
 *          are written at each call.
 */
#ifndef COW_MERGE_H
#define COW_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct cow_merge {
    uint64_t bytes;  /* of address space, resident or not */
    uint32_t ranges; /* mappings */
    uint32_t error;  /* errno of the first one that the kernel refused; 0: none */
};

/* Whether a line of /proc/PID/maps is private, writable memory that no file is behind,
 * and no stack; if so, from where to where. Pure. */
int cow_merge_wants(const char *line, size_t size, uint64_t *start, uint64_t *end);

/* Offer the memory that there is now. COW_EUNREADABLE without /proc; COW_ESYSTEM, with
 * errno EINVAL, if this kernel merges nothing. */
int cow_merge_offer(struct cow_merge *out);

#endif
