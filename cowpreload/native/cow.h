/*
 * The native core of cowpreload, its whole contract, with verdict.h and board.h.
 *
 * Takes    numbers, a board, a slot. Gives 0 or a COW_E* code, and results
 *          through pointers that are never NULL.
 * Must not call into Python, allocate on a heap, or take a lock: everything here may
 *          run in a freshly forked worker or beside a request that hangs.
 *
 * Sizes are bytes, times are milliseconds of CLOCK_MONOTONIC (one clock for all
 * processes of a machine). A limit of 0 is a limit that is not set.
 * Files: prim.c and prim_memory.c have the system calls, reading.c and traffic.c parse
 * /proc, verdict.c is the policy of a worker, budget.c the server's, pressure.c the one
 * when memory is short, board.c the shared memory, served.c the pages that are noted in
 * it, look.c what memory can be between two readings, pace.c when one is taken, group.c
 * and squeeze.c what is left to all, watch.c the thread that joins them. Apart are what
 * knows Python's objects (immortal.h, offsets.h) and what a report needs (still.h,
 * words.h).
 */
#ifndef COW_H
#define COW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "board.h"
#include "verdict.h"

/* What every function that can fail returns; cow_strerror() names them. */
enum cow_code {
    COW_OK = 0,
    COW_ESYSTEM = 1,     /* a system call failed; errno says which way */
    COW_EUNREADABLE = 2, /* neither smaps_rollup nor smaps can be read */
    COW_EPARSE = 3,      /* the kernel's text lacks a field we need */
    COW_ESLOT = 4,       /* the slot is not on the board */
    COW_EREVISION = 5,   /* the board was made by another version */
    COW_ERUNNING = 6,    /* this process has a watching thread already */
    COW_ESTOPPED = 7,    /* this process has no watching thread */
    COW_ETHREAD = 8,     /* the system gave no thread */
    COW_EMEMORY = 9,     /* no memory for the work itself */
    COW_EVERSION = 10,   /* not with this interpreter */
};

const char *cow_strerror(int code);

/* ---- watch: the thread that looks while a request runs ------------------ */

struct cow_host {
    /* Called on the watching thread when the worker may leave: tell the host's
     * loop to finish the requests in flight. NULL: send `leave_signal` to the
     * process's main thread. */
    void (*ask_to_leave)(void);
    int leave_signal;
    /* Called on the watching thread after cow_watch_request_exit(). */
    void (*exit_now)(void);
    /* The host's own counter of requests, or NULL if it posts to the slot. */
    const uint64_t *requests;
    /* Called on the watching thread: whether a request is being served. NULL if the
     * host posts to the slot, or does not know. */
    int (*busy)(void);
};

/* Start the one watching thread of this process, for `slot` of `board`.
 * The thread blocks all signals, has 64 KiB of stack, no heap and no descriptor. */
int cow_watch_start(struct cow_board *board, uint32_t slot,
                    const struct cow_limits *limits, const struct cow_host *host);
/* Whether this process has one. */
int cow_watch_runs(void);
/* Stop and join it. Waits for a reading under way. */
int cow_watch_stop(void);
/* Take the reading that growth is counted from, become READY, give back the
 * slot's ticket. *out is that reading, *exceeds whether a limit is below it.
 * Called by the main thread of the worker, once. */
int cow_watch_ready(uint64_t jitter_ms, struct cow_reading *out, int *exceeds);
/* The worker is at its exit handlers, whoever sent it there. */
void cow_watch_leaving(void);
/* Make the watching thread call host->exit_now; COW_ESTOPPED if this process has none.
 * Async-signal-safe. */
int cow_watch_request_exit(void);

uint64_t cow_now_ms(void);
/* malloc_trim(0), where there is one: give free pages of the C heap back. */
int cow_trim(void);

/* ---- deadline: the last buffers of a process that leaves ----------------- */

#define COW_DEADLINE_MS 5000

/* From now on, a thread ends the process with `code` in COW_DEADLINE_MS, and says so.
 * Called once in a process; without a thread nothing bounds what follows. */
int cow_deadline_begin(int code);
/* In a child: end when its parent does, by SIGKILL; COW_ESYSTEM if that has gone. */
int cow_end_with(pid_t parent);
/* What had to be bounded is over. */
void cow_deadline_end(void);
/* fflush(NULL): what C's stdio has buffered. Waits for pipes, and for every lock. */
void cow_flush_stdio(void);

/* ---- what the uWSGI plugin gets, as one address ------------------------ */

struct cow_walk; /* immortal.h */
struct cow_heal; /* moved.h */

struct cow_api {
    uint32_t revision; /* COW_REVISION of the extension: compare before use */
    uint32_t size;     /* sizeof(struct cow_api) */
    struct cow_board *board;
    int (*slot_free)(struct cow_board *, uint32_t);
    int (*request_exit)(void);
    int (*immortal_walk)(void *, void *, int, struct cow_walk *);
    const char *(*strerror)(int);
    int (*deadline_begin)(int);
    void (*deadline_end)(void);
    void (*flush_stdio)(void);
    int (*end_with)(pid_t);
    int (*served_note)(struct cow_served *, const char *, size_t, const char *, size_t,
                       const char *, size_t, int);
    int (*heal_turn)(int, struct cow_heal *);
};

void cow_api_fill(struct cow_board *board, struct cow_api *api);

#endif
