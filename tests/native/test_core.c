/*
 * The native core without Python, for the address and undefined-behaviour
 * sanitizers. What Python's tests cannot reach is here: the thread, the tickets of
 * several processes, texts cut at every byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "check.h"
#include "cow.h"
#include "prim.h"

#define MIB (1024 * 1024)

static const char ROLLUP[] =
    "55a31c68b000-7ffe2b4ad000 ---p 00000000 00:00 0   [rollup]\n"
    "Rss:                1716 kB\nPss:                 756 kB\n"
    "Shared_Clean:       1496 kB\nShared_Dirty:          0 kB\n"
    "Private_Clean:       108 kB\nPrivate_Dirty:       112 kB\nSwap:     4 kB\n";

static struct cow_board *board;
static int board_fd;

static void nap_ms(long ms) {
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

TEST(a_text_cut_anywhere_is_read_within_its_bounds) {
    for (size_t size = 0; size < sizeof ROLLUP; size++) {
        char *text = malloc(size + !size); /* exact, so that the sanitizer sees */
        struct cow_reading reading;
        uint64_t resident, files;
        memcpy(text, ROLLUP, size);
        (void)cow_reading_parse(text, size, &reading);
        (void)cow_statm_parse(text, size, 4096, &resident, &files);
        free(text);
    }
}

TEST(slots_are_given_lowest_first_and_found_again_when_their_process_is_gone) {
    CHECK(cow_slot_find(board) == 1);
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(cow_slot_find(board) == 2);
    pid_t gone = fork();
    if (gone == 0) _exit(0);
    waitpid(gone, NULL, 0);
    CHECK(cow_slot_boot(board, 2, gone) == COW_OK);
    CHECK(cow_slot_find(board) == 2);
    CHECK(cow_slot_free(board, 1) == COW_OK);
    CHECK(cow_slot_find(board) == 1);
    CHECK(cow_slot_boot(board, 0, 1) == COW_ESLOT);
    CHECK(cow_slot_boot(board, COW_SLOTS + 1, 1) == COW_ESLOT);
    CHECK(board->slot[0].life.generation == 1);
    CHECK(cow_slot_boot(board, 1, getpid()) == COW_OK);
    CHECK(board->slot[0].life.generation == 2);
    cow_slot_free(board, 1);
    cow_slot_free(board, 2);
}

TEST(a_ticket_is_held_until_the_replacement_is_ready) {
    struct cow_limits limits = {.max_recycling = 1};
    uint64_t now = cow_now_ms();
    cow_slot_boot(board, 1, getpid());
    cow_slot_boot(board, 2, getppid());
    board->slot[0].life.state = board->slot[1].life.state = COW_READY;
    CHECK(cow_ticket_take(board, 1, getpid(), &limits, now));
    CHECK(cow_ticket_take(board, 1, getpid(), &limits, now)); /* held already */
    CHECK(!cow_ticket_take(board, 2, getppid(), &limits, now));
    cow_ticket_release(board, 1);
    CHECK(cow_ticket_take(board, 2, getppid(), &limits, now));
    cow_ticket_release(board, 2);
    cow_slot_free(board, 1);
    cow_slot_free(board, 2);
}

TEST(a_ticket_of_a_dead_or_stuck_worker_lapses) {
    struct cow_limits limits = {.max_recycling = 1};
    uint64_t now = cow_now_ms() + 5000000;
    pid_t gone = fork();
    if (gone == 0) _exit(0);
    waitpid(gone, NULL, 0);
    cow_slot_boot(board, 1, gone);
    cow_slot_boot(board, 2, getpid());
    board->slot[0].life.state = COW_LEAVING;
    CHECK(cow_ticket_take(board, 1, gone, &limits, now));
    CHECK(!cow_ticket_take(board, 2, getpid(), &limits, now + 2000));
    CHECK(
        cow_ticket_take(board, 2, getpid(), &limits, now + COW_TICKET_DEAD_MS + 2000));
    cow_slot_boot(board, 1, getppid());
    board->slot[1].life.state = COW_LEAVING;
    now += 100000;
    cow_ticket_release(board, 2);
    CHECK(cow_ticket_take(board, 2, getpid(), &limits, now));
    CHECK(!cow_ticket_take(board, 1, getppid(), &limits,
                           now + COW_TICKET_DEAD_MS + 2000));
    CHECK(cow_ticket_take(board, 1, getppid(), &limits,
                          now + COW_TICKET_STUCK_MS + 2000));
    cow_ticket_release(board, 1);
    cow_slot_free(board, 1);
    cow_slot_free(board, 2);
}

