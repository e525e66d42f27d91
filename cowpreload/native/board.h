/*
 * The memory that all processes of a server share, and who may leave when. Part of
 * cow.h's contract.
 */
#ifndef COW_BOARD_H
#define COW_BOARD_H

#include "served.h"
#include "verdict.h"

/* ---- board: shared memory, one slot a worker --------------------------- */

#define COW_MAGIC 0x315944414f425743ull /* "CWBOADY1", little endian */
/* Of the board, and of what the plugin and Python call of each other: a plugin of
 * another revision is refused by name. Raise it with any struct here and in served.h,
 * with cow_api, with cow_walk, and with every call or format of plugin/ that changes
 * (tests/unit/test_build.py compares). */
#define COW_REVISION 18u
#define COW_SLOTS 1024  /* a board's size */
#define COW_TICKETS 128 /* the most that may leave at once */
#define COW_WARMINGS 8  /* the start's, and the last ones after it */
#define COW_SOURCES 4   /* where a page that was warmed may come from */

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
    uint64_t served;     /* of those before it */
    uint64_t booted_at_ms;
    uint64_t ready_at_ms;
    uint32_t renew; /* the master's wish: this generation is to be replaced */
    uint32_t busy;  /* a request is being served; hosts that do not know leave it 0 */
};

/* What the verdict counts from one reading to the next: the watching thread's. */
struct cow_judged {
    uint64_t ready_private; /* the reading taken when ready, or the first after it */
    uint32_t strikes;       /* as in cow_history */
    uint32_t early;         /* as in cow_history; kept for the next generation */
    uint32_t asked_again;   /* as in cow_history: the host's own loop should look */
    uint32_t wanted;        /* strikes that recycle it */
    /* What it is judged by, bytes, 0: none. A reload may have changed the settings. */
    uint64_t max_private, max_growth, max_private_hard;
    uint32_t pressed; /* generations in a row that left for want of memory; kept, too */
};

/* What the worker counts in the sum that a budget limits: see budget.h. */
struct cow_part {
    uint64_t shared_once; /* bytes that all processes share, by its last reading */
    uint64_t spared_until_ms;
};

/* The last reading, for whoever looks at the board. A worker is judged by its own; the
 * sum of all is held against the budget. */
struct cow_memory {
    uint64_t private_bytes;
    uint64_t evictable_bytes;
    uint64_t shared_bytes;
    uint64_t pss;
    uint64_t rss;
    uint64_t read_at_ms; /* when private, shared and pss were read */
    uint64_t seen_at_ms; /* when the watching thread last looked */
    uint32_t source;     /* enum cow_source */
    uint32_t idle;       /* looks in a row at which it served nothing */
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
    struct cow_part part;
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
    uint64_t total;  /* as in cow_verdict */
} __attribute__((aligned(64)));

#define COW_GROUP_TEXT 512 /* a longer path is not looked at */

/* The control group whose limit is the tightest, as the master has found it. */
struct cow_group {
    uint32_t version; /* 0: none has a limit, the machine's memory counts */
    char folder[COW_GROUP_TEXT - 4];
};

/* Where a report finds its way in this server's Python; see offsets.h. */
struct cow_python {
    uint32_t version;   /* PY_VERSION_HEX; 0: not CPython, or not known */
    uint32_t build;     /* enum cow_build: what moves the fields of objects */
    uint64_t type_type; /* address of PyType_Type */
    uint64_t collector; /* address of the main interpreter's collector state */
};

/* One warm up of the master, and what it brought: for reports alone. */
struct cow_warming {
    uint64_t at_ms;              /* when it was over; written last, 0: none */
    uint32_t pages[COW_SOURCES]; /* by source: see warmings.py */
    uint32_t requests;
    uint32_t busy_ms;      /* what the master was busy with it */
    uint64_t grew;         /* bytes, the master's */
    uint64_t total_pss;    /* of the whole server before it; 0: it had no worker */
    uint64_t grown_before; /* bytes, of the worker that was replaced first, */
    uint64_t grown_after;  /* and of the one in its place */
    uint32_t verdict;      /* 0: not judged, 1: the gain was confirmed, 2: it was not */
};

/* The last freeze of the master: for reports alone. */
struct cow_frozen {
    uint64_t at_ms;    /* when it was over; written last, 0: none */
    uint64_t bytes;    /* of the master then, which its workers inherit; 0: not read */
    uint64_t objects;  /* that the collector no longer looks at, */
    uint64_t immortal; /* and those that counting writes no more */
    uint32_t ms;       /* what it took: collect, walk, freeze; of all interpreters */
    uint32_t generation; /* the start's is 1 */
};

/* What has happened since the board was made, counted by all processes: for reports
 * alone. One line, apart from what verdicts are made with. */
struct cow_counts {
    uint64_t ends[COW_ACTIONS][COW_REASONS]; /* decisions, as cow_end has them */
    uint64_t readings;                       /* of workers, taken, */
    uint64_t readings_failed;                /* and those that gave nothing */
};

/* The whole server's limit, and what the master counts in the sum; the master's. */
struct cow_whole {
    uint64_t budget;     /* bytes, 0: none; a reload may change it */
    uint64_t read_at_ms; /* 0: the master was not read yet */
    uint64_t private_bytes;
    uint64_t evictable_bytes;
    uint64_t shared_once; /* as in cow_part */
};

/* What a server says of itself to the command line: JSON, see about.py. */
struct cow_about {
    uint32_t length; /* of the text; written last */
    char text[8188];
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
    uint64_t made_at_ms;
    char host[32]; /* the server's name and version, as gunicorn 27.0.1 */
    /* Who holds the right to leave, in one word so that one exchange takes it:
     * slot (11 bits), pid (22 bits), the second it was taken (31 bits). */
    uint64_t tickets[COW_TICKETS];
    struct cow_python python;
    struct cow_group group;
    uint32_t warmings; /* how many there were, the start's among them */
    struct cow_warming warming[COW_WARMINGS];
    struct cow_frozen frozen;
    struct cow_counts counts COW_LINE;
    struct cow_whole whole COW_LINE;
    struct cow_slot slot[COW_SLOTS]; /* slot n stands at n - 1 */
    struct cow_end end[COW_SLOTS];
    struct cow_served served;
    struct cow_about about;
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
 * same user can open it as /proc/PID/fd/N; nothing is left behind on disk. Where the
 * system gives no such file, *fd is -1, errno says why, no other process sees it. */
int cow_board_create(struct cow_board **board, int *fd);

/* Map a board of another process; to write only to ask for a still copy. */
int cow_board_open(int fd, int writable, struct cow_board **board);
int cow_board_close(struct cow_board *board);

/* Note that the slot's fresh worker exceeds the soft limit; 1 for the first one, which
 * is to stop the server: gunicorn stumbles over two that do. */
int cow_board_refuse(struct cow_board *board, uint32_t slot);

/* Count `slot` among those that were ever filled. */
void cow_slot_known(struct cow_board *board, uint32_t slot);
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

/* Processes that share what the master had before it forked them, it among them. */
uint32_t cow_board_processes(const struct cow_board *board);
/* Give back those that nobody can have taken. */
void cow_ticket_drop_forged(struct cow_board *board, uint64_t now_ms);

/* Publish why the slot's worker goes; the master takes it (board.py) and logs it. */
void cow_end_post(struct cow_board *board, uint32_t slot,
                  const struct cow_verdict *verdict, const struct cow_reading *reading,
                  uint64_t asked_at_ms, uint64_t now_ms);

#endif
