/*
 * The watching thread of a worker: reading -> verdict -> board, again and again,
 * while a request runs or hangs.
 *
 * Takes  a slot, limits and a host's way to say "leave"; see cow_watch_start().
 * Gives  readings on the board; at most one end with its reason.
 * Must not touch Python, a heap, or a lock, except in the host's exit_now().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "cow.h"
#include "moved.h"
#include "own.h"
#include "pace.h"
#include "prim.h"
#include "squeeze.h"
#include "still.h"

static struct {
    struct cow_board *board;
    struct cow_slot *slot;
    uint32_t number;
    pid_t pid;      /* a child of the worker inherits this struct, not the thread */
    uint32_t event; /* posted to stop the thread or to make it exit the process */
    pthread_t thread;
    struct cow_limits limits;
    struct cow_host host;
    struct cow_group group; /* a copy: a path is not taken from where anybody writes */
    /* What cow_watch_ready() hands over, published by `ready`. */
    struct cow_look ready_look;
    uint64_t jitter_ms;
    uint64_t ready_at_ms;
    uint32_t ready;
    uint32_t leaving; /* at its exit handlers, whoever sent it there */
    uint32_t stop;
    uint32_t exit;
    struct cow_own own; /* its row, of which the thread alone knows what is true */
} watch;

/* What one thread knows between two looks; on its own stack. */
struct memory {
    struct cow_history history;
    struct cow_pace pace;
    struct cow_over over;
    struct cow_squeeze squeeze;
    struct cow_brink brink;
};

static void post_reading(const struct cow_reading *reading) {
    cow_own_post(&watch.own, reading);
    COUNT(watch.board->counts.readings);
}

static void post_spared(const struct memory *memory) {
    STORE(watch.slot->part.spared_until_ms,
          memory->history.ready_at_ms + cow_spared_ms(&watch.limits, &memory->history));
}

static void become_ready(struct memory *memory) {
    cow_look_end(&memory->pace.look);
    memory->pace.look = watch.ready_look;
    memory->history.ready_at_ms = watch.ready_at_ms;
    memory->history.ready_private = memory->pace.look.reading.private_bytes;
    memory->history.jitter_ms = watch.jitter_ms;
    memory->history.early = watch.own.judged.early;
    post_spared(memory);
}

static void restore(const struct memory *memory, uint64_t now_ms) {
    const struct cow_look *look = &memory->pace.look;
    cow_own_restore(&watch.own, &memory->history, (int)LOAD(watch.leaving),
                    look->taken ? &look->reading : NULL, now_ms);
    if (memory->history.ready_at_ms) post_spared(memory);
}

static void ask_to_leave(void) {
    if (watch.host.ask_to_leave)
        watch.host.ask_to_leave();
    else
        (void)cow_prim_signal_main(watch.host.leave_signal);
}

/* Ask the worker to leave, if it may now. All that its slot's next worker starts with
 * is written before: an idle one has left before this thread runs again. */
static void recycle(struct memory *memory, const struct cow_reading *reading,
                    const struct cow_verdict *verdict, uint64_t now_ms) {
    struct cow_slot *slot = watch.slot;
    struct cow_limits limits = watch.limits;
    /* One for want of memory at a time: what it gives back is to be seen first. */
    int squeezed =
        verdict->reason == COW_REASON_ROOM || verdict->reason == COW_REASON_STALLED;
    if (squeezed || verdict->reason == COW_REASON_BUDGET) limits.max_recycling = 1;
    if (LOAD(slot->life.state) != COW_READY ||
        !cow_ticket_take(watch.board, watch.number, watch.pid, &limits, now_ms))
        return;
    STORE(slot->judged.early, verdict->early);
    if (squeezed) STORE(slot->judged.pressed, ++watch.own.judged.pressed);
    STORE(slot->life.state, COW_LEAVING);
    watch.own.judged.early = verdict->early;
    memory->history.asked_at_ms = now_ms;
    memory->history.asked_limit = squeezed ? 0 : verdict->limit;
    cow_end_post(watch.board, watch.number, verdict, reading, now_ms, now_ms);
    ask_to_leave();
}

