/*
 * The inherited heap behind a file: moved there in the master, healed in a worker.
 *
 * Takes    the heap that Python's objects are on: pymalloc's arenas, noted as they are
 *          made, and glibc's main heap. Before the first fork its pages are written to
 *          a sealed file in memory, which is mapped at the same addresses, privately:
 *          nobody sees a difference.
 * Gives    back, in a worker, each page that was copied and is again what the file has.
 * Must not touch what another allocator keeps: one that gives memory back to the system
 *          by MADV_DONTNEED may rely on finding zeros there, and would find the file's.
 */
#ifndef COW_MOVED_H
#define COW_MOVED_H

#include <stdint.h>

enum cow_unmoved {
    COW_MOVED = 0,
    COW_UNMOVED_THREADS = 1,   /* others run, and could write meanwhile */
    COW_UNMOVED_ALLOCATOR = 2, /* neither pymalloc nor glibc */
    COW_UNMOVED_SYSTEM = 3,    /* a system call failed; errno */
    COW_UNMOVED_NOTHING = 4,   /* no heap was found */
    COW_UNMOVED_STRICT = 5,    /* memory is not overcommitted, or files are limited */
    COW_UNMOVED_LATE = 6,      /* arenas were not noted from the beginning */
    COW_UNMOVED_PAGES = 7,     /* pages of this machine are not of 4 KiB */
};

struct cow_moved {
    uint64_t bytes; /* in the file */
    uint32_t ranges;
    uint32_t why_not; /* enum cow_unmoved */
    uint32_t error;   /* errno */
    uint32_t us;
};

/* Note pymalloc's arenas from now on. Call it once, with the GIL. */
int cow_arenas_note(void);
int cow_arenas_noted(void); /* whether they are */

/* Move what is there now; again, after the heap has been loaded anew. The caller has
 * not the GIL. */
void cow_move(struct cow_moved *out);

struct cow_heal {
    uint64_t copied; /* pages that were this process's own, of the moved heap */
    uint64_t healed; /* of these, given back */
    uint32_t us;
    uint32_t refused; /* enum cow_unmoved: another thread runs, a call failed */
};

/* Give back what equals the file. On the process's only thread beside the watching one,
 * whose memory is not on the heap. */
void cow_heal(struct cow_heal *out);

/* The same, and compare all of the heap with what it was before: *wrong counts pages
 * that differ. For tests: it takes as much memory again. */
int cow_heal_check(struct cow_heal *out, uint64_t *wrong);

/* Whether healing pays now: pages that can have been copied since the last time, and
 * the time it took against the time that has passed. Pure. */
int cow_heal_pays(uint64_t faults, uint64_t passed_us, uint64_t took_us, int idle);

/* Between two requests, or with nothing to do: heal if it pays, or if a limit would
 * recycle this worker otherwise. Gives whether it did; *out is zero if not. */
int cow_heal_turn(int idle, struct cow_heal *out);

/* Of the watching thread: this worker is about to be recycled. 1: not yet. It is healed
 * first, or it was, and was within its limit then. */
struct cow_verdict;
int cow_heal_first(const struct cow_verdict *verdict, uint64_t now_ms);

/* ---- what moved.c and heal.c share --------------------------------------- */

struct cow_home {
    uint64_t device, inode; /* of the file; inode 0: nothing was moved */
    const char *mirror;     /* the file from its beginning, mapped to be read */
    uint64_t size;
};
extern struct cow_home cow_home;

/* Whether a mapping is a part of the file that the heap was last moved to. */
struct cow_mapping;
int cow_home_has(const struct cow_mapping *mapping);

#endif
