/*
 * One worker's memory between two readings: what it can be now, at little cost.
 *
 * Takes  /proc of this process. Gives a bound that verdict.c's limits are held
 *        against, and a guess that is cheaper still. One thread uses one of these.
 */
#ifndef COW_LOOK_H
#define COW_LOOK_H

#include "cow.h"

#define COW_MARKS 8

struct cow_look {
    struct cow_reading reading; /* the last one */
    struct cow_traffic then;    /* taken just before it */
    struct cow_traffic now;     /* at the last bound */
    struct cow_pages pages;
    uint64_t least_files; /* the lowest seen since */
    uint64_t least_resident;
    uint64_t peeked_faults;
    uint64_t guess;
    uint32_t taken;   /* there is a last reading that holds */
    uint32_t kindred; /* children shared pages with us when it was taken */
    /* Pages that nobody writes, each made after the one before was seen to be shared:
     * the newest that is shared no longer tells that children of ours have ended. */
    void *mark[COW_MARKS];
    uint32_t marks;
    uint32_t blind; /* marks tell nothing here */
};

/* Take a reading, from which bounds count. Gives what cow_reading_take() gives. */
int cow_look_read(struct cow_look *look, struct cow_reading *out);

/* The most that private memory can be now; UINT64_MAX where only a reading tells. In
 * *alone it is what it would be without the huge pages that other processes, too, may
 * have got. What
 * it cannot see: pages of which the other owners, children of ours aside, went away,
 * and mapped pages of a file that write() made dirty. */
uint64_t cow_look_bound(struct cow_look *look, uint64_t *alone);

/* What private memory is by the faults or the growth of the resident set since the last
 * reading, whichever is more: no bound, but a look at one counter while none comes. */
uint64_t cow_look_guess(struct cow_look *look);

/* Give its pages back. */
void cow_look_end(struct cow_look *look);

#endif
