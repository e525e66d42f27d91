/*
 * What the kernel may merge: see merge.h. No policy, no state, no heap: the maps are
 * read piece by piece, since an allocation would change what they say.
 */
#include "merge.h"

#include <errno.h>
#include <string.h>

#include "cow.h"
#include "prim.h"

/* A line with a path is longer than this at most by a part of the path. */
enum { TEXT = 4096 };

static const char *number(const char *at, const char *end, unsigned base,
                          uint64_t *out) {
    const char *first = at;
    for (*out = 0; at < end; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                                                    : base;
        if (digit >= base) break;
        *out = *out * base + digit;
    }
    return at > first ? at : NULL;
}

/* Past the next field; NULL if there is none. */
static const char *skip(const char *at, const char *end) {
    while (at < end && *at != ' ') at++;
    while (at < end && *at == ' ') at++;
    return at < end ? at : NULL;
}

int cow_merge_wants(const char *line, size_t size, uint64_t *start, uint64_t *end) {
    const char *at = line, *last = line + size;
    uint64_t inode;
    if (!(at = number(at, last, 16, start)) || at == last || *at++ != '-') return 0;
    if (!(at = number(at, last, 16, end)) || *end <= *start) return 0;
    if (last - at < 5 || memcmp(at, " rw", 3) != 0 || at[4] != 'p') return 0;
    /* Access, offset, device; then the inode. */
    for (int i = 0; i < 4; i++)
        if (!(at = skip(at, last))) return 0;
    if (!(at = number(at, last, 10, &inode)) || inode) return 0;
    while (at < last && *at == ' ') at++;
    /* No name, [heap], or the name that an allocator gave: [anon: ...]. */
    size_t named = (size_t)(last - at);
    return !named || (named == 6 && !memcmp(at, "[heap]", 6)) ||
           (named > 6 && !memcmp(at, "[anon:", 6));
}

static void offer(const char *line, size_t size, struct cow_merge *out) {
    uint64_t start, end;
    if (!cow_merge_wants(line, size, &start, &end)) return;
    int error = cow_prim_mergeable((uintptr_t)start, (size_t)(end - start));
    if (error) {
        if (!out->error) out->error = (uint32_t)error;
        return;
    }
    out->bytes += end - start;
    out->ranges++;
}

int cow_merge_offer(struct cow_merge *out) {
    char text[TEXT];
    size_t kept = 0, got;
    int fd, within = 0; /* whether the text begins within a line too long for it */
    memset(out, 0, sizeof *out);
    if (cow_prim_open("/proc/self/maps", &fd)) return COW_EUNREADABLE;
    for (;;) {
        int error = cow_prim_read(fd, text + kept, sizeof text - kept, &got);
        if (error || got == 0) {
            cow_prim_close(fd);
            if (error) return COW_EUNREADABLE;
            break;
        }
        size_t used = 0, size = kept + got;
        for (char *end; (end = memchr(text + used, '\n', size - used));) {
            size_t length = (size_t)(end - text) - used;
            if (!within) offer(text + used, length, out);
            within = 0;
            used += length + 1;
        }
        kept = size - used;
        memmove(text, text + used, kept);
        if (kept == sizeof text) {
            kept = 0;
            within = 1;
        }
    }
    errno = (int)out->error;
    return out->ranges || !out->error ? COW_OK : COW_ESYSTEM;
}
