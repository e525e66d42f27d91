/*
 * cow: copy-on-write-aware workers for uWSGI.
 *
 *     plugins-dir = DIRECTORY        ; `cowpreload plugin build` prints these two
 *     need-plugin = cow
 *     cow-warmup = /                 ; may be repeated
 *     cow-max-private = 200M
 *
 * What each hook does, and in which process:
 *     on_load        master, before any setting is read: is this our binary?
 *     post_init      master, before uWSGI lays its metrics out: ours
 *     preinit_apps   master, Python is up: settings, all faults at once
 *     postinit_apps  master, applications are loaded: warm up, audit, freeze
 *     post_fork      worker: slot, watching thread; note what is served
 *     hijack_worker  worker, signals are set: after_fork callbacks, ready
 *     master_cycle   master, about once a second: free slots, its turn
 *     atexit         worker: leave
 */
#include "plugin.h"

struct cow_api *cow_api;

static void preinit_apps(void) {
    cow_api = cow_bridge_configure();
    if (!cow_api) exit(1);
    if (cow_api->revision != COW_REVISION || cow_api->size != sizeof *cow_api) {
        uwsgi_log(
            "cow: this plugin was built by another cowpreload; run: cowpreload "
            "plugin build --uwsgi %s\n",
            uwsgi.binary_path);
        exit(1);
    }
}

static void postinit_apps(void) {
    if (cow_bridge_stage()) exit(1);
}

/* After a request, its answer and its connection: note what a warm up could request. */
static void note(struct wsgi_request *request) {
    if (request->status != 200 || request->method_len != 3 ||
        memcmp(request->method, "GET", 3) || request->query_string_len)
        return;
    (void)cow_api->served_note(&cow_api->board->served, request->uri, request->uri_len,
                               request->host, request->host_len, request->cookie,
                               request->cookie_len, request->authorization_len > 0);
}

/* The same moment, of a worker that heals. */
static void heal(struct wsgi_request *request) {
    struct cow_heal done;
    (void)request;
    if (cow_api->heal_turn(0, &done) && done.refused)
        uwsgi_log("cow: merge=self: nothing is given back: %s\n",
                  done.refused == COW_UNMOVED_THREADS
                      ? "another thread runs in this worker"
                      : "the system does not tell which pages were copied");
}

static void post_fork(void) {
    if (uwsgi.mywid == 0) return;
    cow_worker_forget_master();
    cow_worker_keep_status();
    /* SIGINT is Python's until uWSGI sets its own handlers: a KeyboardInterrupt here
     * would end our start instead of the worker. It waits. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)cow_bridge_begin(); /* it has said why; the worker serves on, unwatched */
    if (cow_bridge_notes())
        uwsgi_string_new_list(&uwsgi.after_request_hooks, "cow")->custom_ptr = note;
    if (cow_bridge_heals())
        uwsgi_string_new_list(&uwsgi.after_request_hooks, "cow-heal")->custom_ptr =
            heal;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The board's word, until a worker serves: a stray write of the application's there
 * ended a server. Workers inherit what the master knew when it forked them. */
static int serves;

int cow_start_refused(void) { return !serves && cow_api->board->refused; }

static void hijack_worker(void) {
    if (uwsgi.mywid == 0) return;
    if (cow_bridge_exits_fast()) cow_worker_catch_signals();
    /* A callback raised, or the limit is below what a fresh worker needs: at the start,
     * the master stops the server. A worker that was being forked meanwhile has missed
     * its signal. */
    if (cow_bridge_after_fork() || cow_bridge_ready() || cow_start_refused())
        exit(UWSGI_FAILED_APP_CODE);
}

/* uWSGI tells its workers once to end; one that was being forked then has missed it,
 * and the stop would last until worker-reload-mercy, 60 s. */
static void tell_again(void) {
    for (int i = 1; i <= uwsgi.numproc && i <= COW_SLOTS; i++)
        if (uwsgi.workers[i].pid > 0 &&
            cow_api->board->slot[i - 1].life.state == COW_READY &&
            uwsgi_now() > uwsgi.workers[i].cursed_at + 1)
            kill(uwsgi.workers[i].pid, SIGINT);
}

static int all_are_ready(void) {
    for (int i = 1; i <= uwsgi.numproc && i <= COW_SLOTS; i++)
        if (uwsgi.workers[i].pid > 0 &&
            cow_api->board->slot[i - 1].life.state != COW_READY)
            return 0;
    return 1;
}

/* What came in the trial. A worker that is told to reload before it has its handlers
 * misses that, and uWSGI waits for it until worker-reload-mercy, 60 s. */
static void give_kept_signal(void) {
    static int cycles, given;
    int number = cow_trial_kept_signal();
    if (given || number <= 0) return;
    if (number == SIGHUP && !all_are_ready() && cycles++ < 10) return;
    given = 1;
    raise(number);
}

static void master_cycle(void) {
    static int wakes;
    if (!cow_api) return;
    if (!wakes++) cow_worker_wake_master();
    give_kept_signal();
    for (int i = 1; i <= uwsgi.numproc && i <= COW_SLOTS; i++) {
        if (uwsgi.workers[i].cheaped && uwsgi.workers[i].pid == 0)
            (void)cow_api->slot_free(cow_api->board, (uint32_t)i);
    }
    if (uwsgi.status.brutally_destroying && cow_bridge_exits_fast()) tell_again();
    cow_turn();
    serves |= cow_api->board->started == 1 && !cow_api->board->refused;
    if (cow_start_refused() && !uwsgi_instance_is_dying) {
        uwsgi.status.dying_for_need_app = 1; /* the exit code of a failed start */
        kill_them_all(0);
    }
}

struct uwsgi_plugin cow_plugin = {
    .name = "cow",
    .on_load = cow_identity_check,
    .options = cow_options,
    .post_init = cow_metrics_register,
    .preinit_apps = preinit_apps,
    .postinit_apps = postinit_apps,
    .post_fork = post_fork,
    .hijack_worker = hijack_worker,
    .master_cycle = master_cycle,
    .atexit = cow_worker_atexit,
};
