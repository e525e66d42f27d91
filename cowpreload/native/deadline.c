/*
 * The deadline of a process that writes its last buffers and leaves.
 *
 * A pipe that nobody reads, a lock that a thread holds who writes to one: both hold a
 * flush up for ever, and no signal ends the wait of the second. So another thread ends
 * the process. Nothing here touches Python or a heap of ours.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cow.h"
#include "prim.h"

static struct {
    uint64_t until_ms; /* 0: no deadline */
    int code;
} deadline;

static void *wait_for_it(void *unused) {
    char line[128];
    uint64_t until_ms;
    (void)unused;
    cow_prim_thread_name("cow-deadline");
    while ((until_ms = LOAD(deadline.until_ms)) != 0) {
        uint64_t now_ms = cow_now_ms();
        if (now_ms < until_ms) {
            cow_prim_nap_us((until_ms - now_ms) * 1000);
            continue;
        }
        int length =
            snprintf(line, sizeof line,
                     "cow: pid=%d left with unwritten buffers: what they are for "
                     "did not take them within %d s\n",
                     (int)getpid(), COW_DEADLINE_MS / 1000);
        cow_prim_say(line, (size_t)length);
        _exit(LOAD(deadline.code));
    }
    return NULL;
}

int cow_deadline_begin(int code) {
    pthread_t thread;
    sigset_t all, before;
    STORE(deadline.code, code);
    STORE(deadline.until_ms, cow_now_ms() + COW_DEADLINE_MS);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, wait_for_it, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return COW_ETHREAD;
    (void)pthread_detach(thread);
    return COW_OK;
}

int cow_end_with(pid_t parent) {
    return cow_prim_end_with(parent) ? COW_ESYSTEM : COW_OK;
}

void cow_deadline_end(void) { STORE(deadline.until_ms, 0); }

void cow_flush_stdio(void) { (void)fflush(NULL); }
