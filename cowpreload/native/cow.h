/*
 * The native core of cowpreload, its whole contract.
 *
 * Takes    numbers, a board, a slot. Gives 0 or a COW_E* code, and results
 *          through pointers that are never NULL.
 * Must not call into Python, allocate on a heap, or take a lock: everything here may
 *          run in a freshly forked worker or beside a request that hangs.
 *
 * Sizes are bytes, times are milliseconds of CLOCK_MONOTONIC (one clock for all
 * processes of a machine). A limit of 0 is a limit that is not set.
 * Files: prim.c has the system calls, reading.c and traffic.c parse /proc, verdict.c is
 * the policy, board.c the shared memory, look.c what memory can be between two
 * readings, watch.c the thread that joins them. Apart are what knows Python's objects
 * (immortal.h, offsets.h) and what a report needs (still.h, words.h).
 */
#ifndef COW_H
#define COW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* ---- reading: one sample of a process's memory ------------------------- */

enum cow_source { COW_SOURCE_NONE = 0, COW_SOURCE_ROLLUP = 1, COW_SOURCE_SMAPS = 2 };

struct cow_reading {
    uint64_t private_bytes; /* Private_Dirty + SwapPss: what limits judge */
    /* Private_Clean: unchanged pages of files, and memory given back by MADV_FREE,
     * which the system takes when it needs them. */
    uint64_t evictable_bytes;
    uint64_t silent_bytes; /* of these, what becomes private without a fault */
    uint64_t shared_bytes; /* Shared_Clean + Shared_Dirty */
    uint64_t pss;
    uint64_t rss;
    uint64_t at_ms;  /* when it was taken */
    uint32_t source; /* enum cow_source */
    uint32_t reserved;
};

/* Sum the fields of smaps_rollup's (or smaps') text into *out, from zero.
 * Gives COW_EPARSE if it never shows Private_Dirty. Pure. */
int cow_reading_parse(const char *text, size_t size, struct cow_reading *out);

/* Read process `pid` (0: this one): smaps_rollup, else smaps.
 * About 20 ms for each GiB of 4 KiB pages. */
int cow_reading_take(pid_t pid, struct cow_reading *out);

/* ---- traffic: what is cheap to know between two readings ---------------- */

struct cow_traffic {
    uint64_t faults;   /* of this process, all threads, since it began */
    uint64_t resident; /* bytes */
    uint64_t files;    /* of these, of files and of shared memory */
    /* Huge pages that the system gave, to any process, since it began: to a fault,
     * and in the place of small ones, to which no fault belongs. */
    uint64_t huge_faults;
    uint64_t huge_collapses;
};

/* What one fault can bring, bytes. */
struct cow_pages {
    uint64_t page;
    uint64_t most; /* with multi-size huge pages; as `page` where there are none */
    uint64_t huge; /* 0 where there are none */
};

/* Resident bytes, and those of files and shared memory, from the text of statm. Pure.
 */
int cow_statm_parse(const char *text, size_t size, uint64_t page_size,
                    uint64_t *resident, uint64_t *files);

/* The same of this process, 0.01 ms whatever its size. */
int cow_resident(uint64_t *resident, uint64_t *files);
int cow_traffic_take(struct cow_traffic *out); /* 0.03 ms */
void cow_pages_take(struct cow_pages *out);    /* 0.05 ms */

/* ---- verdict: keep, recycle, kill -------------------------------------- */

enum cow_action {
    COW_KEEP = 0,
    COW_RECYCLE = 1,
    COW_KILL = 2,
    COW_ASK_AGAIN = 3, /* it was recycled, and is still there */
};

enum cow_reason {
    COW_REASON_NONE = 0,
    COW_REASON_PRIVATE = 1,  /* soft: max-private */
    COW_REASON_GROWTH = 2,   /* soft: max-growth */
    COW_REASON_HARD = 3,     /* max-private-hard */
    COW_REASON_UNHEEDED = 4, /* it was told to go, and did not */
};

