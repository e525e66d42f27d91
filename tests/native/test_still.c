/*
 * The still copy without Python, for the sanitizers: a child plays the worker, its main
 * thread the report, its watching thread makes the copy.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "cow.h"
#include "prim.h"
#include "still.h"

static struct cow_board *board;
static int board_fd;

static struct cow_slot *slot(void) { return &board->slot[0]; }

static int reached(uint32_t state) {
    for (int i = 0; i < 5000 && LOAD(slot()->still) != state; i++)
        cow_prim_nap_us(2000);
    return LOAD(slot()->still) == state;
}

static void watched(void) {
    static const struct cow_limits limits = {.interval_ms = 50, .strikes = 1};
    static const struct cow_host host = {.leave_signal = SIGTERM};
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(cow_watch_start(board, 1, &limits, &host) == COW_OK);
}

static void ask_for_a_copy(void) {
    CHECK(cow_still_move(slot(), COW_STILL_NONE, COW_STILL_WANTED));
    CHECK(reached(COW_STILL_ATTENDING));
    CHECK(cow_still_move(slot(), COW_STILL_ATTENDING, COW_STILL_GO));
    CHECK(reached(COW_STILL_HELD));
}

static void make_and_release(void) {
    int into[2];
    CHECK(pipe(into) == 0);
    watched();
    for (int time = 0; time < 3; time++) {
        ask_for_a_copy();
        pid_t copy = LOAD(slot()->still_pid);
        CHECK(copy > 0 && copy != getpid() && cow_prim_alive(copy));
        /* The application's own wait() sees no child. */
        CHECK(waitpid(-1, NULL, WNOHANG) == -1);
        if (time == 0) {
            /* The copy has no end of the pipe: closing ours is its end. */
            struct pollfd end = {.fd = into[0], .events = POLLIN};
            close(into[1]);
            CHECK(poll(&end, 1, 1000) == 1 && end.revents & POLLHUP);
        }
        CHECK(cow_still_move(slot(), COW_STILL_HELD, COW_STILL_RELEASED));
        CHECK(reached(COW_STILL_NONE));
        CHECK(!cow_prim_alive(copy)); /* reaped, too */
    }
    CHECK(LOAD(slot()->still_us) > 0);
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_copy_is_made_held_and_reaped_again_and_again) {
    CHECK(in_child(make_and_release) == 0);
}

static void forget(void) {
    watched();
    CHECK(cow_still_move(slot(), COW_STILL_NONE, COW_STILL_WANTED));
    CHECK(reached(COW_STILL_ATTENDING));
    CHECK(reached(COW_STILL_NONE)); /* after COW_STILL_ATTEND_MS */
    CHECK(!cow_still_move(slot(), COW_STILL_ATTENDING, COW_STILL_GO));
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_report_that_says_nothing_is_forgotten) { CHECK(in_child(forget) == 0); }

static void hold_and_die(void) {
    watched();
    ask_for_a_copy();
    _exit(0);
}

TEST(a_copy_ends_with_its_worker) {
    CHECK(in_child(hold_and_die) == 0);
    pid_t copy = LOAD(slot()->still_pid);
    CHECK(copy > 0);
    for (int i = 0; i < 5000 && cow_prim_alive(copy); i++) cow_prim_nap_us(2000);
    CHECK(!cow_prim_alive(copy));
}

TEST(a_new_worker_begins_without_a_copy) {
    STORE(slot()->still, COW_STILL_HELD);
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(LOAD(slot()->still) == COW_STILL_NONE);
}

int main(void) {
    CHECK(cow_board_create(&board, &board_fd) == COW_OK);
    RUN(a_copy_is_made_held_and_reaped_again_and_again);
    RUN(a_report_that_says_nothing_is_forgotten);
    RUN(a_copy_ends_with_its_worker);
    RUN(a_new_worker_begins_without_a_copy);
    printf("done\n");
    return 0;
}