/* The master has asked for it: no limit was passed, and none is waited for. */
static void renew(struct memory *memory, uint64_t now_ms) {
    const struct cow_verdict verdict = {.action = COW_RECYCLE,
                                        .reason = COW_REASON_RENEWED,
                                        .early = memory->history.early};
    recycle(memory, &memory->pace.look.reading, &verdict, now_ms);
}

/* Memory is short: leave, if no other is to leave rather. */
static void make_room(struct memory *memory, uint64_t now_ms) {
    struct cow_verdict verdict;
    struct cow_slot *slot = watch.slot;
    struct cow_squeeze *squeeze = &memory->squeeze;
    uint32_t *pressed = &watch.own.judged.pressed;
    cow_squeeze_judge(squeeze, watch.board, watch.number, &watch.limits, now_ms,
                      &verdict);
    verdict.early = memory->history.early;
    if (verdict.action == COW_RECYCLE) {
        recycle(memory, &memory->pace.look.reading, &verdict, now_ms);
    } else if (*pressed && !squeeze->shortage) {
        uint64_t since_ms = memory->history.ready_at_ms;
        if (since_ms < squeeze->short_at_ms) since_ms = squeeze->short_at_ms;
        if (now_ms > since_ms + cow_pressed_ms(&watch.limits, *pressed))
            STORE(slot->judged.pressed, *pressed = 0);
    }
}

/* The kernel is about to kill, and might choose another. A kill takes a request with
 * it: only for who asked for a limit that kills, or for one of the whole server. */
static void peek_brink(struct memory *memory, uint64_t now_ms, uint64_t *next_ms) {
    struct cow_reading reading;
    struct cow_brink *brink = &memory->brink;
    *next_ms = now_ms + watch.limits.interval_ms;
    brink->near = 0;
    if (!watch.limits.pressure || !watch.group.version ||
        !memory->history.ready_at_ms || cow_still_lives() ||
        !(watch.limits.max_private_hard || LOAD(watch.board->whole.budget)) ||
        !cow_brink_peek(brink, &watch.group, &memory->pace.look, watch.board,
                        watch.number, now_ms, next_ms, &reading))
        return;
    const struct cow_verdict verdict = {.action = COW_KILL,
                                        .reason = COW_REASON_ROOM,
                                        .limit = cow_room_left(&brink->room)};
    cow_end_post(watch.board, watch.number, &verdict, &reading,
                 memory->history.asked_at_ms, now_ms);
    cow_prim_kill_self();
}

static void act(struct memory *memory, const struct cow_reading *reading,
                uint64_t now_ms) {
    struct cow_verdict verdict;
    struct cow_slot *slot = watch.slot;
    cow_judge(&watch.limits, &memory->history, reading, now_ms, &verdict);
    memory->history.strikes = verdict.strikes;
    memory->history.over_since_ms = verdict.over_since_ms;
    STORE(slot->judged.strikes, verdict.strikes);

    if (verdict.action == COW_KILL) {
        cow_end_post(watch.board, watch.number, &verdict, reading,
                     memory->history.asked_at_ms, now_ms);
        cow_prim_kill_self();
    } else if (verdict.action == COW_ASK_AGAIN) {
        memory->history.asked_again = 1;
        STORE(slot->judged.asked_again, 1);
        cow_end_post(watch.board, watch.number, &verdict, reading,
                     memory->history.asked_at_ms, now_ms);
        ask_to_leave();
    } else if (verdict.action == COW_RECYCLE && !cow_heal_first(&verdict, now_ms)) {
        recycle(memory, reading, &verdict, now_ms);
    }
}