TEST(a_slot_that_a_recycled_worker_left_is_filled_first) {
    /* After gunicorn's HUP the lowest slots are empty; the replacement of a worker that
     * is recycled took one of them, and the ticket lapsed after ten seconds. */
    struct cow_limits limits = {.max_recycling = 1};
    uint64_t now = cow_now_ms();
    cow_slot_boot(board, 3, getpid());
    cow_slot_boot(board, 4, getppid());
    board->slot[2].life.state = board->slot[3].life.state = COW_READY;
    CHECK(cow_slot_find(board) == 1);
    CHECK(cow_ticket_take(board, 4, getppid(), &limits, now));
    board->slot[3].life.state = COW_LEAVING;
    CHECK(cow_slot_find(board) == 1); /* it is still there */
    cow_slot_free(board, 4);
    CHECK(!cow_ticket_take(board, 3, getpid(), &limits, now + 2000));
    CHECK(cow_slot_find(board) == 4);
    cow_slot_boot(board, 4, getppid());
    CHECK(cow_slot_find(board) == 1);
    cow_ticket_release(board, 4); /* as cow_watch_ready() does */
    CHECK(cow_ticket_take(board, 3, getpid(), &limits, now + 2000));
    memset(board->tickets, 0, sizeof board->tickets);
    memset(board->slot, 0, sizeof board->slot);
}

TEST(a_worker_that_drains_long_is_not_counted_while_half_of_all_serve) {
    struct cow_limits limits = {.max_recycling = 1};
    uint64_t now = cow_now_ms(), later = now + COW_TICKET_DRAIN_MS + 2000;
    for (uint32_t slot = 1; slot <= 4; slot++) {
        cow_slot_boot(board, slot, getpid());
        board->slot[slot - 1].life.state = COW_READY;
    }
    CHECK(cow_ticket_take(board, 1, getpid(), &limits, now));
    board->slot[0].life.state = COW_LEAVING;
    CHECK(!cow_ticket_take(board, 2, getpid(), &limits, now + 2000));
    CHECK(cow_ticket_take(board, 2, getpid(), &limits, later));
    board->slot[1].life.state = COW_LEAVING;
    /* Two of four leave: a third would leave one that serves. */
    CHECK(!cow_ticket_take(board, 3, getpid(), &limits, later + 20000));
    cow_slot_free(board, 1);
    cow_slot_boot(board, 1, getpid());
    CHECK(!cow_ticket_take(board, 3, getpid(), &limits, later + 20000));
    board->slot[0].life.state = COW_READY;
    CHECK(cow_ticket_take(board, 3, getpid(), &limits, later + 20000));
    memset(board->tickets, 0, sizeof board->tickets);
    memset(board->slot, 0, sizeof board->slot);
}

static void take_and_hold(void) {
    struct cow_limits limits = {.max_recycling = 3};
    uint32_t slot = (uint32_t)getpid() % COW_SLOTS + 1;
    cow_slot_boot(board, slot, getpid());
    board->slot[slot - 1].life.state = COW_READY;
    int taken = cow_ticket_take(board, slot, getpid(), &limits, cow_now_ms());
    board->slot[slot - 1].life.requests = (uint64_t)taken;
    nap_ms(500);
    _exit(taken);
}

TEST(processes_that_race_for_tickets_get_no_more_than_there_are) {
    enum { RACERS = 24 };
    pid_t pids[RACERS];
    int taken = 0;
    fflush(stdout);
    for (int i = 0; i < RACERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) take_and_hold();
    }
    for (int i = 0; i < RACERS; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        taken += WEXITSTATUS(status);
    }
    CHECK(taken == 3);
    memset(board->tickets, 0, sizeof board->tickets);
    memset(board->slot, 0, sizeof board->slot);
}

TEST(requests_of_earlier_generations_are_kept) {
    struct cow_life *life = &board->slot[4].life;
    cow_slot_boot(board, 5, 4242);
    life->requests = 30;
    cow_slot_free(board, 5);
    cow_slot_boot(board, 5, 4243);
    CHECK(life->requests == 0 && life->served == 30);
    life->requests = 12;
    cow_slot_boot(board, 5, 4244);
    CHECK(life->served == 42);
    cow_slot_free(board, 5);
}

