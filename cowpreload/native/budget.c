/* The policy of budget.h. Looks at no clock and at no process: at a board alone. */
#include "budget.h"

#include "cow.h"
#include "prim.h"

/* A worker that gives back less than an eighth of what it has, or less than this, would
 * be recycled in vain: it has as much again after some requests. */
#define LITTLE (1u << 20)
#define LITTLE_PART 8u
/* How near to the budget the sum has to be known: a part of it. */
#define NEAR_PART 64u
/* Growth that is read at once, whatever that costs: a reading then takes half as long
 * as the faults that it is for. */
#define URGENT_PART 16u
/* Looks more that are waited for workers which were not read since, as a stopped one
 * is not. */
#define PATIENCE 2u

static uint64_t less(uint64_t from, uint64_t what) {
    return from > what ? from - what : 0;
}

/* A state that nobody gives is a stray write's, over a row of no worker. */
static int has_worker(const struct cow_slot *at) {
    uint32_t state = LOAD(at->life.state);
    return state != COW_FREE && state <= COW_LEAVING;
}

static int worth(uint64_t private_bytes, uint64_t fresh) {
    uint64_t gain = less(private_bytes, fresh);
    return gain >= LITTLE && gain >= private_bytes / LITTLE_PART;
}

/* The least that any worker had: what even the best one takes. */
static uint64_t fresh_size(const struct cow_board *board, uint32_t highest) {
    uint64_t least = 0;
    for (uint32_t i = 0; i < highest; i++) {
        const struct cow_slot *at = &board->slot[i];
        uint64_t ready = LOAD(at->judged.ready_private);
        if (!has_worker(at) || !ready) continue;
        if (!least || ready < least) least = ready;
    }
    return least;
}

/* Whether `at` is to go before `other`: it has more, or is older. */
static int before(const struct cow_slot *at, const struct cow_slot *other) {
    uint64_t one = LOAD(at->memory.private_bytes);
    uint64_t two = LOAD(other->memory.private_bytes);
    if (one != two) return one > two;
    return at->life.booted_at_ms < other->life.booted_at_ms;
}

static void add_worker(const struct cow_slot *at, uint64_t fresh, struct cow_sum *out,
                       uint64_t *shared, uint32_t *sharers) {
    uint32_t state = LOAD(at->life.state);
    uint64_t read_ms = LOAD(at->memory.read_at_ms);
    uint64_t own = LOAD(at->memory.private_bytes);
    uint64_t more = LOAD(at->memory.evictable_bytes);
    uint64_t once = LOAD(at->part.shared_once);
    out->workers++;
    if (!read_ms) { /* it is being forked */
        out->total += fresh;
        out->settled += fresh;
        return;
    }
    if (once) {
        *shared += once;
        ++*sharers;
    }
    out->total += own + more;
    if (state == COW_LEAVING) {
        out->settled += own < fresh ? own : fresh;
        return;
    }
    out->settled += own + more;
    if (state != COW_READY) return;
    out->serving++;
    if (!out->oldest_ms || read_ms < out->oldest_ms) out->oldest_ms = read_ms;
}

void cow_budget_sum(const struct cow_board *board, uint64_t now_ms,
                    struct cow_sum *out) {
    const struct cow_whole *whole = &board->whole;
    uint32_t sharers = 0, highest = LOAD(board->highest);
    uint64_t shared = LOAD(whole->shared_once);
    if (highest > COW_SLOTS) highest = COW_SLOTS;
    *out = (struct cow_sum){.budget = LOAD(whole->budget)};
    out->fresh = fresh_size(board, highest);
    if (shared) sharers = 1;

    const struct cow_slot *biggest = NULL;
    for (uint32_t i = 0; i < highest; i++) {
        const struct cow_slot *at = &board->slot[i];
        if (!has_worker(at)) continue;
        add_worker(at, out->fresh, out, &shared, &sharers);
        if (LOAD(at->life.state) != COW_READY || !LOAD(at->memory.read_at_ms) ||
            !worth(LOAD(at->memory.private_bytes), out->fresh))
            continue;
        if (LOAD(at->part.spared_until_ms) > now_ms) {
            out->spared++;
            continue;
        }
        if (!biggest || before(at, biggest)) {
            biggest = at;
            out->biggest = i + 1;
        }
    }
    if (sharers) out->shared = shared / sharers;
    /* A master that could not be read may have rewritten all that it shared. */
    out->master = LOAD(whole->read_at_ms)
                      ? LOAD(whole->private_bytes) + LOAD(whole->evictable_bytes)
                      : out->shared;
    out->total += out->shared + out->master;
    out->settled += out->shared + out->master;

    uint64_t room = less(out->budget, out->shared + out->master);
    if (out->workers) out->share = room / out->workers;
    if (out->fresh) {
        uint64_t fits = room / out->fresh;
        out->fits = fits < COW_SLOTS ? (uint32_t)fits : COW_SLOTS;
        /* Even fresh workers would exceed it: none is recycled for that. */
        if (out->fits < out->workers) out->biggest = out->spared = 0;
    }
}

void cow_budget_count(const struct cow_limits *limits, const struct cow_sum *sum,
                      uint64_t now_ms, struct cow_over *over) {
    if (!sum->budget || sum->settled <= sum->budget) {
        *over = (struct cow_over){0};
        return;
    }
    if (!over->strikes)
        over->since_ms = now_ms;
    else if (now_ms < over->counted_ms + limits->interval_ms)
        return;
    over->counted_ms = now_ms;
    over->strikes++;
}

void cow_budget_need(const struct cow_sum *sum, const struct cow_over *over,
                     uint32_t slot, uint64_t now_ms, struct cow_need *out) {
    *out = (struct cow_need){.unread = UINT64_MAX, .urgent = UINT64_MAX};
    if (!sum->budget || !sum->workers) return;
    uint64_t headroom = less(sum->budget, sum->settled);
    uint64_t near = sum->budget / NEAR_PART;
    out->unread = (headroom > near ? headroom : near) / sum->workers;
    out->urgent = headroom + sum->budget / URGENT_PART;
    /* Over it, everybody is read once, and the one that may have to go at each look. */
    if (over->strikes && sum->biggest)
        out->since_ms = slot == sum->biggest ? now_ms : over->since_ms;
}

void cow_budget_judge(const struct cow_limits *limits,
                      const struct cow_history *history, const struct cow_sum *sum,
                      const struct cow_over *over, uint32_t slot,
                      struct cow_verdict *out) {
    *out = (struct cow_verdict){.action = COW_KEEP, .early = history->early};
    if (!history->ready_at_ms || history->asked_at_ms || !over->strikes ||
        sum->biggest != slot)
        return;
    out->reason = COW_REASON_BUDGET;
    out->limit = sum->budget;
    out->total = sum->total;
    out->strikes = over->strikes;
    out->over_since_ms = over->since_ms;
    if (over->strikes < limits->strikes) return;
    if (sum->oldest_ms < over->since_ms && over->strikes < limits->strikes + PATIENCE)
        return;
    out->action = COW_RECYCLE;
    uint64_t spared_until = history->ready_at_ms + cow_spared_ms(limits, history);
    out->early = over->since_ms <= spared_until ? cow_next_early(history) : 0;
}
