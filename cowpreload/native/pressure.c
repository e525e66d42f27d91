/* What the kernel says of memory that runs short. Pure: no file is read here. */
#include "pressure.h"

#include <string.h>

#include "cow.h"

/* Version 1 writes "no limit" as the largest number of pages that a long can count. */
#define UNLIMITED (1ull << 62)

/* The digits at `at`, past blanks: 0 if there are none. A figure that is too large is
 * the largest there is. */
static int figure(const char *text, size_t size, size_t at, uint64_t *out) {
    uint64_t value = 0;
    while (at < size && text[at] == ' ') at++;
    size_t from = at;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[at] - '0'), &value))
            value = UINT64_MAX;
    *out = value;
    return at > from;
}

/* Where the rest of the line begins that starts with `name`; `size` if none does. */
static size_t after(const char *text, size_t size, const char *name) {
    size_t length = strlen(name);
    for (size_t at = 0; at < size && size - at >= length; at++) {
        if (!memcmp(text + at, name, length)) return at + length;
        const char *end = memchr(text + at, '\n', size - at);
        if (!end) break;
        at = (size_t)(end - text);
    }
    return size;
}

static int named(const char *text, size_t size, const char *name, uint64_t *out) {
    return figure(text, size, after(text, size, name), out);
}

static uint64_t sum(uint64_t one, uint64_t other) {
    return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

int cow_size_parse(const char *text, size_t size, uint64_t *out) {
    *out = COW_NO_LIMIT;
    if (size >= 3 && !memcmp(text, "max", 3)) return COW_OK;
    if (!figure(text, size, 0, out)) return COW_EPARSE;
    if (*out >= UNLIMITED) *out = COW_NO_LIMIT;
    return COW_OK;
}

int cow_files_parse(const char *text, size_t size, uint64_t *out) {
    uint64_t active = 0, inactive = 0;
    int found = named(text, size, "total_active_file ", &active) +
                named(text, size, "total_inactive_file ", &inactive);
    if (!found)
        found = named(text, size, "active_file ", &active) +
                named(text, size, "inactive_file ", &inactive);
    *out = sum(active, inactive);
    return found ? COW_OK : COW_EPARSE;
}

int cow_stall_parse(const char *text, size_t size, uint64_t *out_us) {
    static const char TOTAL[] = " total=";
    size_t at = after(text, size, "some");
    *out_us = 0;
    for (; at < size && text[at] != '\n'; at++)
        if (size - at >= sizeof TOTAL - 1 &&
            !memcmp(text + at, TOTAL, sizeof TOTAL - 1))
            return figure(text, size, at + sizeof TOTAL - 1, out_us) ? COW_OK
                                                                     : COW_EPARSE;
    return COW_EPARSE;
}

int cow_meminfo_parse(const char *text, size_t size, uint64_t *total,
                      uint64_t *available) {
    int found = named(text, size, "MemTotal:", total) +
                named(text, size, "MemAvailable:", available);
    *total = *total > UINT64_MAX / 1024 ? UINT64_MAX : *total * 1024;
    *available = *available > UINT64_MAX / 1024 ? UINT64_MAX : *available * 1024;
    return found == 2 ? COW_OK : COW_EPARSE;
}