struct cow_limits {
    uint64_t max_private;      /* bytes */
    uint64_t max_private_hard; /* bytes */
    uint64_t max_growth;       /* bytes over the reading taken when ready */
    uint64_t min_lifetime_ms;
    uint64_t interval_ms;   /* between two readings */
    uint64_t graceful_ms;   /* what the host gives a worker to leave in; 0: no end */
    uint32_t strikes;       /* readings in a row over a soft limit, >= 1 */
    uint32_t max_recycling; /* workers that may leave at once, >= 1 */
};

struct cow_history {
    uint64_t ready_at_ms;   /* 0: not ready yet, no limit acts */
    uint64_t ready_private; /* the reading taken then */
    uint64_t jitter_ms;     /* this worker's own delay */
    uint64_t over_since_ms; /* first reading of the present strikes */
    uint32_t strikes;       /* readings in a row over a soft limit so far */
    uint32_t early;         /* generations in a row recycled as soon as allowed */
    uint64_t asked_at_ms;   /* when it was told to go; 0: it was not */
    uint64_t asked_limit;   /* the limit that it had passed then */
    uint32_t asked_again;   /* whether it was told a second time */
};

struct cow_verdict {
    uint32_t action; /* enum cow_action */
    uint32_t reason; /* enum cow_reason: the limit that is passed, if any */
    uint64_t limit;  /* bytes: the limit that is passed, as a private size */
    uint64_t over_since_ms;
    uint32_t strikes; /* the history's next strikes and over_since_ms */
    uint32_t early;   /* what the slot's next generation starts with */
};

/* The policy, whole. Pure: the same arguments give the same verdict. */
void cow_judge(const struct cow_limits *limits, const struct cow_history *history,
               const struct cow_reading *reading, uint64_t now_ms,
               struct cow_verdict *out);

/* Whether a limit is so low that a fresh worker is over it. Pure. */
int cow_exceeds(const struct cow_limits *limits, uint64_t ready_private);

/* How long a worker is spared, with the back-off that `early` earns. Pure. */
uint64_t cow_spared_ms(const struct cow_limits *limits,
                       const struct cow_history *history);

/* The most that private memory can be now, from the last reading and the traffic since
 * then. A page becomes private by a fault, which brings a page, or a huge page if the
 * system gave one to anybody; by a collapse into a huge page; silently, where it was
 * given back by MADV_FREE, or clean shared memory; or with pages of files that were
 * mapped since they were least (`least_files`). The resident set is no help: what it
 * gives back of shared pages pays for private ones that come. Pure. */
uint64_t cow_private_bound(const struct cow_reading *last,
                           const struct cow_pages *pages,
                           const struct cow_traffic *then,
                           const struct cow_traffic *now, uint64_t least_files);

/* Whether that bound calls for a reading: a limit can have been passed, or
 * strikes are being counted. Not while a worker that has its strikes is spared: eight
 * such workers cost 6.7 % of a core. And whether the hard limit alone does. Pure. */
int cow_reading_due(const struct cow_limits *limits, const struct cow_history *history,
                    uint64_t bound, uint64_t now_ms);
int cow_hard_due(const struct cow_limits *limits, const struct cow_history *history,
                 uint64_t bound);

/* How long the hard limit can be left alone: a part of the interval if memory could
 * pass it meanwhile, at `speed` bytes a millisecond or as fast as machines are. Pure.
 */
uint64_t cow_nap_ms(const struct cow_limits *limits, const struct cow_history *history,
                    uint64_t private_bytes, uint64_t speed);

/* ---- board: shared memory, one slot a worker --------------------------- */

#define COW_MAGIC 0x315944414f425743ull /* "CWBOADY1", little endian */
#define COW_REVISION 5u /* change with any struct below, and cow_walk of immortal.h */
#define COW_SLOTS 1024  /* a board's size */
#define COW_TICKETS 128 /* the most that may leave at once */

enum cow_state {
    COW_FREE = 0,    /* no worker */
    COW_BOOTING = 1, /* forked, not serving yet */
    COW_READY = 2,
    COW_LEAVING = 3, /* finishing its requests, or at its exit handlers */
};

/* A slot is three protocols side by side, each with its own writer and its own cache
 * lines, so that none slows another down. */

/* The worker's life: its host writes it, and the watching thread when it asks it to
 * leave. */