/* The whole server's budget, with this reading in the sum. */
static void act_for_all(struct memory *memory, const struct cow_reading *reading,
                        uint64_t now_ms) {
    struct cow_sum sum;
    struct cow_verdict verdict;
    cow_budget_sum(watch.board, now_ms, &sum);
    cow_budget_count(&watch.limits, &sum, now_ms, &memory->over);
    cow_budget_judge(&watch.limits, &memory->history, &sum, &memory->over, watch.number,
                     &verdict);
    if (verdict.strikes > memory->history.strikes)
        STORE(watch.slot->judged.strikes, verdict.strikes);
    if (verdict.action == COW_RECYCLE) recycle(memory, reading, &verdict, now_ms);
}

/* The host's counter, the look, the verdict: once an interval, or when a peek asks. */
static void turn(struct memory *memory, uint64_t now_ms, int asked) {
    struct cow_reading reading;
    struct cow_sum sum;
    struct cow_need need;
    struct cow_slot *slot = watch.slot;
    restore(memory, now_ms);
    cow_budget_sum(watch.board, now_ms, &sum);
    cow_budget_count(&watch.limits, &sum, now_ms, &memory->over);
    cow_budget_need(&sum, &memory->over, watch.number, now_ms, &need);
    if (watch.host.requests) STORE(slot->life.requests, *watch.host.requests);
    int squeezed = watch.limits.pressure && memory->history.ready_at_ms;
    if (squeezed) {
        int busy = watch.host.busy ? watch.host.busy() : LOAD(slot->life.busy) != 0;
        asked |= cow_squeeze_look(&memory->squeeze, &watch.group, slot, busy, now_ms);
        memory->brink.room = memory->squeeze.room;
    }
    if (cow_pace_look(&memory->pace, slot, &watch.limits, &memory->history, &need,
                      now_ms, asked, &reading)) {
        post_reading(&reading);
        /* The one at "ready" failed: growth counts from the first that did not. From
         * zero, max-growth would be a limit on all that the worker has. */
        if (memory->history.ready_at_ms && !memory->history.ready_private) {
            memory->history.ready_private = reading.private_bytes;
            STORE(slot->judged.ready_private, reading.private_bytes);
        }
        act(memory, &reading, now_ms);
        act_for_all(memory, &reading, now_ms);
    }
    if (memory->pace.failed) COUNT(watch.board->counts.readings_failed);
    /* Any other number is nobody's wish. */
    if (LOAD(slot->life.renew) == 1 && memory->history.ready_at_ms)
        renew(memory, now_ms);
    if (squeezed) make_room(memory, now_ms);
    /* A host's loop may have been between its look at the flag and its wait when it was
     * asked: ask again until it has gone. A signal is not repeated so soon, it would
     * kill a worker at its exit handlers. */
    if (watch.host.ask_to_leave && LOAD(slot->life.state) == COW_LEAVING)
        watch.host.ask_to_leave();
    /* It outlived the time it was spared without passing a limit. One that leaves has
     * passed it, and no longer counts strikes. */
    if (memory->history.early && !memory->history.strikes && !memory->over.strikes &&
        !memory->history.asked_at_ms &&
        now_ms > memory->history.ready_at_ms +
                     cow_spared_ms(&watch.limits, &memory->history)) {
        memory->history.early = watch.own.judged.early = 0;
        STORE(slot->judged.early, 0);
    }
    STORE(slot->memory.seen_at_ms, now_ms);
}

static int peek(struct memory *memory, uint64_t now_ms, uint64_t *next_ms) {
    return cow_pace_peek(&memory->pace, &watch.limits, &memory->history, now_ms,
                         next_ms);
}

