/*
 * Memory that runs short: what the kernel says of it, and who leaves then. Part of
 * cow.h's contract. All of it is pure.
 *
 * Takes  the text of cgroup files, /proc/meminfo and /proc/pressure/memory.
 * Gives  bytes and microseconds; what became of memory since the last look; whether
 *        this worker is the one to go. group.c reads the files.
 */
#ifndef COW_PRESSURE_H
#define COW_PRESSURE_H

#include <stddef.h>
#include <stdint.h>

/* ---- the kernel's texts ------------------------------------------------- */

#define COW_NO_LIMIT UINT64_MAX

/* A file of one figure, in bytes: memory.max, memory.limit_in_bytes. "max", and what
 * version 1 writes instead, is COW_NO_LIMIT. COW_EPARSE if it is no figure. */
int cow_size_parse(const char *text, size_t size, uint64_t *out);

/* What of a group's memory is pages of files, which the system takes back before it
 * kills: memory.stat, of either version; of version 1 with the groups below. COW_EPARSE
 * if it shows neither list. */
int cow_files_parse(const char *text, size_t size, uint64_t *out);

/* How long any process has waited for memory since the machine (or the group) began:
 * memory.pressure. COW_EPARSE without a total of "some". */
int cow_stall_parse(const char *text, size_t size, uint64_t *out_us);

/* The machine's memory, and what a new process could have of it: meminfo. COW_EPARSE if
 * a figure is missing. */
int cow_meminfo_parse(const char *text, size_t size, uint64_t *total,
                      uint64_t *available);

#endif
