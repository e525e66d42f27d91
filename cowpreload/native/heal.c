/*
 * Give back, in a worker, what was copied and is as it was: see moved.h.
 *
 * A page whose content equals the file's can be dropped at any moment: the next who
 * looks at it finds the same bytes. What must not happen is a write between the
 * comparison and the drop. So all signals are blocked, and no thread may run but the
 * watching one, which has no memory on this heap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cow.h"
#include "maps.h"
#include "moved.h"
#include "prim.h"

enum { PAGE = 4096, ENTRIES = 512 };

/* Bits of /proc/self/pagemap. */
#define PRESENT ((uint64_t)1 << 63)
#define OF_FILE ((uint64_t)1 << 61)

struct healing {
    struct cow_heal *out;
    int page_map;
};

static int drop(uintptr_t start, uintptr_t end, struct healing *healing) {
    if (start == end) return 0;
    if (madvise((void *)start, end - start, MADV_DONTNEED)) return errno;
    healing->out->healed += (end - start) / PAGE;
    return 0;
}

/* A part of a mapping whose entries fit: drop what is equal, run by run. */
static int heal_part(uintptr_t start, size_t pages, const char *mirror,
                     struct healing *healing) {
    uint64_t entries[ENTRIES];
    uintptr_t begun = start, end = start;
    size_t size = pages * sizeof *entries;
    off_t at = (off_t)(start / PAGE * sizeof *entries);
    if (pread(healing->page_map, entries, size, at) != (ssize_t)size) return EIO;
    for (size_t i = 0; i < pages; i++) {
        uintptr_t page = start + i * PAGE;
        if (!(entries[i] & PRESENT) || entries[i] & OF_FILE) continue;
        healing->out->copied++;
        if (memcmp((const void *)page, mirror + i * PAGE, PAGE) != 0) continue;
        if (page != end) {
            int error = drop(begun, end, healing);
            if (error) return error;
            begun = page;
        }
        end = page + PAGE;
    }
    return drop(begun, end, healing);
}

static int heal_mapping(const struct cow_mapping *mapping, void *context) {
    struct healing *healing = context;
    if (!cow_home_has(mapping) || memcmp(mapping->access, "rw-p", 4) != 0) return 0;
    uint64_t size = mapping->end - mapping->start;
    if (mapping->offset > cow_home.size || size > cow_home.size - mapping->offset)
        return 0;
    for (uint64_t done = 0; done < size;) {
        uint64_t pages = (size - done) / PAGE;
        if (pages > ENTRIES) pages = ENTRIES;
        int error = heal_part(mapping->start + done, (size_t)pages,
                              cow_home.mirror + mapping->offset + done, healing);
        if (error) {
            healing->out->refused = COW_UNMOVED_SYSTEM;
            return 1;
        }
        done += pages * PAGE;
    }
    return 0;
}

/* The kernel writes for these without a thread of ours. */
static int is_written_by_the_kernel(const struct cow_mapping *mapping, void *context) {
    int *found = context;
    *found = cow_mapping_named(mapping, "/[aio]") ||
             cow_mapping_named(mapping, "anon_inode:[io_uring]") ||
             cow_mapping_named(mapping, "/dev/infiniband");
    return *found;
}

/* Whether no thread runs but this one and the watching one. */
static int is_alone(void) {
    return cow_prim_threads() == 1u + (uint32_t)cow_watch_runs();
}

static uint32_t heal(struct cow_heal *out) {
    struct healing healing = {.out = out};
    int others = 0;
    if (!cow_home.inode) return COW_UNMOVED_NOTHING;
    if (!is_alone()) return COW_UNMOVED_THREADS;
    if (cow_maps_read(is_written_by_the_kernel, &others) != COW_OK)
        return COW_UNMOVED_SYSTEM;
    if (others) return COW_UNMOVED_THREADS;
    healing.page_map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (healing.page_map < 0) return COW_UNMOVED_SYSTEM;
    int code = cow_maps_read(heal_mapping, &healing);
    cow_prim_close(healing.page_map);
    (void)madvise((void *)cow_home.mirror, cow_home.size, MADV_DONTNEED);
    return code == COW_OK ? out->refused : COW_UNMOVED_SYSTEM;
}

void cow_heal(struct cow_heal *out) {
    sigset_t all, before;
    /* On the stack: the caller's may be on the heap, and would be written to between a
     * comparison and a drop. */
    struct cow_heal done = {0};
    uint64_t began = cow_prim_now_us();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    done.refused = heal(&done);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    done.us = (uint32_t)(cow_prim_now_us() - began);
    *out = done;
}

