/*
 * How a worker ends: asked after its requests, told at once, or by itself.
 *
 * Every way runs the application's exit handlers and ends in _exit() with uWSGI's
 * own code: Py_Finalize would write to the heap that all workers share.
 */
#include "python.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "plugin.h"

/* How long a thread in a request may keep the GIL from the exit handlers. */
#define GIL_WAIT_MS 5000

static int status;                    /* what exit() was called with */
static volatile sig_atomic_t leaving; /* exit() has been called */

/* Signals go to the main thread, the one in uWSGI's loop: a thread of the
 * application would take them without waking it. */
static void signal_main(int signal) {
    (void)syscall(SYS_tgkill, getpid(), getpid(), signal);
}

void cow_worker_ask_to_leave(void) {
    struct uwsgi_worker *worker = &uwsgi.workers[uwsgi.mywid];
    /* Not SIGHUP: its handler exits at once when no request is accounted for, and
     * one that was accepted a moment ago is not yet. This is what uWSGI does at
     * max-worker-lifetime; a request accepted meanwhile is served. */
    worker->manage_next_request = 0;
    if (uwsgi.threads > 1 && uwsgi.loop_stop_pipe[1] > 0) {
        int fd = uwsgi.loop_stop_pipe[1];
        uwsgi.loop_stop_pipe[1] = 0;
        close(fd);
    }
    signal_main(SIGWINCH);
}

static volatile int taken;

static void *exit_in_thread(void *unused) {
    if (cow_bridge_exit_handlers(&taken)) return NULL; /* the main thread is at it */
    cow_bridge_flush(UWSGI_END_CODE);
    _exit(UWSGI_END_CODE);
}

/* On the watching thread, which must go on watching: the handlers get their own. */
void cow_worker_exit_now(void) {
    pthread_t thread;
    cow_worker_ask_to_leave();
    if (pthread_create(&thread, NULL, exit_in_thread, NULL)) _exit(UWSGI_END_CODE);
    (void)pthread_detach(thread);
    for (int waited = 0; !taken && waited < GIL_WAIT_MS; waited += 10)
        usleep(10 * 1000);
    if (taken) return;
    uwsgi_log(
        "cow: worker=%d pid=%d exit-handlers=skipped: a request held Python's "
        "lock for %d s\n",
        uwsgi.mywid, (int)getpid(), GIL_WAIT_MS / 1000);
    _exit(UWSGI_END_CODE);
}

static void keep(int code, void *unused) {
    leaving = 1;
    status = code;
}

void cow_worker_keep_status(void) {
    /* Registered last, run first: before uWSGI's own atexit handlers. */
    (void)on_exit(keep, NULL);
}

static struct sigaction before_wake;

static void wake(int signal) {}

/* The master sleeps for up to a second and is not woken by the death of a worker: a
 * slot stood empty for 1017 ms, with this handler for 36. */
void cow_worker_wake_master(void) {
    struct sigaction action = {.sa_handler = wake, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, NULL, &before_wake);
    /* Not over a handler of the application's own. */
    if (before_wake.sa_handler == SIG_DFL) sigaction(SIGCHLD, &action, NULL);
}

void cow_worker_forget_master(void) {
    struct sigaction now;
    sigaction(SIGCHLD, NULL, &now);
    if (now.sa_handler == wake) sigaction(SIGCHLD, &before_wake, NULL);
}

int cow_worker_busy(void) {
    for (int core = 0; core < uwsgi.cores; core++)
        if (uwsgi.workers[uwsgi.mywid].cores[core].in_request) return 1;
    return uwsgi.workers[uwsgi.mywid].sig;
}

/* SIGINT and SIGTERM end a worker at once. uWSGI calls exit() from its handler and
 * drops the exit handlers if a request was interrupted: Python cannot run there.
 * The watching thread can wait until Python lets it in. */
static void end_now(int signal) {
    /* A second exit() in the first would skip the exit handlers that still wait. */
    if (leaving && getpid() == uwsgi.mypid) return;
    /* A child that the application forked (multiprocessing) has this handler too, and
     * shares the record of what is in a request; it ends as without us. So does a
     * worker whose watching thread could not be started. */
    if (getpid() != uwsgi.mypid) end_me(signal);
    /* Asked once: another thread may take a request at any time, and a second answer
     * that differs would drop the signal. */
    if (!cow_worker_busy()) exit(UWSGI_END_CODE);
    if (cow_api->request_exit()) end_me(signal);
}

void cow_worker_catch_signals(void) {
    if (uwsgi.skip_atexit) return;
    struct sigaction action = {.sa_handler = end_now};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Other plugins have handlers too. uWSGI runs generic ones in the order of loading,
 * ours among them, then those of the languages; Python's would finalize. */
static void run_other_plugins(void) {
    int after = 0;
    for (int i = 0; i < uwsgi.gp_cnt; i++) {
        if (after && uwsgi.gp[i]->atexit) uwsgi.gp[i]->atexit();
        after |= uwsgi.gp[i]->atexit == cow_worker_atexit;
    }
    for (int i = 0; i < 256; i++)
        if (uwsgi.p[i]->atexit && strcmp(uwsgi.p[i]->name, "python") != 0)
            uwsgi.p[i]->atexit();
}

/* Mules and spoolers end as they do without us, but for what finalizes a heap of which
 * nothing can be freed. (uWSGI's master runs no exit handlers.) */
static void end_without_finalization(void) {
    volatile int unused = 0;
    if (cow_bridge_exit_handlers(&unused)) return;
    cow_bridge_flush(status);
    for (int i = 0; i < 256; i++)
        if (strcmp(uwsgi.p[i]->name, "python") == 0) uwsgi.p[i]->atexit = NULL;
    if (cow_bridge_pending_code() >= 0) exit(cow_bridge_pending_code());
}

int cow_worker_leaves_fast(void) {
    if (getpid() == uwsgi.workers[0].pid || getpid() != uwsgi.mypid) return 0;
    return uwsgi.mywid ? cow_bridge_exits_fast() : cow_bridge_immortal();
}

void cow_worker_atexit(void) {
    /* C code of a page has called exit(): the exit handlers are the master's. */
    if (cow_trial_in_child()) _exit(status);
    if (!cow_api || getpid() != uwsgi.mypid)
        return; /* or the application's own child */
    /* Somebody has finalized Python: nothing of ours can run in it. */
    if (!Py_IsInitialized()) {
        if (uwsgi.mywid && cow_bridge_exits_fast()) {
            run_other_plugins();
            _exit(status);
        }
        return;
    }
    if (uwsgi.mywid == 0) {
        if (cow_bridge_immortal()) end_without_finalization();
        return;
    }
    if (uwsgi.workers[uwsgi.mywid].hijacked) return;
    if (!cow_bridge_exits_fast()) {
        if (!cow_worker_busy())
            cow_bridge_unfreeze(); /* else uWSGI does not finalize either */
        return;
    }
    volatile int unused = 0;
    if (cow_bridge_exit_handlers(&unused))
        for (;;) pause(); /* the other thread ends the process */
    run_other_plugins();
    cow_bridge_flush(status);
    _exit(status);
}
