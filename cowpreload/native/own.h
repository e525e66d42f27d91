/*
 * A worker's own row of the board: what its watching thread posts there, and puts back
 * when somebody else wrote to it.
 *
 * Takes  what the thread knows of its worker by itself. Gives a row that says so. Must
 *        not decide anything.
 */
#ifndef COW_OWN_H
#define COW_OWN_H

#include "cow.h"

/* The board is mapped in every worker: a stray write of the application's, in any of
 * them, can reach the row of any other. A row without a true state was never recycled
 * again; the worker grew to five times its limit. What the host counts (`requests`) and
 * what others ask for (`renew`, `still`) is not the thread's. */
struct cow_own {
    struct cow_board *board;
    struct cow_slot *slot;
    uint32_t number;
    struct cow_life life;
    struct cow_judged judged;
};

/* Remember the row as the boot made it. */
void cow_own_begin(struct cow_own *own, struct cow_board *board, uint32_t number,
                   pid_t pid, const struct cow_limits *limits);

/* Show a reading. */
void cow_own_post(const struct cow_own *own, const struct cow_reading *reading);

/* Write what differs, before anything is decided by the row or shown of it. Once the
 * worker is ready, its state and what verdicts count are the thread's too; until then
 * they are being made. `last`: the reading that was posted last, or NULL. */
void cow_own_restore(struct cow_own *own, const struct cow_history *history,
                     int leaving, const struct cow_reading *last, uint64_t now_ms);

#endif
