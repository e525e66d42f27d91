/* A worker's own row of the board: see own.h. */
#include "own.h"

#include "prim.h"
#include "still.h"

static void put(uint32_t *at, uint32_t value) {
    /* Others read this line: it stays clean while nothing differs. */
    if (LOAD(*at) != value) STORE(*at, value);
}

static void put_long(uint64_t *at, uint64_t value) {
    if (LOAD(*at) != value) STORE(*at, value);
}

void cow_own_begin(struct cow_own *own, struct cow_board *board, uint32_t number,
                   pid_t pid, const struct cow_limits *limits) {
    struct cow_slot *slot = &board->slot[number - 1];
    own->board = board;
    own->slot = slot;
    own->number = number;
    own->life = slot->life;
    own->life.pid = (int32_t)pid;
    own->judged = (struct cow_judged){
        .early = slot->judged.early,
        .pressed = slot->judged.pressed,
        .wanted = limits->strikes,
        .max_private = limits->max_private,
        .max_growth = limits->max_growth,
        .max_private_hard = limits->max_private_hard,
    };
    slot->judged = own->judged;
}

void cow_own_post(const struct cow_own *own, const struct cow_reading *reading) {
    struct cow_memory *memory = &own->slot->memory;
    STORE(memory->private_bytes, reading->private_bytes);
    STORE(memory->evictable_bytes, reading->evictable_bytes);
    STORE(memory->shared_bytes, reading->shared_bytes);
    STORE(memory->pss, reading->pss);
    STORE(memory->rss, reading->rss);
    STORE(memory->source, reading->source);
    STORE(own->slot->part.shared_once,
          reading->shared_pss * cow_board_processes(own->board));
    STORE(memory->read_at_ms, reading->at_ms);
}

static void restore_ready(const struct cow_own *own) {
    struct cow_slot *slot = own->slot;
    const struct cow_judged *judged = &own->judged;
    put(&slot->life.state, own->life.state);
    put_long(&slot->life.ready_at_ms, own->life.ready_at_ms);
    put_long(&slot->judged.ready_private, judged->ready_private);
    put(&slot->judged.strikes, judged->strikes);
    put(&slot->judged.early, judged->early);
    put(&slot->judged.pressed, judged->pressed);
    put(&slot->judged.asked_again, judged->asked_again);
    /* No report has written such a one, and none could ask for a copy again. */
    uint32_t still = LOAD(slot->still.state);
    if (still > COW_STILL_RELEASED)
        (void)cow_still_move(&slot->still, still, COW_STILL_NONE);
}

void cow_own_restore(struct cow_own *own, const struct cow_history *history,
                     int leaving, const struct cow_reading *last, uint64_t now_ms) {
    struct cow_slot *slot = own->slot;
    const struct cow_judged *judged = &own->judged;
    cow_slot_known(own->board, own->number);
    put((uint32_t *)&slot->life.pid, (uint32_t)own->life.pid);
    put_long(&slot->life.generation, own->life.generation);
    put_long(&slot->life.served, own->life.served);
    put_long(&slot->life.booted_at_ms, own->life.booted_at_ms);
    put(&slot->judged.wanted, judged->wanted);
    put_long(&slot->judged.max_private, judged->max_private);
    put_long(&slot->judged.max_growth, judged->max_growth);
    put_long(&slot->judged.max_private_hard, judged->max_private_hard);
    /* The application may have asked for a later reading, not for one to come. */
    uint64_t read_ms = LOAD(slot->memory.read_at_ms);
    if (last && (read_ms < last->at_ms || read_ms > now_ms + 1000))
        cow_own_post(own, last);
    if (!history->ready_at_ms) return;
    own->life.state = leaving || history->asked_at_ms ? COW_LEAVING : COW_READY;
    own->life.ready_at_ms = history->ready_at_ms;
    own->judged.ready_private = history->ready_private;
    own->judged.strikes = history->strikes;
    own->judged.asked_again = history->asked_again;
    restore_ready(own);
}