/* What the moved heap held before a heal, to be compared with what it holds after. */
struct copy {
    char *at;
    uint64_t size, used, wrong;
    int compares;
};

static int copy_mapping(const struct cow_mapping *mapping, void *context) {
    struct copy *copy = context;
    size_t size = mapping->end - mapping->start;
    if (!cow_home_has(mapping) || mapping->access[1] != 'w' ||
        copy->used + size > copy->size)
        return 0;
    for (size_t done = 0; copy->compares && done < size; done += PAGE)
        copy->wrong += memcmp((const void *)(mapping->start + done),
                              copy->at + copy->used + done, PAGE) != 0;
    if (!copy->compares)
        memcpy(copy->at + copy->used, (const void *)mapping->start, size);
    copy->used += size;
    return 0;
}

int cow_heal_check(struct cow_heal *out, uint64_t *wrong) {
    sigset_t all, before;
    struct copy copy = {.size = cow_home.size};
    struct cow_heal done = {0};
    int access = PROT_READ | PROT_WRITE;
    void *at = mmap(NULL, copy.size ? copy.size : PAGE, access,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return COW_EMEMORY;
    copy.at = at;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = COW_OK;
    /* A thread that is about to end writes, too. */
    int alone = is_alone();
    if (alone) code = cow_maps_read(copy_mapping, &copy);
    done.refused = heal(&done);
    copy.compares = 1;
    copy.used = 0;
    if (alone && code == COW_OK) code = cow_maps_read(copy_mapping, &copy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out = done;
    *wrong = copy.wrong;
    (void)munmap(at, copy.size ? copy.size : PAGE);
    return code;
}

/* The least that is worth the looks at all pages, in faults; most are no copies. */
enum { LEAST = 1024, LEAST_IDLE = 64 };
/* Healing may take so much of a worker's time: below 3 %. */
enum { SHARE = 34 };
/* How long a worker that is over its limit may take until it is between two requests
 * and heals, before it is recycled all the same; and for how long what it had when it
 * was healed speaks for it: it copies again what it reads, and a new one would, too. */
enum { PATIENCE_MS = 5000, SPEAKS_MS = 10000 };

int cow_heal_pays(uint64_t faults, uint64_t passed_us, uint64_t took_us, int idle) {
    return faults >= (idle ? LEAST_IDLE : LEAST) && passed_us >= took_us * SHARE;
}

static struct {
    pid_t pid;
    uint32_t wanted; /* by the watching thread */
    uint32_t given_up;
    /* When it was last healed because it was wanted; heals that nobody asked for tell
     * nothing, and must not make this speak for longer: a leak would go on. */
    uint64_t private_bytes, spoke_ms;
    uint64_t ended_us, took_us, faults;
} last;

int cow_heal_turn(int idle, struct cow_heal *out) {
    memset(out, 0, sizeof *out);
    if (!cow_home.inode || last.given_up) return 0;
    uint64_t faults = cow_prim_faults();
    if (last.pid != getpid()) {
        /* A worker, fresh from the fork; its children are never here. */
        memset(&last, 0, sizeof last);
        last.pid = getpid();
    }
    int wanted = (int)__atomic_exchange_n(&last.wanted, 0, __ATOMIC_ACQ_REL);
    uint64_t now = cow_prim_now_us();
    if (!wanted &&
        !cow_heal_pays(faults - last.faults, now - last.ended_us, last.took_us, idle))
        return 0;
    cow_heal(out);
    last.faults = cow_prim_faults();
    last.took_us = out->us;
    last.ended_us = cow_prim_now_us();
    STORE(last.given_up, out->refused != COW_MOVED);
    struct cow_reading reading;
    if (wanted && cow_reading_take(0, &reading) == COW_OK) {
        STORE(last.private_bytes, reading.private_bytes);
        STORE(last.spoke_ms, cow_now_ms());
    }
    return 1;
}

int cow_heal_first(const struct cow_verdict *verdict, uint64_t now_ms) {
    if (!cow_home.inode || last.pid != getpid() || LOAD(last.given_up)) return 0;
    uint64_t spoke_ms = LOAD(last.spoke_ms), had = LOAD(last.private_bytes);
    if (had && now_ms < spoke_ms + SPEAKS_MS) return had <= verdict->limit;
    uint64_t since_ms =
        spoke_ms > verdict->over_since_ms ? spoke_ms : verdict->over_since_ms;
    if (now_ms > since_ms + SPEAKS_MS + PATIENCE_MS) return 0;
    STORE(last.wanted, 1);
    return 1;
}
