/*
 * The lines of /proc/self/maps, piece by piece. No state, no heap.
 */
#include "maps.h"

#include <string.h>

#include "cow.h"
#include "prim.h"

/* A line is longer than this at most by a part of its path. */
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

/* Past `sign`; NULL if something else is there. */
static const char *past(const char *at, const char *end, char sign) {
    if (!at || at == end || *at != sign) return NULL;
    while (at < end && *at == sign && sign == ' ') at++;
    return sign == ' ' ? at : at + 1;
}

int cow_mapping_parse(const char *line, size_t size, struct cow_mapping *out) {
    const char *at = line, *last = line + size;
    uint64_t start, end, major, minor;
    *out = (struct cow_mapping){0};
    if (!(at = past(number(at, last, 16, &start), last, '-')) ||
        !(at = past(number(at, last, 16, &end), last, ' ')) || end <= start ||
        last - at < 5)
        return 0;
    memcpy(out->access, at, 4);
    if (!(at = past(at + 4, last, ' ')) ||
        !(at = past(number(at, last, 16, &out->offset), last, ' ')) ||
        !(at = past(number(at, last, 16, &major), last, ':')) ||
        !(at = past(number(at, last, 16, &minor), last, ' ')) ||
        !(at = number(at, last, 10, &out->inode)))
        return 0;
    while (at < last && *at == ' ') at++;
    out->start = (uintptr_t)start;
    out->end = (uintptr_t)end;
    out->device = major << 32 | minor;
    out->name = at;
    out->named = (size_t)(last - at);
    return 1;
}

int cow_mapping_named(const struct cow_mapping *mapping, const char *name) {
    size_t size = strlen(name);
    return mapping->named >= size && !memcmp(mapping->name, name, size);
}

int cow_mapping_is_heap(const struct cow_mapping *mapping) {
    return mapping->access[0] == 'r' && mapping->access[1] == 'w' &&
           mapping->access[3] == 'p' && !mapping->inode &&
           (!mapping->named || cow_mapping_named(mapping, "[heap]") ||
            cow_mapping_named(mapping, "[anon:"));
}

int cow_maps_read(int (*each)(const struct cow_mapping *, void *), void *context) {
    char text[TEXT];
    size_t kept = 0, got;
    int fd, within = 0, done = 0; /* within a line too long for the text */
    if (cow_prim_open("/proc/self/maps", &fd)) return COW_EUNREADABLE;
    while (!done) {
        int error = cow_prim_read(fd, text + kept, sizeof text - kept, &got);
        if (error || got == 0) {
            cow_prim_close(fd);
            return error ? COW_EUNREADABLE : COW_OK;
        }
        size_t used = 0, size = kept + got;
        for (char *end; !done && (end = memchr(text + used, '\n', size - used));) {
            size_t length = (size_t)(end - text) - used;
            struct cow_mapping mapping;
            if (!within && cow_mapping_parse(text + used, length, &mapping))
                done = each(&mapping, context);
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
    cow_prim_close(fd);
    return COW_OK;
}
