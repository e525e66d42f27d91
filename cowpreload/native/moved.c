/*
 * See moved.h. What is known of the moved heap is in this file's own memory, which no
 * allocator has, and which a worker inherits.
 */
#define _GNU_SOURCE 1 /* the very text of pyconfig.h: another is a warning */
#include "moved.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "c_heap.h"
#include "cow.h"
#include "maps.h"
#include "prim.h"
#include "seal.h"

#ifdef COW_CPYTHON
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif

enum {
    PAGE = 4096,
    ARENAS = 32768, /* of 1 MiB each, from 3.10 on */
    RANGES = 4096,
    /* Pages in a row that hold zeros alone are left where they are: an allocator hands
     * them out next, and from the file each would be there twice. */
    GAP = 64,
};

struct range {
    uintptr_t start, end;
};

static struct {
    struct range arena[ARENAS];
    uint32_t arenas, lost; /* lost: there were more */
    uintptr_t brk;         /* where glibc's main heap begins */
} heap;

static int noting; /* arenas, since before the application was loaded */

int cow_arenas_noted(void) { return noting; }

struct cow_home cow_home;

#ifdef COW_CPYTHON
static PyObjectArenaAllocator arenas_of;

static void *arena_alloc(void *context, size_t size) {
    (void)context;
    void *arena = arenas_of.alloc(arenas_of.ctx, size);
    if (!arena) return NULL;
    if (heap.arenas == ARENAS) {
        heap.lost++;
        return arena;
    }
    heap.arena[heap.arenas++] =
        (struct range){(uintptr_t)arena, (uintptr_t)arena + size};
    return arena;
}

static void arena_free(void *context, void *arena, size_t size) {
    (void)context;
    for (uint32_t i = heap.arenas; i-- > 0;)
        if (heap.arena[i].start == (uintptr_t)arena) {
            heap.arena[i] = heap.arena[--heap.arenas];
            break;
        }
    arenas_of.free(arenas_of.ctx, arena, size);
}

static int is_pymalloc(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int known = cow_is_pymalloc();
    PyGILState_Release(gil);
    return known;
}

int cow_arenas_note(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    if (!arenas_of.alloc) {
        PyObject_GetArenaAllocator(&arenas_of);
        PyObjectArenaAllocator ours = {NULL, arena_alloc, arena_free};
        PyObject_SetArenaAllocator(&ours);
        noting = 1;
    }
    PyGILState_Release(gil);
    return COW_OK;
}
#else
static int is_pymalloc(void) { return 0; }

int cow_arenas_note(void) {
    noting = 1;
    return COW_EVERSION;
}
#endif
static struct {
    struct range all[RANGES];
    uint32_t count, full;
} found;

static void add(uintptr_t start, uintptr_t end) {
    if (start >= end) return;
    if (found.count && found.all[found.count - 1].end == start) {
        found.all[found.count - 1].end = end;
    } else if (found.count < RANGES) {
        found.all[found.count++] = (struct range){start, end};
    } else {
        found.full = 1;
    }
}

