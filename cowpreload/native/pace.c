/* When a reading is worth its cost. No policy: what a limit calls for, verdict.c says.
 */
#include "pace.h"

#include "prim.h"
#include "still.h"

/* A reading that no limit calls for keeps the board fresh. It costs 20 ms a GiB,
 * so it is taken as rarely as keeps one thread below 1/3000 of a core (eight
 * workers below 0.5 %), but never more rarely than this. */
#define FRESH_SHARE 3000u
#define FRESH_CAP_MS 30000u
/* One that a peek calls for is no bound's: such readings take at most 1/50 of a core,
 * of a worker that works just below its hard limit. */
#define AGAIN_SHARE 50u
/* One that only huge pages call for, which may all be another process's: on a machine
 * where others get many, every look would be a reading. */
#define HUGE_SHARE 800u
/* What workers have unread near their budget may be garbage that they make and free at
 * each request: eight that do take at most 1/50 of a core together. */
#define UNREAD_SHARE 400u

static int budget_needs(const struct cow_pace *pace, const struct cow_need *need,
                        uint64_t bound, uint64_t now_ms) {
    uint64_t last = pace->look.reading.private_bytes;
    uint64_t unread = bound > last ? bound - last : 0;
    if (pace->look.reading.at_ms < need->since_ms || unread > need->urgent) return 1;
    return unread > need->unread && now_ms >= pace->unread_ms;
}

int cow_pace_look(struct cow_pace *pace, struct cow_slot *slot,
                  const struct cow_limits *limits, const struct cow_history *history,
                  const struct cow_need *need, uint64_t now_ms, int asked,
                  struct cow_reading *reading) {
    uint64_t alone, bound = cow_look_bound(&pace->look, &alone);
    STORE(slot->memory.rss, pace->look.now.resident);
    pace->failed = 0;
    if (cow_still_lives()) {
        /* The pages shared with the copy would be missing in a reading, and in every
         * bound after it. The last one and what came since stay a bound; if that
         * passes the hard limit, the copy ends and the limit has its reading. */
        if (cow_hard_due(limits, history, bound))
            (void)cow_still_move(&slot->still, COW_STILL_HELD, COW_STILL_RELEASED);
        return 0;
    }
    if (now_ms < pace->huge_ms) bound = alone;
    if (!asked && pace->look.taken && now_ms < pace->fresh_at_ms &&
        !cow_reading_due(limits, history, bound, now_ms) &&
        !budget_needs(pace, need, bound, now_ms))
        return 0;

    uint64_t cost_ns = cow_prim_thread_cpu_ns();
    /* Without one no limit acts, which the master has said at the start. One that
     * fails for want of a descriptor succeeds at a later look. */
    pace->failed = cow_look_read(&pace->look, reading) != COW_OK;
    if (pace->failed) return 0;
    cost_ns = cow_prim_thread_cpu_ns() - cost_ns;
    uint64_t fresh_ms = cost_ns * FRESH_SHARE / 1000000u;
    pace->fresh_at_ms = now_ms + (fresh_ms < FRESH_CAP_MS ? fresh_ms : FRESH_CAP_MS);
    pace->again_ms = now_ms + cost_ns * AGAIN_SHARE / 1000000u;
    pace->unread_ms = now_ms + cost_ns * UNREAD_SHARE / 1000000u;
    pace->huge_ms = now_ms + cost_ns * HUGE_SHARE / 1000000u;
    return 1;
}

int cow_pace_peek(struct cow_pace *pace, const struct cow_limits *limits,
                  const struct cow_history *history, uint64_t now_ms,
                  uint64_t *next_ms) {
    uint64_t guess = cow_look_guess(&pace->look), speed = 0;
    if (guess > pace->guess && now_ms > pace->peeked_at_ms)
        speed = (guess - pace->guess) / (now_ms - pace->peeked_at_ms);
    pace->guess = guess;
    pace->peeked_at_ms = now_ms;
    *next_ms = now_ms + cow_nap_ms(limits, history, guess, speed);
    return now_ms >= pace->again_ms && cow_hard_due(limits, history, guess);
}
