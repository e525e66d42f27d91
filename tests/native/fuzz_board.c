/*
 * A board that anybody may have written: what the processes of a server, and reports,
 * do with it. The input is a list of writes and calls, in any order.
 *
 * Links: board.c verdict.c served.c budget.c
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "cow.h"
#include "prim.h"

static uint64_t now_ms = 1000000;
static int alive;

uint64_t cow_now_ms(void) { return now_ms; }
int cow_prim_alive(pid_t pid) { return alive ^ (pid & 1); }
size_t cow_prim_stack_size(void) { return 0; }
int cow_prim_shared(const char *name, size_t size, int *fd, void **address) {
    (void)name, (void)size, (void)fd, (void)address;
    return 1;
}
int cow_prim_map(int fd, size_t size, int writable, void **address) {
    return cow_prim_shared("", size, &fd, address) + writable;
}
int cow_prim_inherited(size_t size, void **address) {
    *address = aligned_alloc(128, (size + 127) / 128 * 128); /* its ends are known */
    memset(*address, 0, size);
    return 0;
}
int cow_prim_unmap(void *address, size_t size) {
    (void)size;
    free(address);
    return 0;
}

static struct cow_board *board;

static struct {
    const uint8_t *at, *end;
} input;

static uint64_t take(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && input.at < input.end; i++)
        value |= (uint64_t)*input.at++ << 8 * i;
    return value;
}

/* Near what is read, or anywhere; what was written is forgotten after the input. */
static void scribble(void) {
    static const size_t places[] = {
        offsetof(struct cow_board, magic),  offsetof(struct cow_board, tickets),
        offsetof(struct cow_board, python), offsetof(struct cow_board, warmings),
        offsetof(struct cow_board, counts), offsetof(struct cow_board, slot),
        offsetof(struct cow_board, end),    offsetof(struct cow_board, served),
        offsetof(struct cow_board, about),  0};
    size_t place = places[take(1) % (sizeof places / sizeof *places)];
    size_t offset = (place + take(2)) % sizeof *board, length = take(1);
    for (size_t i = 0; i < length && input.at < input.end; i++)
        ((uint8_t *)board)[(offset + i) % sizeof *board] = (uint8_t)take(1);
}

static void read_served(void) {
    struct cow_served_page page;
    uint32_t place = (uint32_t)take(4), count, pages = 0;
    while (cow_served_next(&board->served, &place, &page, &count)) {
        assert(page.path + page.host <= COW_SERVED_TEXT);
        pages++;
    }
    assert(pages <= COW_SERVED_SETS * COW_SERVED_WAYS);
}

static void judge_the_sum(uint32_t slot) {
    struct cow_limits limits = {.strikes = 1, .interval_ms = take(2)};
    struct cow_history history = {.ready_at_ms = 1, .early = (uint32_t)take(4)};
    struct cow_over over = {.strikes = (uint32_t)take(1), .since_ms = take(5)};
    struct cow_verdict verdict;
    struct cow_need need;
    struct cow_sum sum;
    cow_budget_sum(board, now_ms, &sum);
    assert(sum.workers <= COW_SLOTS && sum.serving <= sum.workers);
    assert(sum.biggest <= COW_SLOTS && sum.fits <= COW_SLOTS);
    cow_budget_count(&limits, &sum, now_ms, &over);
    cow_budget_need(&sum, &over, slot, now_ms, &need);
    cow_budget_judge(&limits, &history, &sum, &over, slot, &verdict);
    assert(verdict.action == COW_KEEP || verdict.action == COW_RECYCLE);
    if (verdict.action == COW_RECYCLE) assert(sum.biggest == slot);
}

static void call(void) {
    uint32_t slot = (uint32_t)take(2), found;
    pid_t pid = (pid_t)take(4);
    struct cow_limits limits = {.max_recycling = (uint32_t)take(2), .strikes = 1};
    struct cow_verdict verdict = {.action = (uint32_t)take(1),
                                  .reason = (uint32_t)take(1)};
    struct cow_reading reading = {0};
    struct cow_slot *at;
    now_ms = take(5);
    alive = (int)take(1) & 1;
    switch (take(1) % 9) {
        case 0:
            found = cow_slot_find(board);
            assert(found <= COW_SLOTS);
            if (found) assert(cow_slot_boot(board, found, pid) == COW_OK);
            break;
        case 1: (void)cow_slot_boot(board, slot, pid); break;
        case 2: (void)cow_slot_free(board, slot); break;
        case 3: (void)cow_ticket_take(board, slot, pid, &limits, now_ms); break;
        case 4: cow_ticket_release(board, slot); break;
        case 5: cow_end_post(board, slot, &verdict, &reading, take(5), now_ms); break;
        case 6: (void)cow_board_refuse(board, slot); break;
        case 7: judge_the_sum(slot); break;
        default: read_served();
    }
    if (cow_slot_get(board, slot, &at) == COW_OK) assert(slot && slot <= COW_SLOTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int fd;
    if (!board) assert(cow_board_create(&board, &fd) == COW_OK);
    memset(board, 0, sizeof *board);
    input.at = data;
    input.end = data + size;
    while (input.at < input.end) {
        if (take(1) & 1)
            scribble();
        else
            call();
    }
    return 0;
}
