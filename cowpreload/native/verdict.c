/*
 * When is a worker recycled? Here, and nowhere else: both hosts and the tests
 * call this file with readings, live or recorded.
 *
 * Must not look at a clock, a process or the board: pure functions only.
 */
#include "cow.h"

/* A fresh worker over its limit would be recycled for ever, so that even a
 * min-lifetime of 0 is spared this long before the first doubling. */
#define BACKOFF_BASE_MS 10000u
/* Doubling stops here: an operator who raises the limit by a reload should not
 * wait for days. */
#define BACKOFF_CAP_MS 3600000u

int cow_exceeds(const struct cow_limits *limits, uint64_t ready_private) {
    return (limits->max_private && ready_private > limits->max_private) ||
           (limits->max_private_hard && ready_private > limits->max_private_hard);
}

uint64_t cow_spared_ms(const struct cow_limits *limits,
                       const struct cow_history *history) {
    uint64_t spared = limits->min_lifetime_ms;
    if (limits->max_private && history->ready_private > limits->max_private &&
        spared < BACKOFF_BASE_MS)
        spared = BACKOFF_BASE_MS;
    uint64_t cap = spared > BACKOFF_CAP_MS ? spared : BACKOFF_CAP_MS;
    for (uint32_t i = 0; i < history->early && spared && spared < cap; i++) spared *= 2;
    return spared > cap ? cap : spared;
}

uint32_t cow_next_early(const struct cow_history *history) {
    return history->early + (history->early < COW_EARLY_MOST);
}

/* A worker that was told to go. Its host lets requests go on for graceful_ms and ends
 * it by force afterwards, when it is the host who told it; here it is told once more in
 * between, because it may never have heard: an application replaces signal handlers. */
static void judge_leaving(const struct cow_limits *limits,
                          const struct cow_history *history, uint64_t now_ms,
                          struct cow_verdict *out) {
    uint64_t left_ms = now_ms - history->asked_at_ms;
    if (!limits->graceful_ms) return;
    if (left_ms >= 2 * limits->graceful_ms && history->asked_again)
        out->action = COW_KILL;
    else if (left_ms >= limits->graceful_ms && !history->asked_again)
        out->action = COW_ASK_AGAIN;
    else
        return;
    out->reason = COW_REASON_UNHEEDED;
    out->limit = history->asked_limit;
}

void cow_judge(const struct cow_limits *limits, const struct cow_history *history,
               const struct cow_reading *reading, uint64_t now_ms,
               struct cow_verdict *out) {
    uint64_t private_bytes = reading->private_bytes;
    *out = (struct cow_verdict){.action = COW_KEEP, .early = history->early};

    if (!history->ready_at_ms) return;

    /* Not of a worker that was over it when fresh: the next one would be, too. */
    if (limits->max_private_hard && private_bytes > limits->max_private_hard &&
        history->ready_private <= limits->max_private_hard) {
        out->action = COW_KILL;
        out->reason = COW_REASON_HARD;
        out->limit = limits->max_private_hard;
        return;
    }

    if (history->asked_at_ms) {
        judge_leaving(limits, history, now_ms, out);
        return;
    }

    uint64_t grown = history->ready_private + limits->max_growth;
    if (limits->max_private && private_bytes > limits->max_private) {
        out->reason = COW_REASON_PRIVATE;
        out->limit = limits->max_private;
    } else if (limits->max_growth && private_bytes > grown) {
        out->reason = COW_REASON_GROWTH;
        out->limit = grown;
    } else {
        return;
    }

    out->strikes = history->strikes + 1;
    out->over_since_ms = history->strikes ? history->over_since_ms : now_ms;
    if (out->strikes < limits->strikes) return;

    uint64_t spared_until = history->ready_at_ms + cow_spared_ms(limits, history);
    int early = out->over_since_ms <= spared_until;
    uint64_t from = early ? spared_until : out->over_since_ms;
    if (now_ms < from + history->jitter_ms) return;

    out->action = COW_RECYCLE;
    /* Over the limit as soon as that was allowed to matter: the limit is too
     * close to what a worker needs, so the next generation is spared longer. */
    out->early = early ? cow_next_early(history) : 0;
}

static uint64_t risen(uint64_t then, uint64_t now) {
    return now > then ? now - then : 0;
}

uint64_t cow_private_bound(const struct cow_reading *last,
                           const struct cow_pages *pages,
                           const struct cow_traffic *then,
                           const struct cow_traffic *now, uint64_t least_files) {
    uint64_t faults = risen(then->faults, now->faults);
    uint64_t huge = risen(then->huge_faults, now->huge_faults);
    if (huge > faults) huge = faults;
    uint64_t collapses = risen(then->huge_collapses, now->huge_collapses);
    return last->private_bytes + last->silent_bytes + (faults - huge) * pages->most +
           (huge + collapses) * pages->huge + risen(least_files, now->files);
}

int cow_hard_due(const struct cow_limits *limits, const struct cow_history *history,
                 uint64_t bound) {
    return history->ready_at_ms && limits->max_private_hard &&
           bound > limits->max_private_hard &&
           history->ready_private <= limits->max_private_hard;
}

int cow_reading_due(const struct cow_limits *limits, const struct cow_history *history,
                    uint64_t bound, uint64_t now_ms) {
    if (!history->ready_at_ms) return 0;
    if (cow_hard_due(limits, history, bound)) return 1;
    if (history->asked_at_ms)
        return limits->graceful_ms &&
               now_ms >= history->asked_at_ms +
                             limits->graceful_ms * (1 + history->asked_again);
    if (history->strikes >= limits->strikes)
        return now_ms >= history->ready_at_ms + cow_spared_ms(limits, history);
    if (history->strikes) return 1;
    if (limits->max_private && bound > limits->max_private) return 1;
    return limits->max_growth && bound > history->ready_private + limits->max_growth;
}

/* Bytes a millisecond: what the fastest fill with new pages (4 GiB a second). */
#define FASTEST (4u << 20)
/* How soon it is looked again at the least: of a worker that touches no new memory, of
 * one that does, and while much is on its way. A look that finds nothing takes 0.02 to
 * 0.04 ms, most of it for waking up: eight idle workers near their hard limit 0.1 % of
 * a core. */
#define IDLE_NAP_MS 250u
#define BUSY_NAP_MS 150u
#define MOVING_NAP_MS 5u
#define MOVING (64u << 10) /* bytes a millisecond */

uint64_t cow_nap_ms(const struct cow_limits *limits, const struct cow_history *history,
                    uint64_t private_bytes, uint64_t speed) {
    uint64_t hard = limits->max_private_hard, interval = limits->interval_ms;
    if (!history->ready_at_ms || !hard || history->ready_private > hard)
        return interval;
    uint64_t least = speed > MOVING ? MOVING_NAP_MS : speed ? BUSY_NAP_MS : IDLE_NAP_MS;
    uint64_t nap = risen(private_bytes, hard) / (speed > FASTEST ? speed : FASTEST);
    if (nap < least) nap = least;
    return nap < interval ? nap : interval;
}
