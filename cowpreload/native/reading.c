/*
 * Readings: from the kernel's text to numbers. No policy, no state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cow.h"
#include "prim.h"

/* smaps_rollup is about 900 bytes; a line of smaps ends long before this. */
#define TEXT_SIZE 4096

static const char *const NAMES[] = {
    "Private_Clean:", "Private_Dirty:", "Swap:", "Shared_Clean:",
    "Shared_Dirty:",  "Pss:",           "Rss:",
};

/* Add one line's figure to the field it belongs to; 1 if it was Private_Dirty. */
static int add_line(const char *line, size_t size, struct cow_reading *out) {
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t length = strlen(NAMES[i]);
        if (size <= length || memcmp(line, NAMES[i], length) != 0) continue;
        uint64_t kib = 0;
        for (size_t at = length; at < size; at++)
            if (line[at] >= '0' && line[at] <= '9')
                kib = kib * 10 + (uint64_t)(line[at] - '0');
        uint64_t *field = i <= 2   ? &out->private_bytes
                          : i <= 4 ? &out->shared_bytes
                          : i == 5 ? &out->pss
                                   : &out->rss;
        *field += kib * 1024;
        return i == 1;
    }
    return 0;
}

/* Add all whole lines of `text`; *used is where the first partial one begins. */
static int add_lines(const char *text, size_t size, size_t *used,
                     struct cow_reading *out) {
    int found = 0;
    *used = 0;
    while (*used < size) {
        const char *end = memchr(text + *used, '\n', size - *used);
        if (!end) break;
        size_t length = (size_t)(end - text) - *used;
        found |= add_line(text + *used, length, out);
        *used += length + 1;
    }
    return found;
}

int cow_reading_parse(const char *text, size_t size, struct cow_reading *out) {
    size_t used;
    memset(out, 0, sizeof *out);
    int found = add_lines(text, size, &used, out);
    if (used < size) found |= add_line(text + used, size - used, out);
    return found ? COW_OK : COW_EPARSE;
}

int cow_statm_parse(const char *text, size_t size, uint64_t page_size,
                    uint64_t *resident) {
    size_t at = 0;
    while (at < size && text[at] != ' ') at++;
    if (++at >= size || text[at] < '0' || text[at] > '9') return COW_EPARSE;
    uint64_t pages = 0;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        pages = pages * 10 + (uint64_t)(text[at] - '0');
    *resident = pages * page_size;
    return COW_OK;
}

/* smaps has a block a mapping, far more than a buffer: sum it piece by piece. */
static int take_streamed(const char *path, struct cow_reading *out) {
    char text[TEXT_SIZE];
    size_t kept = 0, got, used;
    int fd, found = 0;
    memset(out, 0, sizeof *out);
    if (cow_prim_open(path, &fd)) return COW_EUNREADABLE;
    for (;;) {
        int error = cow_prim_read(fd, text + kept, sizeof text - kept, &got);
        if (error || got == 0) {
            cow_prim_close(fd);
            return error ? COW_EUNREADABLE : found ? COW_OK : COW_EPARSE;
        }
        found |= add_lines(text, kept + got, &used, out);
        kept = kept + got - used;
        if (kept == sizeof text) kept = 0; /* a line too long to be a figure */
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

int cow_resident(uint64_t *resident) {
    char text[128];
    size_t length;
    if (cow_prim_slurp("/proc/self/statm", text, sizeof text, &length))
        return COW_EUNREADABLE;
    return cow_statm_parse(text, length, cow_prim_page_size(), resident);
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
