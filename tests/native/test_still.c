/*
 * The still copy without Python, for the sanitizers: a child plays the worker, its main
 * thread the report, its watching thread makes the copy.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"
#include "cow.h"
#include "prim.h"
#include "still.h"

static struct cow_board *board;
static int board_fd;

static struct cow_slot *slot(void) { return &board->slot[0]; }
static struct cow_still *still(void) { return &slot()->still; }

static int reached(uint32_t state) {
    for (int i = 0; i < 5000 && LOAD(still()->state) != state; i++)
        cow_prim_nap_us(2000);
    return LOAD(still()->state) == state;
}

static void watched_until(uint64_t hard) {
    struct cow_limits limits = {
        .interval_ms = 50, .strikes = 1, .max_private_hard = hard};
    static const struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading ready;
    int exceeds;
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(cow_watch_start(board, 1, &limits, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &ready, &exceeds) == COW_OK);
}

static void watched(void) { watched_until(0); }

static void ask_for_a_copy(void) {
    CHECK(cow_still_move(still(), COW_STILL_NONE, COW_STILL_WANTED));
    CHECK(reached(COW_STILL_ATTENDING));
    CHECK(cow_still_move(still(), COW_STILL_ATTENDING, COW_STILL_GO));
    CHECK(reached(COW_STILL_HELD));
}

static void make_and_release(void) {
    int into[2];
    CHECK(pipe(into) == 0);
    watched();
    for (int time = 0; time < 3; time++) {
        ask_for_a_copy();
        pid_t copy = LOAD(still()->pid);
        CHECK(copy > 0 && copy != getpid() && cow_prim_alive(copy));
        /* The application's own wait() sees no child. */
        CHECK(waitpid(-1, NULL, WNOHANG) == -1);
        if (time == 0) {
            /* The copy has no end of the pipe: closing ours is its end. */
            struct pollfd end = {.fd = into[0], .events = POLLIN};
            close(into[1]);
            CHECK(poll(&end, 1, 1000) == 1 && end.revents & POLLHUP);
        }
        CHECK(cow_still_move(still(), COW_STILL_HELD, COW_STILL_RELEASED));
        CHECK(reached(COW_STILL_NONE));
        CHECK(!cow_prim_alive(copy)); /* reaped, too */
    }
    CHECK(LOAD(still()->us) > 0);
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_copy_is_made_held_and_reaped_again_and_again) {
    CHECK(in_child(make_and_release) == 0);
}

static void forget(void) {
    watched();
    CHECK(cow_still_move(still(), COW_STILL_NONE, COW_STILL_WANTED));
    CHECK(reached(COW_STILL_ATTENDING));
    CHECK(reached(COW_STILL_NONE)); /* after COW_STILL_ATTEND_MS */
    CHECK(!cow_still_move(still(), COW_STILL_ATTENDING, COW_STILL_GO));
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
    pid_t copy = LOAD(still()->pid);
    CHECK(copy > 0);
    for (int i = 0; i < 5000 && cow_prim_alive(copy); i++) cow_prim_nap_us(2000);
    CHECK(!cow_prim_alive(copy));
}

#define MIB ((size_t)1 << 20)

static void write_memory(size_t size) {
    char *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    memset(at, 1, size);
}

/* What it wrote before is shared with the copy, and counts. */
static void pass_the_limit(void) {
    struct cow_reading before;
    write_memory(96 * MIB);
    CHECK(cow_reading_take(0, &before) == COW_OK);
    watched_until(before.private_bytes + 64 * MIB);
    ask_for_a_copy();
    write_memory(96 * MIB);
    for (int i = 0; i < 1500; i++) cow_prim_nap_us(2000);
}

TEST(a_hard_limit_acts_while_a_copy_lives) {
    int status = in_child(pass_the_limit);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(board->end[0].reason == COW_REASON_HARD);
}

static void read_after_the_copy(void) {
    write_memory(64 * MIB);
    watched_until(1000 * MIB);
    for (int time = 0; time < 2; time++) {
        ask_for_a_copy();
        CHECK(cow_still_move(still(), COW_STILL_HELD, COW_STILL_RELEASED));
        uint64_t released_ms = cow_now_ms();
        CHECK(reached(COW_STILL_NONE));
        for (int i = 0; i < 5000 && LOAD(slot()->memory.read_at_ms) < released_ms; i++)
            cow_prim_nap_us(200);
        CHECK(LOAD(slot()->memory.read_at_ms) >= released_ms);
        CHECK(LOAD(slot()->memory.private_bytes) >= 64 * MIB);
    }
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_reading_follows_a_copy) { CHECK(in_child(read_after_the_copy) == 0); }

static void boot_alone(void) {
    static const struct cow_limits limits = {.interval_ms = 50, .strikes = 1};
    static const struct cow_host host = {.leave_signal = SIGTERM};
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(cow_watch_start(board, 1, &limits, &host) == COW_OK);
    CHECK(cow_still_move(still(), COW_STILL_NONE, COW_STILL_WANTED));
    for (int i = 0; i < 1000; i++) cow_prim_nap_us(1500);
    CHECK(LOAD(still()->state) == COW_STILL_WANTED);
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_worker_that_boots_is_not_copied) { CHECK(in_child(boot_alone) == 0); }

static void give_up(void) {
    watched();
    for (int time = 0; time < 2; time++) {
        ask_for_a_copy();
        pid_t copy = LOAD(still()->pid);
        STORE(still()->state, time ? COW_STILL_NONE : COW_STILL_WANTED);
        for (int i = 0; i < 5000 && cow_prim_alive(copy); i++) cow_prim_nap_us(2000);
        CHECK(!cow_prim_alive(copy));
        if (time) break;
        CHECK(reached(COW_STILL_ATTENDING)); /* the next report was not forgotten */
        CHECK(reached(COW_STILL_NONE));
    }
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_report_that_gives_up_leaves_the_slot_to_the_next) {
    CHECK(in_child(give_up) == 0);
}

static void without_close_range(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = rules};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    watched();
    for (int time = 0; time < 2; time++) { /* and asked again without a word */
        uint32_t from = time ? COW_STILL_FAILED : COW_STILL_NONE;
        CHECK(cow_still_move(still(), from, COW_STILL_WANTED));
        CHECK(reached(COW_STILL_ATTENDING));
        CHECK(cow_still_move(still(), COW_STILL_ATTENDING, COW_STILL_GO));
        CHECK(reached(COW_STILL_FAILED));
        CHECK(LOAD(still()->error) == ENOSYS);
    }
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(a_copy_that_cannot_close_its_files_is_given_up) {
    CHECK(in_child(without_close_range) == 0);
}

TEST(a_new_worker_begins_without_a_copy) {
    STORE(still()->state, COW_STILL_HELD);
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(LOAD(still()->state) == COW_STILL_NONE);
}

int main(void) {
    CHECK(cow_board_create(&board, &board_fd) == COW_OK);
    RUN(a_copy_is_made_held_and_reaped_again_and_again);
    RUN(a_report_that_says_nothing_is_forgotten);
    RUN(a_copy_ends_with_its_worker);
    RUN(a_hard_limit_acts_while_a_copy_lives);
    RUN(a_reading_follows_a_copy);
    RUN(a_worker_that_boots_is_not_copied);
    RUN(a_report_that_gives_up_leaves_the_slot_to_the_next);
    RUN(a_copy_that_cannot_close_its_files_is_given_up);
    RUN(a_new_worker_begins_without_a_copy);
    printf("done\n");
    return 0;
}
