/*
 * Traffic: what is cheap to know of a process's memory, from which verdict.c bounds
 * its private part between two readings. Some 30 microseconds, whatever its size.
 */
#include <stdio.h>
#include <string.h>

#include "cow.h"
#include "prim.h"

/* The first `count` numbers of a line, in pages, as bytes. */
static int pages_of(const char *text, size_t size, uint64_t page_size, uint64_t *out,
                    size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t pages = 0;
        if (at >= size || text[at] < '0' || text[at] > '9') return COW_EPARSE;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            pages = pages * 10 + (uint64_t)(text[at] - '0');
        out[i] = pages * page_size;
        at++;
    }
    return COW_OK;
}

int cow_statm_parse(const char *text, size_t size, uint64_t page_size,
                    uint64_t *resident, uint64_t *files) {
    uint64_t sizes[3]; /* all, resident, of files and shared memory */
    int code = pages_of(text, size, page_size, sizes, 3);
    if (code) return code;
    *resident = sizes[1];
    *files = sizes[2];
    return COW_OK;
}

/* The figure after `name` and a space, at the start of a line; 0 without one. */
static uint64_t counter(const char *text, size_t size, const char *name) {
    size_t length = strlen(name);
    for (size_t at = 0; at + length < size; at++) {
        if (!memcmp(text + at, name, length) && text[at + length] == ' ') {
            uint64_t value = 0;
            for (at += length + 1; at < size && text[at] >= '0' && text[at] <= '9';)
                value = value * 10 + (uint64_t)(text[at++] - '0');
            return value;
        }
        const char *end = memchr(text + at, '\n', size - at);
        if (!end) break;
        at = (size_t)(end - text);
    }
    return 0;
}

#define HUGE "/sys/kernel/mm/transparent_hugepage/"
#define HUGEST ((uint64_t)1 << 40)

/* Whether a file of choices has one of `choices` in its brackets. */
static int chosen(const char *path, const char *const *choices) {
    char text[128];
    size_t length;
    if (cow_prim_slurp(path, text, sizeof text - 1, &length)) return 0;
    text[length] = 0;
    for (; *choices; choices++)
        if (strstr(text, *choices)) return 1;
    return 0;
}

void cow_pages_take(struct cow_pages *out) {
    static const char *const OFTEN[] = {"[always]", "[madvise]", "[inherit]", NULL};
    char text[128];
    size_t length;
    out->page = out->most = cow_prim_page_size();
    out->huge = 0;
    if (cow_prim_slurp(HUGE "hpage_pmd_size", text, sizeof text, &length)) return;
    for (size_t at = 0; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        out->huge = out->huge * 10 + (uint64_t)(text[at] - '0');
    if (out->huge > HUGEST) out->huge = 0; /* no figure: the search would not end */
    for (uint64_t size = out->page * 2; size < out->huge; size *= 2) {
        char path[96];
        (void)snprintf(path, sizeof path, HUGE "hugepages-%llukB/enabled",
                       (unsigned long long)(size / 1024));
        if (chosen(path, OFTEN)) out->most = size;
    }
}

int cow_resident(uint64_t *resident, uint64_t *files) {
    char text[128];
    size_t length;
    if (cow_prim_slurp("/proc/self/statm", text, sizeof text, &length))
        return COW_EUNREADABLE;
    return cow_statm_parse(text, length, cow_prim_page_size(), resident, files);
}

int cow_traffic_take(struct cow_traffic *out) {
    char text[8192];
    size_t length;
    memset(out, 0, sizeof *out);
    out->faults = cow_prim_faults();
    int code = cow_resident(&out->resident, &out->files);
    if (code) return code;
    if (cow_prim_slurp("/proc/vmstat", text, sizeof text, &length)) {
        out->huge_faults = out->faults; /* then each may have brought one */
        return COW_OK;
    }
    out->huge_faults = counter(text, length, "thp_fault_alloc");
    out->huge_collapses = counter(text, length, "thp_collapse_alloc");
    return COW_OK;
}