static uint64_t sooner(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static void *run(void *unused) {
    struct memory memory = {0};
    uint64_t turn_ms = cow_now_ms(), peek_ms = turn_ms, brink_ms = turn_ms;
    (void)unused;
    cow_prim_thread_name("cow-watch");

    for (;;) {
        uint32_t event = LOAD(watch.event); /* before what it tells of is looked at */
        if (LOAD(watch.stop)) break;
        if (LOAD(watch.exit)) {
            if (watch.host.exit_now) watch.host.exit_now();
            STORE(watch.exit, 0);
        }
        uint64_t now_ms = cow_now_ms();
        if (!memory.history.ready_at_ms && LOAD(watch.ready)) {
            become_ready(&memory);
            peek_ms = brink_ms = now_ms;
        }
        if (now_ms >= brink_ms) peek_brink(&memory, now_ms, &brink_ms);
        int asked = now_ms >= peek_ms && peek(&memory, now_ms, &peek_ms);
        if ((asked || now_ms >= turn_ms) && !memory.brink.near) {
            turn(&memory, now_ms, asked);
            turn_ms = now_ms + watch.limits.interval_ms;
            (void)peek(&memory, now_ms, &peek_ms);
        }
        int lived = cow_still_lives();
        uint64_t still_ms = cow_now_ms() + cow_still_attend(watch.slot);
        if (lived && !cow_still_lives()) { /* read anew, and now */
            memory.pace.look.taken = 0;
            turn_ms = cow_now_ms();
        }
        uint64_t until_ms = sooner(brink_ms, still_ms);
        if (!memory.brink.near) until_ms = sooner(until_ms, sooner(turn_ms, peek_ms));
        cow_prim_event_wait(&watch.event, event, until_ms);
    }
    cow_look_end(&memory.pace.look);
    return NULL;
}

int cow_watch_start(struct cow_board *board, uint32_t slot,
                    const struct cow_limits *limits, const struct cow_host *host) {
    struct cow_slot *at;
    sigset_t all, before;
    if (watch.pid == getpid()) return COW_ERUNNING;
    if (cow_slot_get(board, slot, &at)) return COW_ESLOT;
    memset(&watch, 0, sizeof watch); /* what a parent of this process left */
    watch.board = board;
    watch.number = slot;
    watch.slot = at;
    watch.limits = *limits;
    watch.host = *host;
    watch.group = board->group;
    watch.group.folder[sizeof watch.group.folder - 1] = 0;
    watch.pid = getpid();
    cow_own_begin(&watch.own, board, slot, watch.pid, limits);

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = cow_prim_thread(&watch.thread, run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) return COW_OK;
    watch.pid = 0;
    errno = error;
    return COW_ETHREAD;
}

int cow_watch_runs(void) { return watch.pid == getpid(); }

int cow_watch_stop(void) {
    if (watch.pid != getpid()) return COW_ESTOPPED;
    STORE(watch.stop, 1);
    cow_prim_event_post(&watch.event);
    (void)pthread_join(watch.thread, NULL);
    watch.pid = 0;
    return COW_OK;
}

int cow_watch_ready(uint64_t jitter_ms, struct cow_reading *out, int *exceeds) {
    struct cow_slot *slot = watch.slot;
    memset(out, 0, sizeof *out);
    *exceeds = 0;
    if (watch.pid != getpid()) return COW_ESTOPPED;
    int code = cow_look_read(&watch.ready_look, out);
    if (code == COW_OK) {
        post_reading(out);
        *exceeds = cow_exceeds(&watch.limits, out->private_bytes);
    } else {
        COUNT(watch.board->counts.readings_failed);
    }
    watch.jitter_ms = jitter_ms;
    watch.ready_at_ms = cow_now_ms();
    STORE(slot->judged.ready_private, out->private_bytes);
    STORE(slot->life.ready_at_ms, watch.ready_at_ms);
    STORE(slot->life.state, COW_READY);
    STORE(watch.ready, 1);
    cow_prim_event_post(&watch.event);
    cow_ticket_release(watch.board, watch.number);
    return code;
}

void cow_watch_leaving(void) {
    if (watch.pid != getpid()) return; /* a child of the application's own */
    STORE(watch.leaving, 1);
    STORE(watch.slot->life.state, COW_LEAVING);
}

int cow_watch_request_exit(void) {
    if (watch.pid != getpid()) return COW_ESTOPPED;
    STORE(watch.exit, 1);
    cow_prim_event_post(&watch.event);
    return COW_OK;
}
