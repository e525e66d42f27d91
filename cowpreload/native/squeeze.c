/* What a watching thread does with pressure.h: files, the board, a memory of its own.
 */
#include "squeeze.h"

#include "prim.h"

/* Looks at which memory is short before one leaves: all have read anew by then. */
#define LOOKS 2
/* What a share of time is taken over at the least. */
#define SPAN_MS 1000
/* What a reading of a runaway can take on a busy machine. */
#define NEAR_MS 200

int cow_squeeze_look(struct cow_squeeze *squeeze, const struct cow_group *group,
                     struct cow_slot *slot, int busy, uint64_t now_ms) {
    uint64_t served = LOAD(slot->life.requests);
    squeeze->idle = busy || served != squeeze->served ? 0 : squeeze->idle + 1;
    squeeze->served = served;
    STORE(slot->memory.idle, squeeze->idle);

    struct cow_room *room = &squeeze->room;
    cow_room_take(group, room);
    if (!squeeze->stalled_at_ms || room->stalled_us < squeeze->stalled_us) {
        squeeze->stalled_us = room->stalled_us;
        squeeze->stalled_at_ms = now_ms;
    } else if (now_ms >= squeeze->stalled_at_ms + SPAN_MS) {
        squeeze->stalled = (room->stalled_us - squeeze->stalled_us) /
                           (now_ms - squeeze->stalled_at_ms);
        squeeze->stalled_us = room->stalled_us;
        squeeze->stalled_at_ms = now_ms;
    }
    squeeze->shortage = cow_shortage(room, squeeze->stalled, squeeze->shortage);
    squeeze->looks = squeeze->shortage ? squeeze->looks + 1 : 0;
    if (squeeze->shortage) squeeze->short_at_ms = now_ms;
    return squeeze->looks == 1;
}

static void grown(const struct cow_slot *slot, uint32_t number, struct cow_grown *out) {
    *out = (struct cow_grown){
        .private_bytes = LOAD(slot->memory.private_bytes),
        .ready_private = LOAD(slot->judged.ready_private),
        .idle = LOAD(slot->memory.idle),
        .slot = number,
    };
}

/* Whether the worker of a slot may leave for want of memory, and is worth it. */
static int may(const struct cow_slot *slot, const struct cow_limits *limits,
               uint64_t now_ms, const struct cow_grown *worker) {
    uint64_t ready_ms = LOAD(slot->life.ready_at_ms);
    return LOAD(slot->life.state) == COW_READY && ready_ms &&
           now_ms >= ready_ms + cow_pressed_ms(limits, LOAD(slot->judged.pressed)) &&
           worker->ready_private && cow_gives_back(worker);
}

void cow_squeeze_judge(struct cow_squeeze *squeeze, struct cow_board *board,
                       uint32_t number, const struct cow_limits *limits,
                       uint64_t now_ms, struct cow_verdict *out) {
    struct cow_slot *slot = &board->slot[number - 1];
    struct cow_grown own;
    grown(slot, number, &own);
    *out = (struct cow_verdict){.action = COW_KEEP};
    if (squeeze->looks < LOOKS || !may(slot, limits, now_ms, &own)) return;
    /* One that serves goes if no other does, in time: its requests are not lost. */
    if (!own.idle && squeeze->looks < LOOKS + limits->strikes) return;
    uint32_t highest = LOAD(board->highest);
    for (uint32_t other = 1; other <= highest && other <= COW_SLOTS; other++) {
        struct cow_grown its;
        if (other == number) continue;
        grown(&board->slot[other - 1], other, &its);
        if (may(&board->slot[other - 1], limits, now_ms, &its) &&
            cow_leaves_before(&its, &own))
            return;
    }
    out->action = COW_RECYCLE;
    out->reason =
        squeeze->shortage == COW_STALLED ? COW_REASON_STALLED : COW_REASON_ROOM;
    out->limit = squeeze->shortage == COW_STALLED ? squeeze->stalled
                                                  : cow_room_left(&squeeze->room);
}

/* The kernel takes the largest; what shared memory adds is the same for all. */
static int largest(struct cow_board *board, uint32_t number, uint64_t private_bytes) {
    uint32_t highest = LOAD(board->highest);
    for (uint32_t other = 1; other <= highest && other <= COW_SLOTS; other++) {
        const struct cow_slot *slot = &board->slot[other - 1];
        if (other != number && LOAD(slot->life.state) != COW_FREE &&
            LOAD(slot->memory.private_bytes) > private_bytes)
            return 0;
    }
    return 1;
}

int cow_brink_peek(struct cow_brink *brink, const struct cow_group *group,
                   const struct cow_look *look, struct cow_board *board,
                   uint32_t number, uint64_t now_ms, uint64_t *next_ms,
                   struct cow_reading *reading) {
    uint64_t resident, files, speed = 0, faults = cow_prim_faults();
    uint64_t span_ms = brink->at_ms ? now_ms - brink->at_ms : 0;
    uint64_t late_ms =
        brink->due_ms && now_ms > brink->due_ms ? now_ms - brink->due_ms : 0;
    brink->late_ms -= brink->late_ms / 8;
    if (brink->late_ms < late_ms) brink->late_ms = late_ms;
    brink->at_ms = now_ms; /* also while nothing comes: what comes came since then */
    *next_ms = brink->due_ms = now_ms + cow_brink_nap_ms(&brink->room, 0);
    if (faults == brink->faults || !look->taken ||
        cow_resident(&resident, &files) != COW_OK)
        return 0;
    uint64_t own = resident > files ? resident - files : 0;
    if (span_ms && brink->faults && own > brink->own)
        speed = (own - brink->own) / span_ms;
    brink->faults = faults;
    brink->own = own;
    cow_room_take(group, &brink->room);
    *next_ms = brink->due_ms = now_ms + cow_brink_nap_ms(&brink->room, speed);

    uint64_t then = look->then.resident > look->then.files
                        ? look->then.resident - look->then.files
                        : 0;
    *reading = look->reading;
    reading->private_bytes += own > then ? own - then : 0;
    uint64_t ready = LOAD(board->slot[number - 1].judged.ready_private);
    uint64_t more = reading->private_bytes > ready ? reading->private_bytes - ready : 0;
    brink->near = speed && more >= brink->room.limit / 8 &&
                  cow_room_left(&brink->room) / speed < NEAR_MS;
    return cow_brink_due(&brink->room, more, speed, brink->late_ms) &&
           largest(board, number, reading->private_bytes) && !cow_room_swaps(group);
}
