/*
 * Readings: from the kernel's text to numbers. No policy, no state.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cow.h"
#include "prim.h"

/* smaps_rollup is about 900 bytes; a line of smaps ends long before this. */
#define TEXT_SIZE 4096

/* What the lines add up to; a field of smaps_rollup has one line, of smaps many. */
struct sums {
    uint64_t clean, dirty, shared, pss, pss_shmem, rss, lazy, swap, swap_pss;
    uint32_t has_dirty, has_swap_pss;
};

static const struct {
    const char *name;
    size_t field;
} LINES[] = {
    {"Private_Clean:", offsetof(struct sums, clean)},
    {"Private_Dirty:", offsetof(struct sums, dirty)},
    {"Shared_Clean:", offsetof(struct sums, shared)},
    {"Shared_Dirty:", offsetof(struct sums, shared)},
    {"Pss:", offsetof(struct sums, pss)},
    {"Pss_Shmem:", offsetof(struct sums, pss_shmem)},
    {"Rss:", offsetof(struct sums, rss)},
    {"LazyFree:", offsetof(struct sums, lazy)},
    {"Swap:", offsetof(struct sums, swap)},
    {"SwapPss:", offsetof(struct sums, swap_pss)},
};

static void add_line(const char *line, size_t size, struct sums *sums) {
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        size_t length = strlen(LINES[i].name);
        if (size <= length || memcmp(line, LINES[i].name, length) != 0) continue;
        uint64_t kib = 0;
        for (size_t at = length; at < size; at++)
            if (line[at] >= '0' && line[at] <= '9')
                kib = kib * 10 + (uint64_t)(line[at] - '0');
        *(uint64_t *)((char *)sums + LINES[i].field) += kib * 1024;
        sums->has_dirty |= LINES[i].field == offsetof(struct sums, dirty);
        sums->has_swap_pss |= LINES[i].field == offsetof(struct sums, swap_pss);
        return;
    }
}

/* Add all whole lines of `text`; gives where the first partial one begins. */
static size_t add_lines(const char *text, size_t size, struct sums *sums) {
    size_t used = 0;
    while (used < size) {
        const char *end = memchr(text + used, '\n', size - used);
        if (!end) break;
        size_t length = (size_t)(end - text) - used;
        add_line(text + used, length, sums);
        used += length + 1;
    }
    return used;
}

static int conclude(const struct sums *sums, struct cow_reading *out) {
    if (!sums->has_dirty) return COW_EPARSE;
    /* Swap counts a swapped page that others share in full, in each of them; SwapPss
     * (from Linux 4.3 on) only its share. */
    out->private_bytes =
        sums->dirty + (sums->has_swap_pss ? sums->swap_pss : sums->swap);
    out->evictable_bytes = sums->clean;
    uint64_t silent = sums->lazy + sums->pss_shmem;
    out->silent_bytes = silent < sums->clean ? silent : sums->clean;
    out->shared_bytes = sums->shared;
    out->pss = sums->pss;
    uint64_t own = sums->dirty + sums->clean;
    out->shared_pss = sums->pss > own ? sums->pss - own : 0;
    out->rss = sums->rss;
    return COW_OK;
}

int cow_reading_parse(const char *text, size_t size, struct cow_reading *out) {
    struct sums sums = {0};
    memset(out, 0, sizeof *out);
    /* A last line without an end is cut, perhaps in the middle of its number. */
    (void)add_lines(text, size, &sums);
    return conclude(&sums, out);
}

/* smaps has a block a mapping, far more than a buffer: sum it piece by piece. */
static int take_streamed(const char *path, struct cow_reading *out) {
    char text[TEXT_SIZE];
    size_t kept = 0, got;
    struct sums sums = {0};
    int fd, too_long = 0;
    memset(out, 0, sizeof *out);
    if (cow_prim_open(path, &fd)) return COW_EUNREADABLE;
    for (;;) {
        int error = cow_prim_read(fd, text + kept, sizeof text - kept, &got);
        if (error || got == 0) {
            cow_prim_close(fd);
            return error ? COW_EUNREADABLE : conclude(&sums, out);
        }
        size_t size = kept + got, used = 0;
        if (too_long) { /* its rest may look like a figure: a path may hold anything */
            const char *end = memchr(text, '\n', size);
            used = end ? (size_t)(end - text) + 1 : size;
            too_long = !end;
        }
        used += add_lines(text + used, size - used, &sums);
        kept = size - used;
        if (kept == sizeof text) {
            too_long = 1;
            kept = 0;
        }
        memmove(text, text + used, kept);
    }
}

static void path_of(pid_t pid, const char *name, char *path, size_t size) {
    if (pid)
        (void)snprintf(path, size, "/proc/%d/%s", (int)pid, name);
    else
        (void)snprintf(path, size, "/proc/self/%s", name);
}

int cow_reading_take(pid_t pid, struct cow_reading *out) {
    char path[64], text[TEXT_SIZE];
    size_t length;
    path_of(pid, "smaps_rollup", path, sizeof path);
    /* psutil found ESRCH and ENOENT here for processes that live: smaps is then
     * still readable, twelve times slower. */
    if (!cow_prim_slurp(path, text, sizeof text, &length) &&
        cow_reading_parse(text, length, out) == COW_OK) {
        out->source = COW_SOURCE_ROLLUP;
    } else {
        path_of(pid, "smaps", path, sizeof path);
        int code = take_streamed(path, out);
        if (code != COW_OK) return code;
        out->source = COW_SOURCE_SMAPS;
    }
    out->at_ms = cow_now_ms();
    return COW_OK;
}

const char *cow_strerror(int code) {
    switch (code) {
        case COW_OK: return "no error";
        case COW_ESYSTEM: return "a system call failed";
        case COW_EUNREADABLE: return "neither smaps_rollup nor smaps can be read";
        case COW_EPARSE: return "the kernel's figures lack Private_Dirty";
        case COW_ESLOT: return "no such slot on the board";
        case COW_EREVISION: return "the board was made by another version";
        case COW_ERUNNING: return "the watching thread runs already";
        case COW_ESTOPPED: return "there is no watching thread";
        case COW_ETHREAD: return "the system gave no thread";
        case COW_EMEMORY: return "no memory left";
        case COW_EVERSION: return "not with this interpreter";
        default: return "unknown code";
    }
}