struct cow_life {
    uint32_t state;      /* enum cow_state */
    int32_t pid;         /* 0 while FREE */
    uint64_t generation; /* how often the slot was filled, from 1 */
    uint64_t requests;   /* of this generation */
    uint64_t booted_at_ms;
    uint64_t ready_at_ms;
};

/* What the verdict counts from one reading to the next: the watching thread's. */
struct cow_judged {
    uint64_t ready_private; /* the reading taken when ready */
    uint32_t strikes;       /* as in cow_history */
    uint32_t early;         /* as in cow_history; kept for the next generation */
    uint32_t asked_again;   /* as in cow_history: the host's own loop should look */
};

/* The last reading, for whoever looks at the board. No verdict is made from it. */
struct cow_memory {
    uint64_t private_bytes;
    uint64_t evictable_bytes;
    uint64_t shared_bytes;
    uint64_t pss;
    uint64_t rss;
    uint64_t read_at_ms; /* when private, shared and pss were read */
    uint64_t seen_at_ms; /* when the watching thread last looked */
    uint32_t source;     /* enum cow_source */
    uint32_t reserved;   /* one line, full */
};

/* The handshake for a still copy: a report and the watching thread take turns at
 * `state`; what the others say belongs to the state that was published last. */
struct cow_still {
    uint32_t state; /* enum cow_still_state of still.h */
    int32_t pid;    /* the copy, while HELD */
    uint32_t us;    /* how long the system took to make it; 0: not known yet */
    uint32_t error; /* an errno, when FAILED */
    uint32_t beats; /* the report counts it up while it lives */
};

#define COW_LINE __attribute__((aligned(64)))

struct cow_slot { /* aligned so that no two slots share a line or its neighbour */
    struct cow_life life COW_LINE;
    struct cow_judged judged;
    struct cow_memory memory COW_LINE;
    struct cow_still still COW_LINE;
} __attribute__((aligned(128)));

/* Why a worker was told to go; outlives the slot's generation until the host's
 * master has logged it. */
struct cow_end {
    uint64_t sequence; /* published last; 0: none yet */
    uint64_t generation;
    uint64_t private_bytes;
    uint64_t limit;
    uint64_t age_ms;
    uint64_t leaving_ms; /* since it was told to go; 0: just now, or not at all */
    int32_t pid;
    uint16_t action; /* enum cow_action */
    uint16_t reason; /* enum cow_reason */
    uint64_t logged; /* the last sequence that the master logged */
} __attribute__((aligned(64)));

/* Where a report finds its way in this server's Python; see offsets.h. */
struct cow_python {
    uint32_t version;   /* PY_VERSION_HEX; 0: not CPython, or not known */
    uint32_t build;     /* enum cow_build: what moves the fields of objects */
    uint64_t type_type; /* address of PyType_Type */
    uint64_t collector; /* address of the main interpreter's collector state */
};

struct cow_board {
    uint64_t magic;
    uint32_t revision;
    uint32_t slots;
    int32_t master_pid;
    uint32_t started; /* a worker has become ready within its limits */
    uint32_t refused; /* slot whose fresh worker exceeds the soft limit, or 0 */
    uint32_t warned;  /* one exceeded it later, and that was said */
    uint32_t highest; /* the highest slot that was ever filled */
    /* Who holds the right to leave, in one word so that one exchange takes it:
     * slot (11 bits), pid (22 bits), the second it was taken (31 bits). */
    uint64_t tickets[COW_TICKETS];
    struct cow_python python;
    struct cow_slot slot[COW_SLOTS]; /* slot n stands at n - 1 */
    struct cow_end end[COW_SLOTS];
};

/* A ticket whose holder is dead and not replaced, or that has been held longer
 * than this, may be taken by another worker: a worker that died or hangs while
 * it leaves must not stop all recycling. Nor one that finishes a long request; but
 * while such workers are waited for, half of all are to serve. */
#define COW_TICKET_DEAD_MS 10000u
#define COW_TICKET_DRAIN_MS 10000u
#define COW_TICKET_STUCK_MS 60000u

