/*
 * The still copy of a worker: made on the watching thread when a report asks.
 *
 * Takes  a slot's `still` part; see enum cow_still_state.
 * Gives  a child that runs nothing, so that its memory is the worker's at one moment.
 * Must not disturb the worker: no lock, no signal, no file, no fork handler. What the
 * fork costs the worker is the time in which the system copies its page tables, and one
 * copied page for each that it writes while the copy lives.
 */
#include <errno.h>
#include <unistd.h>

#include "cow.h"
#include "prim.h"
#include "still.h"

/* What this thread remembers of its copy between two looks. */
static struct {
    pid_t parent;
    pid_t pid;
    uint64_t until_ms; /* a report is attended until then; 0: none is */
} copy;

int cow_still_move(struct cow_still *still, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&still->state, &from, to, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* Nothing to say to a report that has gone meanwhile. */
static void fail(struct cow_still *still, int error) {
    STORE(still->error, (uint32_t)error);
    (void)cow_still_move(still, COW_STILL_GO, COW_STILL_FAILED);
}

/* In the copy. Ends when it is released, forgotten, when its report ended without a
 * word, or when the slot has another worker, which begins with no copy. */
static void be_still(struct cow_still *still, pid_t parent) {
    uint64_t until_ms = cow_now_ms() + COW_STILL_HELD_MS;
    int error = cow_prim_detach(parent);
    if (error) {
        /* Without its parent it has no say in a slot that another may have. */
        if (error != ESRCH) fail(still, error);
        _exit(0);
    }
    STORE(still->pid, (int32_t)getpid());
    (void)cow_still_move(still, COW_STILL_GO, COW_STILL_HELD);
    uint32_t beats = LOAD(still->beats);
    uint64_t now_ms = cow_now_ms(), alone_ms = now_ms + COW_STILL_ALONE_MS;
    while (LOAD(still->state) == COW_STILL_HELD && now_ms < until_ms &&
           now_ms < alone_ms) {
        cow_prim_nap_us(5000);
        now_ms = cow_now_ms();
        if (LOAD(still->beats) != beats) {
            beats = LOAD(still->beats);
            alone_ms = now_ms + COW_STILL_ALONE_MS;
        }
    }
    _exit(0);
}

static void make(struct cow_still *still) {
    pid_t parent = getpid(), pid;
    STORE(still->us, 0);
    STORE(still->pid, 0);
    uint64_t began_us = cow_prim_now_us();
    int error = cow_prim_clone(&pid);
    if (!error && pid == 0) be_still(still, parent);
    uint64_t took_us = cow_prim_now_us() - began_us;
    if (error) {
        fail(still, error);
        return;
    }
    copy.pid = pid;
    STORE(still->us, took_us ? (uint32_t)took_us : 1);
}

/* The report reads the page map and says go; one that does not is forgotten. Only a
 * worker that is ready has copies: what is shared with one is missing in a reading, and
 * the reading at ready is what growth is measured from. */
static void attend(struct cow_slot *slot) {
    if (!copy.until_ms) {
        if (LOAD(slot->life.state) == COW_READY &&
            cow_still_move(&slot->still, COW_STILL_WANTED, COW_STILL_ATTENDING))
            copy.until_ms = cow_now_ms() + COW_STILL_ATTEND_MS;
        return;
    }
    if (LOAD(slot->still.state) == COW_STILL_ATTENDING) {
        if (cow_now_ms() < copy.until_ms) return;
        (void)cow_still_move(&slot->still, COW_STILL_ATTENDING, COW_STILL_NONE);
    }
    copy.until_ms = 0;
    if (LOAD(slot->still.state) == COW_STILL_GO) make(&slot->still);
}

int cow_still_lives(void) { return copy.pid && copy.parent == getpid(); }

uint64_t cow_still_attend(struct cow_slot *slot) {
    if (copy.parent != getpid()) { /* of a forking parent */
        copy.parent = getpid();
        copy.pid = 0;
        copy.until_ms = 0;
    }
    if (copy.pid && cow_prim_reap(copy.pid)) {
        copy.pid = 0;
        /* Not FAILED, which a report is to see, nor WANTED by the next one. */
        (void)(cow_still_move(&slot->still, COW_STILL_GO, COW_STILL_NONE) ||
               cow_still_move(&slot->still, COW_STILL_HELD, COW_STILL_NONE) ||
               cow_still_move(&slot->still, COW_STILL_RELEASED, COW_STILL_NONE));
    }
    if (!copy.pid) attend(slot);
    return copy.until_ms ? COW_STILL_STEP_MS : COW_STILL_LOOK_MS;
}
