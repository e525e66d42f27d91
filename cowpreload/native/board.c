/*
 * The board: what the workers post and the master, the other workers and
 * another process of the same user read.
 *
 * A slot is written by its own worker, but for the moments when it has none.
 * Readers may see fields of two readings mixed; no verdict is made from them.
 */
#include <errno.h>
#include <string.h>

#include "cow.h"
#include "prim.h"

int cow_board_create(struct cow_board **board, int *fd) {
    void *address;
    (void)cow_prim_stack_size(); /* asked where no lock is inherited */
    int why_not = cow_prim_shared("cowpreload-board", sizeof **board, fd, &address);
    if (why_not) {
        *fd = -1;
        int error = cow_prim_inherited(sizeof **board, &address);
        if (error) {
            errno = error;
            return COW_ESYSTEM;
        }
    }
    *board = address;
    (*board)->revision = COW_REVISION;
    (*board)->slots = COW_SLOTS;
    (*board)->made_at_ms = cow_now_ms();
    STORE((*board)->magic, COW_MAGIC);
    errno = why_not;
    return COW_OK;
}

int cow_board_open(int fd, int writable, struct cow_board **board) {
    void *address;
    if (cow_prim_map(fd, sizeof **board, writable, &address)) return COW_EREVISION;
    *board = address;
    if (LOAD((*board)->magic) == COW_MAGIC && (*board)->revision == COW_REVISION &&
        (*board)->slots == COW_SLOTS)
        return COW_OK;
    (void)cow_board_close(*board);
    return COW_EREVISION;
}

int cow_board_close(struct cow_board *board) {
    return cow_prim_unmap(board, sizeof *board) ? COW_ESYSTEM : COW_OK;
}

