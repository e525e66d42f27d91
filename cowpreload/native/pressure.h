/*
 * Memory that runs short: what the kernel says of it, and who leaves then. Pure.
 *
 * Takes  the text of cgroup files, /proc/meminfo and /proc/pressure/memory.
 * Gives  bytes and microseconds; what became of memory since the last look; whether
 *        this worker is the one to go. group.c reads the files.
 */
#ifndef COW_PRESSURE_H
#define COW_PRESSURE_H

#include "cow.h"

/* ---- the kernel's texts ------------------------------------------------- */

#define COW_NO_LIMIT UINT64_MAX

/* A file of one figure, in bytes: memory.max, memory.limit_in_bytes. "max", and what
 * version 1 writes instead, is COW_NO_LIMIT. COW_EPARSE if it is no figure. */
int cow_size_parse(const char *text, size_t size, uint64_t *out);

/* What of a group's memory the system takes back before it kills: memory.stat. Pages of
 * files, of either version; of version 1 with the groups below. The kernel's caches of
 * names and inodes, of version 2 alone. COW_EPARSE if it shows no list of files. */
int cow_files_parse(const char *text, size_t size, uint64_t *out);

/* How long any process has waited for memory since the machine (or the group) began:
 * memory.pressure. COW_EPARSE without a total of "some". */
int cow_stall_parse(const char *text, size_t size, uint64_t *out_us);

/* The machine's memory, and what a new process could have of it: meminfo. COW_EPARSE if
 * a figure is missing. */
int cow_meminfo_parse(const char *text, size_t size, uint64_t *total,
                      uint64_t *available);

/* What the machine could still move to a disk: meminfo. */
int cow_swap_parse(const char *text, size_t size, uint64_t *free);

/* ---- is it short? -------------------------------------------------------- */

/* What all processes of the group, or of the machine, have. */
struct cow_room {
    uint64_t limit;      /* where the kernel kills; 0: not known, nothing acts */
    uint64_t high;       /* where it slows them down; COW_NO_LIMIT: nowhere */
    uint64_t used;       /* caches left out: the kernel takes those back */
    uint64_t stalled_us; /* see cow_stall_parse(); 0 where there is no such file */
};

/* What is left below the lower of both limits. */
uint64_t cow_room_left(const struct cow_room *room);

enum cow_shortage {
    COW_ENOUGH = 0,
    COW_SHORT = 1,   /* a sixteenth is left, 256 MiB at the most */
    COW_STALLED = 2, /* processes wait for memory, and less than a quarter is left */
};

/* `stalled`: per mille of the time since the last look in which a process waited.
 * `before`: what it was then; what has begun ends later than it began. */
enum cow_shortage cow_shortage(const struct cow_room *room, uint64_t stalled,
                               enum cow_shortage before);

/* ---- who leaves ---------------------------------------------------------- */

/* A worker, as the others see it. */
struct cow_grown {
    uint64_t private_bytes;
    uint64_t ready_private; /* what the next one in its place would have */
    uint32_t idle;          /* looks in a row at which it served nothing */
    uint32_t slot;
};

/* Whether its leaving gives back what a fork is worth: 8 MiB and a quarter of it. */
int cow_gives_back(const struct cow_grown *worker);

/* Whether `one` is to leave rather than `other`: one that serves nothing first, then
 * the one that gives back more. */
int cow_leaves_before(const struct cow_grown *one, const struct cow_grown *other);

/* How long a worker is spared after it became ready, if the last `pressed` generations
 * of its slot left for want of memory: doubles with each, up to an hour, so that one
 * hour of pressure that others make costs a slot 8 workers at min-lifetime's default.
 */
uint64_t cow_pressed_ms(const struct cow_limits *limits, uint32_t pressed);

/* ---- the brink: the kernel is about to kill ------------------------------- */

/* How soon it is looked again at the least while much is on its way, and while nothing
 * is. */
#define COW_BRINK_NAP_MS 5u
#define COW_BRINK_IDLE_MS 100u
/* And at the most: a limit may be lowered, or come back, at any time. */
#define COW_BRINK_MOST_MS 1000u

/* Whether a worker that grows at `speed` bytes a millisecond, and has grown by `grown`
 * since it was ready, takes what is left before it can be looked at again. Only one
 * that took an eighth of the limit: it alone is the reason. Looks come `late_ms` late
 * on a machine with more to do than processors: 20 in one of ten with six busy
 * processes on two, whatever the thread's slice. */
int cow_brink_due(const struct cow_room *room, uint64_t grown, uint64_t speed,
                  uint64_t late_ms);

/* How long it can be left alone. */
uint64_t cow_brink_nap_ms(const struct cow_room *room, uint64_t speed);

#endif