/* Make a board in anonymous shared memory with mode 0600, mapped here and in
 * every process forked later. *fd stays open so that another process of the
 * same user can open it as /proc/PID/fd/N; nothing is left behind on disk. */
int cow_board_create(struct cow_board **board, int *fd);

/* Map a board of another process; to write only to ask for a still copy. */
int cow_board_open(int fd, int writable, struct cow_board **board);
int cow_board_close(struct cow_board *board);

/* Note that the slot's fresh worker exceeds the soft limit; 1 for the first one, which
 * is to stop the server: gunicorn stumbles over two that do. */
int cow_board_refuse(struct cow_board *board, uint32_t slot);

/* Begin a generation in `slot` (1 ..): BOOTING, counters at zero. */
int cow_slot_boot(struct cow_board *board, uint32_t slot, pid_t pid);
/* The lowest slot that is FREE or whose process is gone, but one that a recycled
 * worker left first: its ticket waits for the replacement. 0 if the board is full. */
uint32_t cow_slot_find(struct cow_board *board);
int cow_slot_free(struct cow_board *board, uint32_t slot);
int cow_slot_get(struct cow_board *board, uint32_t slot, struct cow_slot **out);

/* Take one of `limits->max_recycling` tickets. 1: taken (or held already). */
int cow_ticket_take(struct cow_board *board, uint32_t slot, pid_t pid,
                    const struct cow_limits *limits, uint64_t now_ms);
/* Give back every ticket of the slot: its replacement is ready. */
void cow_ticket_release(struct cow_board *board, uint32_t slot);

/* Publish why the slot's worker goes. */
void cow_end_post(struct cow_board *board, uint32_t slot,
                  const struct cow_verdict *verdict, const struct cow_reading *reading,
                  uint64_t asked_at_ms, uint64_t now_ms);
/* Write the log line of an end not logged yet into `line`; 0 if there is none.
 * Only the master calls it, once for each end. */
size_t cow_end_line(struct cow_board *board, uint32_t slot, char *line, size_t size);

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
};

/* Start the one watching thread of this process, for `slot` of `board`.
 * The thread blocks all signals, has 64 KiB of stack, no heap and no descriptor. */
int cow_watch_start(struct cow_board *board, uint32_t slot,
                    const struct cow_limits *limits, const struct cow_host *host);
/* Stop and join it. Waits for a reading under way. */
int cow_watch_stop(void);
/* Take the reading that growth is counted from, become READY, give back the
 * slot's ticket. *out is that reading, *exceeds whether a limit is below it.
 * Called by the main thread of the worker, once. */
int cow_watch_ready(uint64_t jitter_ms, struct cow_reading *out, int *exceeds);
/* Make the watching thread call host->exit_now; COW_ESTOPPED if this process has none.
 * Async-signal-safe. */
int cow_watch_request_exit(void);

uint64_t cow_now_ms(void);
/* malloc_trim(0): give free pages at the end of the C heap back. */
int cow_trim(void);

/* ---- deadline: the last buffers of a process that leaves ----------------- */

#define COW_DEADLINE_MS 5000

/* From now on, a thread ends the process with `code` in COW_DEADLINE_MS, and says so.
 * Called once in a process; without a thread nothing bounds what follows. */
int cow_deadline_begin(int code);
/* What had to be bounded is over. */
void cow_deadline_end(void);
/* fflush(NULL): what C's stdio has buffered. Waits for pipes, and for every lock. */
void cow_flush_stdio(void);

/* ---- what the uWSGI plugin gets, as one address ------------------------ */

struct cow_walk; /* immortal.h */

struct cow_api {
    uint32_t revision; /* COW_REVISION of the extension: compare before use */
    uint32_t size;     /* sizeof(struct cow_api) */
    struct cow_board *board;
    size_t (*end_line)(struct cow_board *, uint32_t, char *, size_t);
    int (*slot_free)(struct cow_board *, uint32_t);
    int (*request_exit)(void);
    int (*immortal_walk)(void *, void *, int, struct cow_walk *);
    const char *(*strerror)(int);
    int (*deadline_begin)(int);
    void (*deadline_end)(void);
    void (*flush_stdio)(void);
};

void cow_api_fill(struct cow_board *board, struct cow_api *api);

#endif
