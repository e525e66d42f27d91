/*
 * A still copy of a worker, which a report can read in peace.
 *
 * Takes  the `still` part of a slot, by which the report and the watching thread take
 *        turns. Gives a child of the worker that runs nothing.
 */
#ifndef COW_STILL_H
#define COW_STILL_H

#include "cow.h"

/* The watching thread makes it, as a fork that runs nothing and that no wait() of the
 * application's sees. The report moves a slot from NONE to WANTED, from ATTENDING to
 * GO (it has read the page map meanwhile: the fork makes every page shared again), and
 * from HELD to RELEASED; from FAILED to WANTED as from NONE; and from GO to NONE if it
 * gives up, which ends a copy. A hard limit may move HELD to RELEASED, too. */
enum cow_still_state {
    COW_STILL_NONE = 0,
    COW_STILL_WANTED = 1,
    COW_STILL_ATTENDING = 2,
    COW_STILL_GO = 3,
    COW_STILL_HELD = 4,
    COW_STILL_FAILED = 5, /* `error` says why */
    COW_STILL_RELEASED = 6,
};

/* How long the watching thread attends; how long a copy that nobody releases lives. The
 * tests of the core give it less patience. */
#ifndef COW_STILL_ATTEND_MS
#define COW_STILL_ATTEND_MS 3000u
#endif
#define COW_STILL_HELD_MS 120000u
/* How long it lives without a beat of the report, which was killed or stopped then. By
 * beats and not by a pid: a report may be in another pid namespace, where none is seen.
 * Soft limits wait for the end of the copy, and a look more. */
#define COW_STILL_ALONE_MS 2000u
/* The watching thread looks for a report at least this often. */
#define COW_STILL_LOOK_MS 1000u
/* And for the report's word to go this often. */
#define COW_STILL_STEP_MS 1u

/* Called by the watching thread between its looks, which go on while a report is
 * attended. Gives the time in ms after which it is to be called again. */
uint64_t cow_still_attend(struct cow_slot *slot);
/* Whether a copy of this process lives: the pages that it shares with the worker are
 * then missing in what the kernel calls private, and come back without a fault. */
int cow_still_lives(void);
/* Move from one state to another; 0 if it was not in the first. */
int cow_still_move(struct cow_still *still, uint32_t from, uint32_t to);

#endif
