/*
 * The handshake for a still copy, with a report that writes any word at any moment, a
 * clock that goes by fits, and a system that refuses. Both sides of the fork are tried.
 *
 * Includes what it tries, for what it remembers.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jmp_buf ended;
static _Noreturn void end(int code) {
    (void)code;
    longjmp(ended, 1);
}
#define _exit end
#define getpid() ((pid_t)7)
#include "../../cowpreload/native/still.c"

static const uint8_t *at, *stop;
static struct cow_slot *slot;
static uint64_t clock_ms;
static int copies, refused;

static uint8_t next(void) { return at < stop ? *at++ : 0; }

/* What another process may do while this one does nothing. */
static void meddle(void) {
    uint8_t what = next();
    if (what & 1) slot->still.state = next() % 9;
    if (what & 2) slot->still.beats += next();
    if (what & 4) slot->life.state = next() % 5;
    if (what & 8) slot->still.state = (uint32_t)next() << 24;
    clock_ms += what & 16 ? 1000 : 5;
}

uint64_t cow_now_ms(void) { return clock_ms; }
uint64_t cow_prim_now_us(void) { return clock_ms * 1000; }
void cow_prim_nap_us(uint64_t us) {
    meddle();
    clock_ms += us / 1000;
}
int cow_prim_detach(pid_t parent) {
    (void)parent;
    return next() & 1 ? ESRCH : next() & 1 ? ENOSYS : 0;
}
int cow_prim_reap(pid_t pid) {
    assert(pid == 9);
    if (next() & 1) return 0;
    copies--;
    return 1;
}
int cow_prim_clone(pid_t *pid) {
    refused = next() & 1;
    if (refused) return EAGAIN;
    assert(slot->still.state == COW_STILL_GO); /* nobody is copied unasked */
    assert(++copies == 1);                     /* and once at a time */
    *pid = 9;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    at = data;
    stop = data + size;
    clock_ms = 1;
    copies = 0;
    slot = aligned_alloc(128, sizeof *slot);
    memset(slot, 0, sizeof *slot);
    memset(&copy, 0, sizeof copy);
    while (at < stop) {
        uint64_t wait_ms = cow_still_attend(slot);
        assert(wait_ms == COW_STILL_STEP_MS || wait_ms == COW_STILL_LOOK_MS);
        assert(cow_still_lives() == (copies == 1));
        meddle();
    }
    uint64_t since_ms = clock_ms;
    at = data;
    if (!setjmp(ended)) be_still(&slot->still, 7);
    /* Where a report beats for ever, it ends all the same. */
    assert(clock_ms <= since_ms + COW_STILL_HELD_MS + 2000);
    free(slot);
    return 0;
}
