/*
 * The uWSGI plugin, its whole inside.
 *
 * The plugin is a bridge: uWSGI's phases on one side, cowpreload.hosts.uwsgi on the
 * other. No policy here: limits, readings and verdicts are the native core's, which
 * runs in the worker without the plugin.
 *
 * Files: plugin.c the hooks, identity.c whether this is the binary we were built
 * for, options.c the ini, bridge.c what is called in Python, stage.c the stages before
 * the first fork, trial.c the child of a trial, turn.c the master's turns, serving.c
 * what they ask of it, metrics.c what uWSGI shows of workers, system_exit.c what an
 * application's SystemExit becomes, worker.c what ends a worker.
 */
#ifndef COW_PLUGIN_H
#define COW_PLUGIN_H

#include <uwsgi.h>

#include "cow.h"
#include "immortal.h"
#include "moved.h"

extern struct uwsgi_server uwsgi;

/* options.c: the settings as Python wants them, lines of `name<TAB>value`. */
extern struct uwsgi_option cow_options[];
char *cow_options_text(void);
int cow_options_event_log(void); /* a descriptor, or -1: Python opens it */

/* identity.c: ends the process with the command that mends it. */
void cow_identity_check(void);

/* bridge.c and stage.c: 0 or -1 (Python has printed why). Each takes and gives back the
 * GIL. */
struct cow_api *cow_bridge_configure(void);
int cow_bridge_stage(void);
int cow_bridge_begin(void);
int cow_bridge_after_fork(void);
int cow_bridge_ready(void);
/* Whether workers leave fast, as `cow-exit` says. */
int cow_bridge_exits_fast(void);
/* Whether what is served is to be noted, for a warm up. */
int cow_bridge_notes(void);
int cow_bridge_heals(void);
/* Whether the heap has become immortal: Python's finalization must not see it. */
int cow_bridge_immortal(void);
/* Give the collector back what was frozen, for a whole finalization. */
void cow_bridge_unfreeze(void);
/* Run the exit handlers of every interpreter; *taken is set once we have the GIL.
 * Gives -1 without running any if another thread has begun. */
int cow_bridge_exit_handlers(volatile int *taken);
/* After them, on the same thread: write what Python and C have buffered, or end the
 * process with `code` at the deadline. */
void cow_bridge_flush(int code);

/* Whether the calling thread is the one that runs them. Waits for ever if another one
 * does: that one ends the process. With the GIL. */
int cow_bridge_handlers_are_mine(void);

/* The code of the SystemExit that was pending when they began, or -1. */
int cow_bridge_pending_code(void);

/* plugin.c: whether a fresh worker is above its limit at the start, which ends it. */
int cow_start_refused(void);

/* turn.c: at each of the master's cycles. */
void cow_turn(void);

/* trial.c: whether this process is the child of a trial, not the master. */
int cow_trial_in_child(void);
/* What was sent while pages were requested that nobody has listed; 0: nothing. */
int cow_trial_kept_signal(void);

/* metrics.c: where metrics are enabled; before the board is there. */
void cow_metrics_register(void);

/* system_exit.c, with the GIL. In each interpreter, before the fork: */
void cow_system_exit_hook(void);
/* Clear what Python has raised and nobody handled; a SystemExit's code, or -1. */
int cow_system_exit_pending(void);

/* worker.c */
/* Whether this process ends without finalization; not the master, nor a child that the
 * application forked. */
int cow_worker_leaves_fast(void);
int cow_worker_busy(void);           /* whether a request is being served */
void cow_worker_ask_to_leave(void);  /* after the requests in flight */
void cow_worker_exit_now(void);      /* although requests are in flight */
void cow_worker_wake_master(void);   /* when a worker dies; in the master */
void cow_worker_forget_master(void); /* in the worker */
void cow_worker_keep_status(void);
void cow_worker_catch_signals(void);
void cow_worker_atexit(void);

extern struct cow_api *cow_api;

#endif
