/*
 * A worker when memory is short: it reads at once, and leaves if it is the one to go.
 *
 * Takes  the group, its slot and those of the others. Gives a verdict, that watch.c
 *        carries out. One thread uses one of these, zeroed at first.
 */
#ifndef COW_SQUEEZE_H
#define COW_SQUEEZE_H

#include "group.h"
#include "look.h"

struct cow_squeeze {
    struct cow_room room;
    enum cow_shortage shortage;
    uint32_t looks;  /* in a row at which memory was short */
    uint32_t idle;   /* in a row at which this worker had served nothing */
    uint64_t served; /* its counter then */
    uint64_t stalled_us, stalled_at_ms; /* where the span began that is judged, */
    uint64_t stalled;                   /* and what the last one gave, per mille */
    uint64_t short_at_ms;               /* the last look at which it was short */
};

/* Look at what is left, once an interval. 1 if readings are to be taken at once. */
int cow_squeeze_look(struct cow_squeeze *squeeze, const struct cow_group *group,
                     struct cow_slot *slot, int busy, uint64_t now_ms);

/* Whether this worker is the one to leave. */
void cow_squeeze_judge(struct cow_squeeze *squeeze, struct cow_board *board,
                       uint32_t number, const struct cow_limits *limits,
                       uint64_t now_ms, struct cow_verdict *out);

/* ---- the brink ----------------------------------------------------------- */

struct cow_brink {
    struct cow_room room;
    uint64_t faults;
    uint64_t own; /* memory that is no file's, at the last look, */
    uint64_t at_ms;
    uint64_t due_ms;  /* when the next one was asked for */
    uint64_t late_ms; /* how late looks come; forgotten slowly */
    /* At its speed there is no time for a reading, which waits for the runaway's lock
     * on its memory: three of four that filled small strings were the kernel's. */
    int near;
};

/* Between two looks: whether this worker is about to take what the group has left, so
 * that the kernel would kill. Then *reading is what it has, by a guess: a reading would
 * come too late. *next_ms is when to ask again. */
int cow_brink_peek(struct cow_brink *brink, const struct cow_group *group,
                   const struct cow_look *look, struct cow_board *board,
                   uint32_t number, uint64_t now_ms, uint64_t *next_ms,
                   struct cow_reading *reading);

#endif
