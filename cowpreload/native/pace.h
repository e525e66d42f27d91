/*
 * How often the watching thread takes readings, and when a bound will do.
 *
 * Takes  limits, a worker's history and its slot. Gives a reading if one is due.
 * Must not judge it, nor post it. One thread uses one of these, zeroed at first.
 */
#ifndef COW_PACE_H
#define COW_PACE_H

#include "budget.h"
#include "look.h"

struct cow_pace {
    struct cow_look look;
    uint64_t fresh_at_ms; /* when a reading is due whatever the limits say */
    uint64_t guess;       /* at the last peek, and when that was */
    uint64_t peeked_at_ms;
    uint64_t again_ms;  /* no peek calls for a reading before, */
    uint64_t huge_ms;   /* and no huge pages */
    uint64_t unread_ms; /* nor what the budget can leave unread */
    int failed;         /* whether the last look was to read, and could not */
};

/* Take a reading if one is due, the server's budget needs it, or it is `asked` for; 1
 * if *reading is new. */
int cow_pace_look(struct cow_pace *pace, struct cow_slot *slot,
                  const struct cow_limits *limits, const struct cow_history *history,
                  const struct cow_need *need, uint64_t now_ms, int asked,
                  struct cow_reading *reading);

/* Between two looks: whether memory may be passing the hard limit. *next_ms is when to
 * ask again. */
int cow_pace_peek(struct cow_pace *pace, const struct cow_limits *limits,
                  const struct cow_history *history, uint64_t now_ms,
                  uint64_t *next_ms);

#endif