TEST(decisions_are_counted_by_action_and_reason) {
    struct cow_verdict verdict = {.action = COW_RECYCLE, .reason = COW_REASON_PRIVATE};
    struct cow_reading reading = {.private_bytes = 131 * MIB};
    cow_slot_boot(board, 2, 4242);
    cow_end_post(board, 2, &verdict, &reading, 1, 1);
    verdict.action = COW_ASK_AGAIN;
    verdict.reason = COW_REASON_UNHEEDED;
    cow_end_post(board, 2, &verdict, &reading, 1, 30000);
    cow_end_post(board, 2, &verdict, &reading, 1, 60000);
    CHECK(board->counts.ends[COW_RECYCLE][COW_REASON_PRIVATE] == 1);
    CHECK(board->counts.ends[COW_ASK_AGAIN][COW_REASON_UNHEEDED] == 2);
    cow_slot_free(board, 2);
}

static volatile sig_atomic_t asked;
static void on_term(int number) { asked = number; }
static const struct cow_limits GROWTH = {
    .max_growth = 20 * MIB, .interval_ms = 20, .strikes = 2, .max_recycling = 1};

static void grow_by(size_t size) {
    char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
}

static void watched_growth(void) {
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds;
    signal(SIGTERM, on_term);
    cow_slot_boot(board, 3, getpid());
    CHECK(cow_watch_start(board, 3, &GROWTH, &host) == COW_OK);
    CHECK(cow_watch_start(board, 3, &GROWTH, &host) == COW_ERUNNING);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    CHECK(!exceeds && LOAD(board->slot[2].life.state) == COW_READY);
    nap_ms(200);
    CHECK(!asked);
    grow_by(30 * MIB);
    for (int i = 0; i < 200 && !asked; i++) nap_ms(20);
    CHECK(asked == SIGTERM);
    CHECK(LOAD(board->slot[2].life.state) == COW_LEAVING);
    CHECK(cow_watch_stop() == COW_OK);
    CHECK(cow_watch_stop() == COW_ESTOPPED);
}

TEST(a_worker_that_grows_is_asked_to_leave_by_a_signal_to_its_main_thread) {
    CHECK(in_child(watched_growth) == 0);
    CHECK(board->end[2].reason == COW_REASON_GROWTH);
    memset(board->tickets, 0, sizeof board->tickets);
}

static void watched_without_a_reading_when_ready(void) {
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_slot *slot = &board->slot[2];
    struct cow_reading reading;
    struct rlimit before, none;
    int exceeds;
    signal(SIGTERM, on_term);
    grow_by(30 * MIB);
    cow_slot_boot(board, 3, getpid());
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    CHECK(cow_watch_start(board, 3, &GROWTH, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_EUNREADABLE);
    CHECK(LOAD(board->counts.readings_failed) > 0);
    CHECK(slot->judged.max_growth == 20 * MIB && slot->judged.wanted == 2);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 200 && !LOAD(slot->memory.read_at_ms); i++) nap_ms(20);
    CHECK(LOAD(slot->memory.read_at_ms));
    nap_ms(200);
    CHECK(!asked && LOAD(slot->judged.ready_private) > 30 * MIB);
    grow_by(30 * MIB);
    for (int i = 0; i < 200 && !asked; i++) nap_ms(20);
    CHECK(asked == SIGTERM && cow_watch_stop() == COW_OK);
}

