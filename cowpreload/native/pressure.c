/* What the kernel says of memory that runs short, and what follows. Pure: no file is
 * read here, and no clock. */
#include "pressure.h"

#include <string.h>

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
    uint64_t active = 0, inactive = 0, names = 0;
    int found = named(text, size, "total_active_file ", &active) +
                named(text, size, "total_inactive_file ", &inactive);
    if (!found)
        found = named(text, size, "active_file ", &active) +
                named(text, size, "inactive_file ", &inactive);
    (void)named(text, size, "slab_reclaimable ", &names);
    *out = sum(sum(active, inactive), names);
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

static uint64_t kib(uint64_t count) {
    return count > UINT64_MAX / 1024 ? UINT64_MAX : count * 1024;
}

int cow_meminfo_parse(const char *text, size_t size, uint64_t *total,
                      uint64_t *available) {
    int found = named(text, size, "MemTotal:", total) +
                named(text, size, "MemAvailable:", available);
    *total = kib(*total);
    *available = kib(*available);
    return found == 2 ? COW_OK : COW_EPARSE;
}

int cow_swap_parse(const char *text, size_t size, uint64_t *free) {
    int found = named(text, size, "SwapFree:", free);
    *free = kib(*free);
    return found ? COW_OK : COW_EPARSE;
}

/* A sixteenth: below it a group of 600 MB has 37, a burst of one request. And no more
 * of a large machine than a worker or two. */
#define SHORT_PART 16
#define SHORT_MOST (256ull << 20)
/* Waiting alone is no reason: on a machine with room it is another group's, which
 * reclaims its own files. */
#define STALLED_PART 4
#define STALLED_PERMILLE 100

uint64_t cow_room_left(const struct cow_room *room) {
    uint64_t limit = room->limit < room->high ? room->limit : room->high;
    return limit > room->used ? limit - room->used : 0;
}

enum cow_shortage cow_shortage(const struct cow_room *room, uint64_t stalled,
                               enum cow_shortage before) {
    uint64_t limit = room->limit < room->high ? room->limit : room->high;
    uint64_t left = cow_room_left(room), enough = limit / SHORT_PART;
    if (!room->limit) return COW_ENOUGH;
    if (enough > SHORT_MOST) enough = SHORT_MOST;
    if (left < (before == COW_SHORT ? 2 * enough : enough)) return COW_SHORT;
    uint64_t waits = STALLED_PERMILLE, little = limit / STALLED_PART;
    if (before == COW_STALLED) {
        waits /= 2;
        /* Each beginning is a reading of every worker. */
        little += little / STALLED_PART;
    }
    return stalled >= waits && left < little ? COW_STALLED : COW_ENOUGH;
}

#define GIVES_LEAST (8ull << 20)
#define GIVES_PART 4

static uint64_t gain(const struct cow_grown *worker) {
    return worker->private_bytes > worker->ready_private
               ? worker->private_bytes - worker->ready_private
               : 0;
}

int cow_gives_back(const struct cow_grown *worker) {
    return gain(worker) >= GIVES_LEAST &&
           gain(worker) >= worker->private_bytes / GIVES_PART;
}

int cow_leaves_before(const struct cow_grown *one, const struct cow_grown *other) {
    if (!one->idle != !other->idle) return one->idle > 0;
    if (gain(one) != gain(other)) return gain(one) > gain(other);
    return one->slot < other->slot;
}

#define PRESSED_BASE_MS 10000u
#define PRESSED_CAP_MS 3600000u

uint64_t cow_pressed_ms(const struct cow_limits *limits, uint32_t pressed) {
    uint64_t spared = limits->min_lifetime_ms;
    if (pressed && spared < PRESSED_BASE_MS) spared = PRESSED_BASE_MS;
    for (uint32_t i = 0; i < pressed && spared < PRESSED_CAP_MS; i++) spared *= 2;
    return spared;
}

/* Bytes a millisecond, as in verdict.c. */
#define FASTEST (4u << 20)
#define MOVING (64u << 10)
/* What a worker is given to be looked at again, and to die: some looks. */
#define HORIZON_MS 25u
#define LATE_MOST_MS 100u
/* Each processor holds pages in advance that nobody has yet; and a thread that is to
 * look waits for its turn: of eight bursts on two processors with thirty busy processes
 * the kernel killed three at half of both. */
#define HELD_PART 64
/* That of 128 processors: a 64th of 16 GiB killed with 256 MiB left. */
#define HELD_MOST (32ull << 20)
/* And no more than what it takes in this time: a page more, in a group with 9 MiB left,
 * killed the largest worker of it, which would have gone on for minutes. */
#define HELD_MS 1000u
#define RUNAWAY_PART 8

static uint64_t held(uint64_t limit, uint64_t speed) {
    uint64_t most = limit / HELD_PART < HELD_MOST ? limit / HELD_PART : HELD_MOST;
    return speed > most / HELD_MS ? most : speed * HELD_MS;
}

int cow_brink_due(const struct cow_room *room, uint64_t grown, uint64_t speed,
                  uint64_t late_ms) {
    uint64_t horizon = HORIZON_MS + (late_ms < LATE_MOST_MS ? late_ms : LATE_MOST_MS);
    if (!room->limit || room->limit == COW_NO_LIMIT || !speed) return 0;
    if (grown < room->limit / RUNAWAY_PART) return 0;
    uint64_t left = room->limit > room->used ? room->limit - room->used : 0;
    if (speed > room->limit / horizon) return 1;
    return left <= speed * horizon + held(room->limit, speed);
}

uint64_t cow_brink_nap_ms(const struct cow_room *room, uint64_t speed) {
    uint64_t left = room->limit > room->used ? room->limit - room->used : 0;
    uint64_t nap = left / (speed > FASTEST ? speed : FASTEST);
    if (nap < COW_BRINK_IDLE_MS && speed <= MOVING) nap = COW_BRINK_IDLE_MS;
    /* Four looks until it has taken all, however slow it is. */
    if (speed && nap > left / speed / 4) nap = left / speed / 4;
    if (nap > COW_BRINK_MOST_MS) nap = COW_BRINK_MOST_MS;
    return nap > COW_BRINK_NAP_MS ? nap : COW_BRINK_NAP_MS;
}
