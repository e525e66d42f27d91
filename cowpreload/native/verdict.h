/*
 * From what the kernel says of a process's memory to what becomes of it: readings,
 * what is cheap to know between two of them, the verdict. Part of cow.h's contract.
 */
#ifndef COW_VERDICT_H
#define COW_VERDICT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
    uint64_t shared_pss; /* of it, its part of what is shared */
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
    COW_ACTIONS = 4,   /* how many there are */
};

enum cow_reason {
    COW_REASON_NONE = 0,
    COW_REASON_PRIVATE = 1,  /* soft: max-private */
    COW_REASON_GROWTH = 2,   /* soft: max-growth */
    COW_REASON_HARD = 3,     /* max-private-hard */
    COW_REASON_UNHEEDED = 4, /* it was told to go, and did not */
    COW_REASON_RENEWED = 5,  /* no limit: the master has a warmer heap to fork */
    COW_REASON_BUDGET = 6,   /* soft: the whole server's, budget.h */
    COW_REASON_ROOM = 7,     /* little is left to all: `limit` bytes; pressure.h */
    COW_REASON_STALLED = 8,  /* processes wait for memory, `limit` per mille of time */
    COW_REASONS = 9,         /* how many there are */
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
    uint32_t pressure;      /* whether it counts that memory is short for all */
};

/* Each of them doubles a time that is capped before. */
#define COW_EARLY_MOST 32u

struct cow_history {
    uint64_t ready_at_ms;   /* 0: not ready yet, no limit acts */
    uint64_t ready_private; /* the reading taken then */
    uint64_t jitter_ms;     /* this worker's own delay */
    uint64_t over_since_ms; /* first reading of the present strikes */
    uint32_t strikes;       /* readings in a row over a soft limit so far */
    uint32_t early;         /* generations in a row recycled as soon as allowed, */
                            /* at most COW_EARLY_MOST */
    uint64_t asked_at_ms;   /* when it was told to go; 0: it was not */
    uint64_t asked_limit;   /* the limit that it had passed then */
    uint32_t asked_again;   /* whether it was told a second time */
};

struct cow_verdict {
    uint32_t action; /* enum cow_action */
    uint32_t reason; /* enum cow_reason: the limit that is passed, if any */
    uint64_t limit;  /* bytes: the limit that is passed, as a private size */
    uint64_t total;  /* bytes: of the server, where the limit is its budget */
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

/* What `early` becomes for the next generation of one that left as soon as allowed. */
uint32_t cow_next_early(const struct cow_history *history);

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

#endif