static void watched_with_all_descriptors_used(void) {
    const struct cow_limits limits = {
        .max_private_hard = 40 * MIB, .interval_ms = 20, .strikes = 1};
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds, least = dup(2);
    struct rlimit used = {(rlim_t)least + 1, (rlim_t)least + 1};
    cow_slot_boot(board, 3, getpid());
    CHECK(setrlimit(RLIMIT_NOFILE, &used) == 0 && dup(2) < 0 && errno == EMFILE);
    CHECK(cow_watch_start(board, 3, &limits, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    CHECK(reading.private_bytes && !exceeds);
    CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD); /* no wait() sees a reader */
    grow_by(60 * MIB);
    for (int i = 0; i < 200; i++) nap_ms(20);
}

TEST(a_hard_limit_acts_while_the_application_has_used_up_its_descriptors) {
    CHECK(in_child(watched_with_all_descriptors_used) == SIGKILL);
    CHECK(board->end[2].reason == COW_REASON_HARD);
    memset(board->tickets, 0, sizeof board->tickets);
}

TEST(growth_counts_from_the_first_reading_where_that_at_ready_failed) {
    CHECK(in_child(watched_without_a_reading_when_ready) == 0);
    memset(board->tickets, 0, sizeof board->tickets);
}

static void watched_copying(void) {
    /* Copying inherited pages leaves the resident set as it was: only the faults
     * tell. The parent's pages stay shared until they are written here. */
    extern char *inherited;
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds;
    signal(SIGTERM, on_term);
    cow_slot_boot(board, 4, getpid());
    for (size_t at = 0; at < 40 * MIB; at += 4096) asked |= inherited[at] & 0;
    CHECK(cow_watch_start(board, 4, &GROWTH, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    for (size_t at = 0; at < 40 * MIB; at += 4096) inherited[at] = 2;
    for (int i = 0; i < 200 && !asked; i++) nap_ms(20);
    CHECK(asked == SIGTERM);
    CHECK(cow_watch_stop() == COW_OK);
}

char *inherited;

TEST(copied_pages_are_noticed_although_the_resident_set_stays) {
    inherited = mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < 40 * MIB; at += 4096) inherited[at] = 1;
    CHECK(in_child(watched_copying) == 0);
    munmap(inherited, 40 * MIB);
    memset(board->tickets, 0, sizeof board->tickets);
}

static void watched_hard(void) {
    struct cow_limits limits = {.max_private_hard = 64 * MIB, .interval_ms = 20};
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds;
    cow_slot_boot(board, 5, getpid());
    CHECK(cow_watch_start(board, 5, &limits, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    grow_by(200 * MIB);
    nap_ms(5000);
}

TEST(the_hard_limit_kills) {
    int status = in_child(watched_hard);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(board->end[4].action == COW_KILL);
}

static void watched_exchange(void) {
    /* Shared pages are given back while huge ones come, between two looks: the resident
     * set stays as it was, and few faults tell of it. */
    struct cow_limits limits = {.max_private_hard = 64 * MIB, .interval_ms = 300};
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds;
    size_t size = 200 * MIB, huge = 2 * MIB;
    char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, size, MADV_HUGEPAGE);
    cow_slot_boot(board, 5, getpid());
    CHECK(cow_watch_start(board, 5, &limits, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    munmap(inherited, size);
    for (size_t at = 0; at < size; at += huge) memory[at] = 1;
    /* Without a bound that knows it, the next reading comes after seconds. */
    nap_ms(2000);
}

TEST(shared_pages_given_back_pay_for_no_huge_ones) {
    size_t size = 200 * MIB;
    inherited =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < size; at += 4096) inherited[at] = 1;
    int status = in_child(watched_exchange);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    munmap(inherited, size);
}

static void watched_flood(void) {
    struct cow_limits limits = {.max_private_hard = 128 * MIB, .interval_ms = 20000};
    struct cow_host host = {.leave_signal = SIGTERM};
    struct cow_reading reading;
    int exceeds;
    cow_slot_boot(board, 5, getpid());
    CHECK(cow_watch_start(board, 5, &limits, &host) == COW_OK);
    CHECK(cow_watch_ready(0, &reading, &exceeds) == COW_OK);
    nap_ms(200);
    for (int i = 0; i < 100; i++) {
        grow_by(16 * MIB);
        nap_ms(1);
    }
    nap_ms(5000);
}

TEST(a_flood_is_stopped_long_before_the_next_look) {
    int status = in_child(watched_flood);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(board->end[4].private_bytes < 1000 * (uint64_t)MIB);
}

static int left;
static void leave_now(void) { __atomic_store_n(&left, 1, __ATOMIC_RELEASE); }

static void asked_to_exit(void) {
    struct cow_host host = {.exit_now = leave_now};
    struct cow_limits limits = {.interval_ms = 60000};
    cow_slot_boot(board, 6, getpid());
    CHECK(cow_watch_start(board, 6, &limits, &host) == COW_OK);
    CHECK(cow_watch_request_exit() == COW_OK);
    for (int i = 0; i < 200 && !LOAD(left); i++) nap_ms(20);
    CHECK(LOAD(left));
    CHECK(cow_watch_stop() == COW_OK);
    CHECK(cow_watch_request_exit() == COW_ESTOPPED);
}

TEST(a_request_to_exit_wakes_the_thread_at_once) {
    CHECK(in_child(asked_to_exit) == 0);
}

static int descriptors(void) {
    int open_ones = 0;
    for (int fd = 0; fd < 256; fd++) open_ones += fcntl(fd, F_GETFD) >= 0;
    return open_ones;
}

static void watched_without_descriptors(void) {
    /* An interval that ends no wait: what wakes the thread is the event alone. */
    struct cow_host host = {.exit_now = leave_now};
    struct cow_limits limits = {.interval_ms = 60000};
    int before = descriptors();
    cow_slot_boot(board, 6, getpid());
    CHECK(cow_watch_start(board, 6, &limits, &host) == COW_OK);
    for (int i = 0; i < 200 && !LOAD(board->slot[5].memory.seen_at_ms); i++) nap_ms(20);
    CHECK(descriptors() == before);
    /* What the application does to its descriptors does not reach the thread. */
    for (int fd = 3; fd < 256; fd++) close(fd);
    CHECK(cow_watch_request_exit() == COW_OK);
    for (int i = 0; i < 200 && !LOAD(left); i++) nap_ms(20);
    CHECK(LOAD(left));
    CHECK(cow_watch_stop() == COW_OK);
}

TEST(the_thread_holds_no_descriptor_that_the_application_could_reuse) {
    CHECK(in_child(watched_without_descriptors) == 0);
}

TEST(random_words_in_tickets_hold_nothing) {
    struct cow_limits limits = {.max_recycling = 1};
    uint64_t now = cow_now_ms(), second = now / 1000;
    cow_slot_boot(board, 1, getpid());
    cow_slot_boot(board, 2, getppid());
    board->slot[0].life.state = board->slot[1].life.state = COW_READY;
    uint64_t words[] = {
        ~0ull,
        2047,
        0xdeadbeefdeadbeefull,
        (second + 1000) << 33 | (uint64_t)getppid() << 11 | 2, /* of the future */
        second << 33 | 1ull << 32 | 3, /* of a slot without that process */
        second << 33 | 2,              /* of no process */
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        STORE(board->tickets[0], words[i]);
        if (i == 4) cow_slot_boot(board, 3, getppid());
        board->slot[2].life.state = COW_READY;
        CHECK(cow_ticket_take(board, 1, getpid(), &limits, now + 2000));
    }
    memset(board->tickets, 0, sizeof board->tickets);
    memset(board->slot, 0, sizeof board->slot);
}

TEST(a_board_of_another_revision_is_refused) {
    struct cow_board *other;
    board->revision++;
    CHECK(cow_board_open(board_fd, 0, &other) == COW_EREVISION);
    board->revision--;
    CHECK(cow_board_open(board_fd, 0, &other) == COW_OK);
    CHECK(cow_board_close(other) == COW_OK);
    CHECK(cow_board_open(0, 0, &other) == COW_EREVISION);
}

TEST(every_code_has_a_name) {
    for (int code = COW_OK; code <= COW_ETHREAD; code++)
        CHECK(strcmp(cow_strerror(code), "unknown code"));
    CHECK(!strcmp(cow_strerror(99), "unknown code"));
}

int main(void) {
    CHECK(cow_board_create(&board, &board_fd) == COW_OK);
    RUN(a_text_cut_anywhere_is_read_within_its_bounds);
    RUN(slots_are_given_lowest_first_and_found_again_when_their_process_is_gone);
    RUN(a_ticket_is_held_until_the_replacement_is_ready);
    RUN(a_ticket_of_a_dead_or_stuck_worker_lapses);
    RUN(a_slot_that_a_recycled_worker_left_is_filled_first);
    RUN(a_worker_that_drains_long_is_not_counted_while_half_of_all_serve);
    RUN(processes_that_race_for_tickets_get_no_more_than_there_are);
    RUN(requests_of_earlier_generations_are_kept);
    RUN(decisions_are_counted_by_action_and_reason);
    RUN(a_worker_that_grows_is_asked_to_leave_by_a_signal_to_its_main_thread);
    if (!getenv("WITHOUT_CLONE")) {
        RUN(a_hard_limit_acts_while_the_application_has_used_up_its_descriptors);
        RUN(growth_counts_from_the_first_reading_where_that_at_ready_failed);
    }
    RUN(copied_pages_are_noticed_although_the_resident_set_stays);
    RUN(the_hard_limit_kills);
    RUN(shared_pages_given_back_pay_for_no_huge_ones);
    RUN(a_flood_is_stopped_long_before_the_next_look);
    RUN(a_request_to_exit_wakes_the_thread_at_once);
    RUN(the_thread_holds_no_descriptor_that_the_application_could_reuse);
    RUN(random_words_in_tickets_hold_nothing);
    RUN(a_board_of_another_revision_is_refused);
    RUN(every_code_has_a_name);
    printf("done\n");
    return 0;
}