static int is_empty(uintptr_t page) {
    const uint64_t *words = (const uint64_t *)page;
    uint64_t all = 0;
    for (size_t i = 0; i < PAGE / sizeof *words; i++) all |= words[i];
    return !all;
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* The runs of pages with something in them. */
static void add_runs(uintptr_t start, uintptr_t end) {
    uintptr_t begun = 0, last = 0;
    for (uintptr_t page = start; page < end; page += PAGE) {
        if (is_empty(page)) continue;
        if (begun && page - last > GAP * PAGE) {
            add(begun, last + PAGE);
            begun = 0;
        }
        if (!begun) begun = page;
        last = page;
    }
    if (begun) add(begun, last + PAGE);
}

int cow_home_has(const struct cow_mapping *mapping) {
    return cow_home.inode && mapping->inode == cow_home.inode &&
           mapping->device == cow_home.device;
}

static void overlap(const struct cow_mapping *mapping, uintptr_t start, uintptr_t end) {
    if (start < mapping->start) start = mapping->start;
    if (end > mapping->end) end = mapping->end;
    if (start >= end) return;
    /* One page that was left of an earlier file would keep all of that file. */
    if (cow_home_has(mapping))
        add(start, end);
    else
        add_runs(start, end);
}

static int look(const struct cow_mapping *mapping, void *context) {
    (void)context;
    if (memcmp(mapping->access, "rw-p", 4) != 0 ||
        !(cow_mapping_is_heap(mapping) || cow_home_has(mapping)))
        return 0;
    if (cow_mapping_named(mapping, "[heap]") && !heap.brk) heap.brk = mapping->start;
    if (heap.brk) overlap(mapping, heap.brk, (uintptr_t)sbrk(0));
    for (uint32_t i = 0; i < heap.arenas; i++)
        overlap(mapping, heap.arena[i].start, heap.arena[i].end);
    return 0;
}

/* What is written before it is mapped: so much is there twice for a moment. */
enum { CHUNK = 4 << 20 };

static int write_all(int fd, uintptr_t from, size_t size, off_t at) {
    while (size) {
        ssize_t done = pwrite(fd, (const void *)from, size, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        from += (size_t)done;
        at += done;
        size -= (size_t)done;
    }
    return 0;
}

/* The master has all of it mapped, so that what a worker reads is shared with it. */
static void map_pages(uintptr_t start, size_t size) {
    if (!madvise((void *)start, size, MADV_POPULATE_READ)) return;
    for (uintptr_t page = start; page < start + size; page += PAGE)
        (void)*(volatile char *)page;
}

/* One piece: nothing may write to it between the copy and the mapping. */
static int move_piece(int fd, uintptr_t start, size_t size, off_t at) {
    int error = write_all(fd, start, size, at);
    if (error) return error;
    void *moved = mmap((void *)start, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_FIXED, fd, at);
    if (moved == MAP_FAILED) return errno;
    map_pages(start, size);
    return 0;
}

static int move_all(int fd, struct cow_moved *out) {
    for (uint32_t i = 0; i < found.count; i++) {
        struct range *each = &found.all[i];
        for (uintptr_t at = each->start; at < each->end; at += CHUNK) {
            size_t size = each->end - at < CHUNK ? each->end - at : CHUNK;
            int error = move_piece(fd, at, size, (off_t)out->bytes);
            if (error) return error;
            out->bytes += size;
        }
        out->ranges++;
    }
    return 0;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int move_into(int fd, struct cow_moved *out) {
    struct stat about;
    off_t size = 0;
    for (uint32_t i = 0; i < found.count; i++)
        size += (off_t)(found.all[i].end - found.all[i].start);
    if (fchmod(fd, S_IRUSR) || ftruncate(fd, size) || fstat(fd, &about)) return errno;
    /* Private, and never written: a sealed file allows no other. First: a heap that is
     * moved and cannot be compared would be moved for nothing (ulimit -v). */
    void *mirror = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mirror == MAP_FAILED) return errno;
    int error = move_all(fd, out);
    (void)fcntl(fd, F_ADD_SEALS, SEALS);
    if (!out->bytes) {
        (void)munmap(mirror, (size_t)size);
        return error;
    }
    cow_home.device = (uint64_t)major(about.st_dev) << 32 | minor(about.st_dev);
    cow_home.inode = about.st_ino;
    cow_home.mirror = mirror;
    cow_home.size = (uint64_t)size;
    return error;
}

static int holds_thread(void) {
    uintptr_t thread = (uintptr_t)pthread_self();
    for (uint32_t i = 0; i < found.count; i++)
        if (thread >= found.all[i].start && thread < found.all[i].end) return 1;
    return 0;
}

/* A mapping that the system refuses would leave a hole where the heap was. With strict
 * accounting of memory it can be refused for want of memory; and a file that is larger
 * than the process may write is one. */
static int is_strict(void) {
    char text[8];
    size_t length;
    struct rlimit most;
    return cow_prim_slurp("/proc/sys/vm/overcommit_memory", text, sizeof text,
                          &length) ||
           text[0] == '2' || getrlimit(RLIMIT_FSIZE, &most) ||
           most.rlim_cur != RLIM_INFINITY;
}

static uint32_t move(struct cow_moved *out) {
    const struct cow_home before = cow_home;
    if (!noting) return COW_UNMOVED_LATE;
    /* A mapping would begin or end within a larger page, and take what is beside it. */
    if (cow_prim_page_size() != PAGE) return COW_UNMOVED_PAGES;
    int known = cow_c_heap_is_known() && is_pymalloc();
    if (!known || !heap.arenas) return COW_UNMOVED_ALLOCATOR;
    if (is_strict()) return COW_UNMOVED_STRICT;
    /* From here on nothing may be allocated. */
    if (cow_prim_threads() != 1) return COW_UNMOVED_THREADS;
    memset(&found, 0, sizeof found);
    if (cow_maps_read(look, NULL) != COW_OK) return COW_UNMOVED_SYSTEM;
    if (!found.count || holds_thread()) return COW_UNMOVED_NOTHING;
    int fd = memfd_create("cowpreload-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? errno : move_into(fd, out);
    if (fd >= 0) cow_prim_close(fd);
    if (before.inode && before.inode != cow_home.inode)
        (void)munmap((void *)before.mirror, before.size);
    out->error = (uint32_t)error;
    return error ? COW_UNMOVED_SYSTEM : COW_MOVED;
}

void cow_move(struct cow_moved *out) {
    sigset_t all, before;
    struct cow_moved done = {0}; /* on the stack: what is moved is not written to */
    uint64_t began = cow_prim_now_us();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    done.why_not = move(&done);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    done.us = (uint32_t)(cow_prim_now_us() - began);
    *out = done;
}
