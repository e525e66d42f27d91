/*
 * The C heap's holes: chunks that were freed between others, in glibc's main heap and
 * in those of threads, which glibc calls arenas.
 *
 * A worker's threads get the arenas of the master's threads, holes and all. One whose
 * thread has ended goes to the next thread that starts: so as many threads are started
 * as there are such arenas, each fills the one it is given, and all end together. While
 * a thread of the master lives, which the audit names, arenas are left as they are.
 */
#define _GNU_SOURCE 1 /* the very text of pyconfig.h: another is a warning */
#include "c_heap.h"

#ifdef __GLIBC__
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maps.h"
#include "prim.h"

/* A request above LARGE that no hole can serve might become a mapping, and glibc
 * changes its thresholds when that is freed: these are only made for holes that are
 * known. Chunks up to CACHED are kept by the thread's cache when they are freed. */
enum { LARGE = 64 * 1024, CACHED = 1040, ALIGN = 16, OVERHEAD = 8 };

enum { PROBE = 2000 }; /* more than CACHED: what is cached counts as used */

/* What the thread's cache may hold and glibc counts as used, 536 KiB from 2.42 on (16
 * of each size): the most that is filled beyond what it says is free. */
enum { CACHE_MOST = 1024 * 1024 };

/* A new arena's first memory, less than which another allocation cannot add. */
enum { ARENA_LEAST = 128 * 1024 };

/* Threads of a warm-up or of a pool; an arena beyond is left as it is. */
enum { THREADS = 64 };

#define FOREVER_MS ((uint64_t)1 << 40)

struct heap {
    uintptr_t start; /* holes lie from here on */
    uintptr_t top;   /* where the last chunk began, which is fresh memory */
};

struct totals {
    size_t kept;   /* bytes of the main heap's last chunk */
    size_t unused; /* bytes that are free, in all heaps */
    size_t size;   /* bytes of all heaps */
};

#if __GLIBC_PREREQ(2, 33)
#define INFO mallinfo2
typedef size_t counted;
#else
#define INFO mallinfo
typedef unsigned counted; /* its numbers are 32 bits wide */
#endif

static struct totals look_at_all(void) {
    struct INFO info = INFO();
    return (struct totals){(counted)info.keepcost, (counted)info.fordblks,
                           (counted)info.arena};
}

/* Whether malloc() is glibc's own, and not one that was preloaded or linked: glibc
 * counts what it gives. (The address of malloc() does not tell: a program with fixed
 * addresses, as Debian's python3.14 and 3.15, has one of its own in its table. Other
 * allocators bring a mallinfo() with them; malloc_info() is glibc's alone.) */
int cow_c_heap_is_known(void) {
    Dl_info counts, lists;
    if (!dladdr((void *)INFO, &counts) || !dladdr((void *)malloc_info, &lists) ||
        counts.dli_fbase != lists.dli_fbase)
        return 0;
    struct totals before = look_at_all();
    void *probe = malloc(PROBE);
    struct totals after = look_at_all();
    size_t grown = after.size - after.unused - (before.size - before.unused);
    int known = probe && grown == malloc_usable_size(probe) + OVERHEAD;
    free(probe);
    return known;
}

/* What malloc_info() tells: heap after heap, and in each its free chunks by size. */
static const char *describe(void) {
    static char text[32 * 1024];
    FILE *file = fmemopen(text, sizeof text, "w");
    if (!file) return "";
    (void)malloc_info(0, file);
    (void)fclose(file);
    text[sizeof text - 1] = 0;
    return text;
}

/* The largest free chunk of the main heap, the first; 0 if it is below LARGE. */
static size_t largest_hole(void) {
    size_t largest = 0;
    unsigned long from, to;
    const char *text = describe(), *end = strstr(text, "</sizes>");
    for (const char *at = text; end && (at = strchr(at, '<')) && at < end; at++)
        if ((sscanf(at, "<size from=\"%lu\" to=\"%lu\"", &from, &to) == 2 ||
             sscanf(at, "<unsorted from=\"%lu\" to=\"%lu\"", &from, &to) == 2) &&
            to > largest)
            largest = to;
    return largest < LARGE ? 0 : largest;
}

/* Take a hole for a chunk of `size`; 0 if there is none. What comes from fresh memory
 * instead is given back, unless the thread's cache would keep it for the workers. */
static int fill_chunk(const struct heap *heap, size_t size, struct cow_seal *out) {
    void *chunk = malloc(size - OVERHEAD);
    if (!chunk) return 0;
    if ((uintptr_t)chunk < heap->start || (uintptr_t)chunk >= heap->top) {
        if (size > CACHED) free(chunk);
        return 0;
    }
    out->chunks++;
    out->chunk_bytes += malloc_usable_size(chunk) + OVERHEAD;
    return 1;
}

/* From large to small, so that a large hole is not cut to pieces. More than `most`
 * bytes of holes there cannot be: then it was none, and 0 is given. */
