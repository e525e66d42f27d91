/*
 * One limit for a whole server: what all of its processes take, and which worker is to
 * go when that is too much. Part of cow.h's contract.
 *
 * The posted PSS of processes cannot be added up: each is of another moment, and all of
 * them change when one process comes or goes (of 250 MB that five share, a reading from
 * when there were four counts 12 MB too much). Each process posts instead what is
 * shared by all, counted once: its part of it times the processes that there were.
 */
#ifndef COW_BUDGET_H
#define COW_BUDGET_H

#include "board.h"

struct cow_sum {
    uint64_t budget;    /* bytes; 0: none */
    uint64_t total;     /* PSS of master and workers, and what of them is swapped out */
    uint64_t settled;   /* the same when those that leave are replaced */
    uint64_t shared;    /* of it, what is shared, counted once */
    uint64_t master;    /* of it, the master's own */
    uint64_t fresh;     /* private memory of a fresh worker; 0: not known yet */
    uint64_t share;     /* private memory that each worker may have */
    uint64_t oldest_ms; /* of all readings of workers that serve */
    uint32_t workers;   /* processes, serving or not */
    uint32_t serving;
    uint32_t spared;  /* workers that would give back enough, and are spared */
    uint32_t fits;    /* fresh workers that the budget has room for; 0: not known */
    uint32_t biggest; /* slot of the worker that is to go if one is; 0: none may, or
                         none would give back enough */
};

/* What one worker saw of the sum at its looks. */
struct cow_over {
    uint64_t since_ms;   /* first look of the present strikes */
    uint64_t counted_ms; /* last one that was counted */
    uint32_t strikes;    /* looks in a row, an interval apart, over the budget */
};

/* Which reading the budget calls for. */
struct cow_need {
    uint64_t since_ms; /* one from before is too old; 0: none is */
    uint64_t unread;   /* growth since the last one that may stay unread, bytes, */
    uint64_t urgent;   /* and what must be read at the next look; UINT64_MAX: any */
};

/* Add up the board. A look at each slot: 1 us for 16. */
void cow_budget_sum(const struct cow_board *board, uint64_t now_ms,
                    struct cow_sum *out);

/* Count a look. Pure. */
void cow_budget_count(const struct cow_limits *limits, const struct cow_sum *sum,
                      uint64_t now_ms, struct cow_over *over);

/* What the worker of `slot` has to read. Pure. */
void cow_budget_need(const struct cow_sum *sum, const struct cow_over *over,
                     uint32_t slot, uint64_t now_ms, struct cow_need *out);

/* Whether the worker of `slot`, just read, is to be recycled: the verdict, as
 * cow_judge() has it. Pure. */
void cow_budget_judge(const struct cow_limits *limits,
                      const struct cow_history *history, const struct cow_sum *sum,
                      const struct cow_over *over, uint32_t slot,
                      struct cow_verdict *out);

#endif