int cow_board_refuse(struct cow_board *board, uint32_t slot) {
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&board->refused, &none, slot, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int cow_slot_get(struct cow_board *board, uint32_t slot, struct cow_slot **out) {
    if (slot < 1 || slot > COW_SLOTS) return COW_ESLOT;
    *out = &board->slot[slot - 1];
    return COW_OK;
}

void cow_slot_known(struct cow_board *board, uint32_t slot) {
    uint32_t highest = LOAD(board->highest);
    while (slot > highest &&
           !__atomic_compare_exchange_n(&board->highest, &highest, slot, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
}

int cow_slot_boot(struct cow_board *board, uint32_t slot, pid_t pid) {
    struct cow_slot *at;
    if (cow_slot_get(board, slot, &at)) return COW_ESLOT;
    uint64_t generation = at->life.generation + 1;
    uint64_t served = at->life.served + at->life.requests;
    uint32_t early = at->judged.early, pressed = at->judged.pressed;
    if (early > COW_EARLY_MOST)
        early = 0; /* counted by nobody: it would spare for an hour */
    if (pressed > COW_EARLY_MOST) pressed = 0;
    /* To a reader, 0 says that what the slot has counted is not there; so it is the
     * first to go and the last to come. */
    __atomic_store_n(&at->life.generation, 0, __ATOMIC_SEQ_CST);
    memset(at, 0, sizeof *at);
    at->judged.early = early;
    at->judged.pressed = pressed;
    at->life.served = served;
    STORE(at->life.generation, generation);
    at->life.pid = (int32_t)pid;
    at->life.booted_at_ms = cow_now_ms();
    STORE(at->life.state, COW_BOOTING);
    cow_slot_known(board, slot);
    return COW_OK;
}

uint32_t cow_board_processes(const struct cow_board *board) {
    uint32_t count = 1, highest = LOAD(board->highest);
    for (uint32_t i = 0; i < highest && i < COW_SLOTS; i++) {
        const struct cow_life *life = &board->slot[i].life;
        uint32_t state = LOAD(life->state);
        count += state != COW_FREE && state <= COW_LEAVING && LOAD(life->pid) > 0;
    }
    return count;
}

#define TICKET_SLOT(ticket) ((uint32_t)((ticket) & 0x7ff))
#define TICKET_PID(ticket) ((pid_t)((ticket) >> 11 & 0x3fffff))
#define TICKET_SECOND(ticket) ((ticket) >> 33)
#define TICKET_OWNER(ticket) ((ticket) & 0x1ffffffff)

/* A state that nobody gives is no worker's: one that lives puts its own back. */
static int vacant(const struct cow_slot *at) {
    uint32_t state = LOAD(at->life.state);
    return state == COW_FREE || state > COW_LEAVING ||
           (at->life.pid > 0 && !cow_prim_alive(at->life.pid));
}

uint32_t cow_slot_find(struct cow_board *board) {
    for (uint32_t i = 0; i < COW_TICKETS; i++) {
        struct cow_slot *at;
        uint32_t slot = TICKET_SLOT(LOAD(board->tickets[i]));
        /* Else the ticket of a slot that stays empty would stop all recycling until
         * it lapses: after a reload of gunicorn's the lowest slots are empty. */
        if (cow_slot_get(board, slot, &at) == COW_OK && vacant(at)) return slot;
    }
    for (uint32_t slot = 1; slot <= COW_SLOTS; slot++)
        if (vacant(&board->slot[slot - 1])) return slot;
    return 0;
}

int cow_slot_free(struct cow_board *board, uint32_t slot) {
    struct cow_slot *at;
    if (cow_slot_get(board, slot, &at)) return COW_ESLOT;
    at->life.pid = 0;
    STORE(at->life.state, COW_FREE);
    return COW_OK;
}

static uint64_t ticket_of(uint32_t slot, pid_t pid, uint64_t now_ms) {
    return (now_ms / 1000) << 33 | (uint64_t)(uint32_t)pid << 11 | slot;
}

/* Whether half of the workers would serve if one more were told to go. */
static int half_would_serve(struct cow_board *board) {
    uint32_t all = 0, serving = 0, highest = LOAD(board->highest);
    for (uint32_t i = 0; i < highest && i < COW_SLOTS; i++) {
        uint32_t state = LOAD(board->slot[i].life.state);
        all += state != COW_FREE && state <= COW_LEAVING;
        serving += state == COW_READY;
    }
    return serving && 2 * (serving - 1) >= all;
}

/* Whether nobody took it so: a stray write, which must not be held for ever. */
static int ticket_forged(uint64_t ticket, uint64_t now_ms) {
    uint32_t slot = TICKET_SLOT(ticket);
    return slot < 1 || slot > COW_SLOTS || !TICKET_PID(ticket) ||
           TICKET_SECOND(ticket) * 1000 > now_ms + 1000;
}

/* Whether the worker that holds `ticket` no longer needs it. */
static int ticket_lapsed(struct cow_board *board, uint64_t ticket, uint64_t now_ms) {
    uint64_t taken_ms = TICKET_SECOND(ticket) * 1000;
    uint64_t held_ms = now_ms > taken_ms ? now_ms - taken_ms : 0;
    pid_t pid = TICKET_PID(ticket);
    if (ticket_forged(ticket, now_ms)) return 1;
    struct cow_slot *at = &board->slot[TICKET_SLOT(ticket) - 1];
    if (held_ms > COW_TICKET_STUCK_MS) return 1;
    /* Free for the moment between the end of a worker and its replacement, too. */
    if (LOAD(at->life.state) == COW_FREE) return held_ms > COW_TICKET_DEAD_MS;
    if (at->life.pid != (int32_t)pid) return LOAD(at->life.state) == COW_READY;
    if (held_ms > COW_TICKET_DRAIN_MS && LOAD(at->life.state) == COW_LEAVING &&
        half_would_serve(board))
        return 1;
    return held_ms > COW_TICKET_DEAD_MS && !cow_prim_alive(pid);
}

int cow_ticket_take(struct cow_board *board, uint32_t slot, pid_t pid,
                    const struct cow_limits *limits, uint64_t now_ms) {
    uint32_t most =
        limits->max_recycling < COW_TICKETS ? limits->max_recycling : COW_TICKETS;
    uint64_t mine = ticket_of(slot, pid, now_ms);
    for (uint32_t i = 0; i < COW_TICKETS; i++)
        if (TICKET_OWNER(LOAD(board->tickets[i])) == TICKET_OWNER(mine)) return 1;
    for (uint32_t i = 0; i < most; i++) {
        uint64_t held = LOAD(board->tickets[i]);
        if (held && !ticket_lapsed(board, held, now_ms)) continue;
        if (__atomic_compare_exchange_n(&board->tickets[i], &held, mine, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
    }
    return 0;
}

void cow_ticket_drop_forged(struct cow_board *board, uint64_t now_ms) {
    for (uint32_t i = 0; i < COW_TICKETS; i++) {
        uint64_t held = LOAD(board->tickets[i]);
        if (held && ticket_forged(held, now_ms))
            (void)__atomic_compare_exchange_n(&board->tickets[i], &held, 0, 0,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}

void cow_ticket_release(struct cow_board *board, uint32_t slot) {
    for (uint32_t i = 0; i < COW_TICKETS; i++) {
        uint64_t held = LOAD(board->tickets[i]);
        if (held && TICKET_SLOT(held) == slot)
            (void)__atomic_compare_exchange_n(&board->tickets[i], &held, 0, 0,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}

void cow_end_post(struct cow_board *board, uint32_t slot,
                  const struct cow_verdict *verdict, const struct cow_reading *reading,
                  uint64_t asked_at_ms, uint64_t now_ms) {
    struct cow_slot *at;
    if (cow_slot_get(board, slot, &at)) return;
    struct cow_end *end = &board->end[slot - 1];
    end->generation = at->life.generation;
    end->pid = at->life.pid;
    end->private_bytes = reading->private_bytes;
    end->limit = verdict->limit;
    end->total = verdict->total;
    end->age_ms = now_ms - at->life.booted_at_ms;
    end->leaving_ms = asked_at_ms ? now_ms - asked_at_ms : 0;
    end->action = (uint16_t)verdict->action;
    end->reason = (uint16_t)verdict->reason;
    COUNT(board->counts
              .ends[verdict->action % COW_ACTIONS][verdict->reason % COW_REASONS]);
    STORE(end->sequence, end->sequence + 1);
}