static int fill(const struct heap *heap, uint64_t most, struct cow_seal *out) {
    size_t size = LARGE;
    while (size >= 2 * ALIGN) {
        while (fill_chunk(heap, size, out))
            if (out->chunk_bytes > most) return 0;
        size_t step = size / 16 / ALIGN * ALIGN;
        size -= size <= CACHED ? ALIGN : step < size - CACHED ? step : size - CACHED;
    }
    return 1;
}

static int fill_main(uint64_t most, struct cow_seal *out) {
    struct heap heap = {0, (uintptr_t)sbrk(0) - look_at_all().kept};
    for (size_t hole; (hole = largest_hole()) && fill_chunk(&heap, hole, out);)
        if (out->chunk_bytes > most) return 0;
    return fill(&heap, most, out);
}

/* ---- the heaps of threads that have ended ------------------------------- */

struct search {
    uintptr_t address;
    uintptr_t start, end; /* of the writable mapping around it; 0 if there is none */
};

static int is_around(const struct cow_mapping *mapping, void *context) {
    struct search *search = context;
    if (search->address < mapping->start || search->address >= mapping->end ||
        mapping->access[1] != 'w')
        return 0;
    search->start = mapping->start;
    search->end = mapping->end;
    return 1;
}

/* Where the chunk begins that ends with the heap, as the last one does. Each chunk's
 * size is the word before its memory; a heap that does not look so gives 0. One that
 * has shrunk ends before its mapping, on a page of zeros. */
static uintptr_t find_top(uintptr_t memory, uintptr_t end) {
    uintptr_t chunk = memory - 2 * OVERHEAD, page = cow_prim_page_size();
    while (chunk < end) {
        size_t size = *(const size_t *)(chunk + OVERHEAD) & ~(size_t)7;
        if (size < 2 * ALIGN || size % ALIGN || size > end - chunk) return 0;
        uintptr_t next = chunk + size;
        if (next == end) return chunk;
        if (next % page == 0 && *(const size_t *)(next + OVERHEAD) == 0) return chunk;
        chunk = next;
    }
    return 0;
}

struct task {
    struct cow_seal *out;
    uint64_t most;
    uint32_t done;  /* event */
    uint32_t *stay; /* event: until all arenas are taken */
    int is_new;     /* no arena was left */
};

static struct task *starting; /* one thread starts at a time */

static void *fill_arena(void *unused) {
    (void)unused;
    struct task *task = starting;
    size_t before = look_at_all().size;
    uintptr_t first = (uintptr_t)malloc(2 * ALIGN); /* kept; tells which arena it is */
    task->is_new = !first || look_at_all().size >= before + ARENA_LEAST;
    if (!task->is_new) {
        struct search around = {.address = first};
        (void)cow_maps_read(is_around, &around);
        struct heap heap = {around.start, find_top(first, around.end)};
        if (heap.top) (void)fill(&heap, task->most, task->out);
    }
    cow_prim_event_post(&task->done);
    cow_prim_event_wait(task->stay, 0, FOREVER_MS);
    return NULL;
}

/* Whether this is the only thread. Else an arena might be shared with one that lives,
 * and change while it is looked at. */
static int is_alone(void) {
    char text[4096];
    size_t length;
    if (cow_prim_slurp("/proc/self/status", text, sizeof text - 1, &length)) return 0;
    text[length] = 0;
    const char *found = strstr(text, "\nThreads:\t");
    return found && strtoul(found + 10, NULL, 10) == 1;
}

static void fill_arenas(uint64_t most, struct cow_seal *out) {
    if (!strstr(describe(), "<heap nr=\"1\"") || !is_alone()) return;
    struct task tasks[THREADS];
    pthread_t threads[THREADS];
    uint32_t stay = 0;
    int count = 0, more = 1;
    sigset_t all, before; /* no handler of the application's runs in these */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (more && count < THREADS) {
        tasks[count] = (struct task){out, most, 0, &stay, 0};
        starting = &tasks[count];
        if (cow_prim_thread(&threads[count], fill_arena)) break;
        cow_prim_event_wait(&tasks[count].done, 0, FOREVER_MS);
        more = !tasks[count++].is_new;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cow_prim_event_post(&stay);
    while (count) (void)pthread_join(threads[--count], NULL);
}

int cow_c_heap_fill(struct cow_seal *out) {
    if (!cow_c_heap_is_known()) return COW_UNSEALED_UNKNOWN;
    struct totals found = look_at_all();
    uint64_t most = CACHE_MOST;
    if (found.unused > found.kept) most += found.unused - found.kept;
    if (!fill_main(most, out)) return COW_UNSEALED_UNKNOWN;
    fill_arenas(most, out);
    return COW_SEALED;
}

#else

int cow_c_heap_fill(struct cow_seal *out) {
    (void)out;
    return COW_UNSEALED_UNKNOWN;
}

#endif
