/*
 * Notes what the server serves. See served.h.
 *
 * A set is searched, not the table; what is noted costs a hash of some fifty bytes and
 * one addition. Counts of two threads that meet may lose one: nothing depends on it.
 */
#include "served.h"

#include <string.h>

#include "prim.h"

#define BUSY 1u

/* Cookies that pages set for a visitor whom they do not know: consent, the language,
 * measuring. A prefix ends in '*'. Django's csrftoken comes with a form. */
static const char *const PUBLIC[] = {
    "csrftoken", "django_language", "_ga*",   "_gid", "_gat*", "_gcl_*",
    "_fbp",      "_pk_*",           "__utm*",
};

static int is_public(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof PUBLIC / sizeof *PUBLIC; i++) {
        size_t known = strlen(PUBLIC[i]);
        int prefix = PUBLIC[i][known - 1] == '*';
        if (prefix) known--;
        if (prefix ? length >= known : length == known)
            if (!memcmp(name, PUBLIC[i], known)) return 1;
    }
    return 0;
}

int cow_served_public(const char *cookie, size_t length) {
    const char *end = cookie + length;
    while (cookie < end) {
        if (*cookie == ' ' || *cookie == ';') {
            cookie++;
            continue;
        }
        const char *stop = memchr(cookie, ';', (size_t)(end - cookie));
        if (!stop) stop = end;
        const char *equals = memchr(cookie, '=', (size_t)(stop - cookie));
        if (!equals || !is_public(cookie, (size_t)(equals - cookie))) return 0;
        cookie = stop;
    }
    return 1;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static int is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A UUID, or sixteen and more hexadecimal digits: no word of a language. */
static int is_identifier(const char *at, size_t length) {
    if (length < 16) return 0;
    int uuid = length == 36 && at[8] == '-';
    for (size_t i = 0; i < length; i++) {
        int dash = uuid && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash ? at[i] != '-' : !is_hex(at[i])) return 0;
    }
    return 1;
}

static uint64_t feed(uint64_t hash, char byte) {
    return (hash ^ (unsigned char)byte) * 0x100000001b3ull; /* FNV-1a */
}

static uint64_t feed_segment(uint64_t hash, const char *at, size_t length) {
    size_t name = length; /* without a suffix, as in .png */
    for (size_t i = length; i-- > 0;)
        if (at[i] == '.') {
            name = i;
            break;
        }
    if (is_identifier(at, length)) name = length;
    size_t from = 0;
    if (is_identifier(at, name)) {
        hash = feed(hash, '#');
        from = name;
    }
    for (size_t i = from; i < length; i++) {
        if (at[i] == '%' && i + 2 < length && is_hex(at[i + 1]) && is_hex(at[i + 2])) {
            /* A letter of another script is no number. */
            for (int j = 0; j < 3; j++) hash = feed(hash, at[i + j]);
            i += 2;
        } else if (is_digit(at[i])) {
            while (i + 1 < length && is_digit(at[i + 1])) i++;
            hash = feed(hash, '#');
        } else {
            hash = feed(hash, at[i]);
        }
    }
    return hash;
}

uint64_t cow_served_key(const char *path, size_t path_length, const char *host,
                        size_t host_length) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < host_length; i++) hash = feed(hash, host[i]);
    const char *end = path + path_length;
    while (path < end) {
        const char *stop = memchr(path, '/', (size_t)(end - path));
        if (!stop) stop = end;
        hash = feed_segment(hash, path, (size_t)(stop - path));
        if (stop < end) hash = feed(hash, '/');
        path = stop + 1;
    }
    hash ^= hash >> 32; /* the set is chosen by the lowest bits */
    return hash > BUSY ? hash : hash + 2;
}

static struct cow_served_set *set_of(struct cow_served *served, uint64_t key) {
    return &served->set[key % COW_SERVED_SETS];
}

static int find(const struct cow_served_set *set, uint64_t key) {
    for (int way = 0; way < (int)COW_SERVED_WAYS; way++)
        if (LOAD(set->key[way]) == key) return way;
    return -1;
}

/* Where a new page goes: a free place, or that of the page with the least to speak for
 * it, which each newcomer wears down by one. Thus a page that comes again and again
 * outlasts any number of pages that come once. Of equals the oldest goes: the youngest
 * may be about to come again. */
static int make_room(struct cow_served_set *set, uint64_t *was) {
    int least = -1;
    uint32_t first = set->next;
    for (uint32_t i = 0; i < COW_SERVED_WAYS; i++) {
        int way = (int)((first + i) % COW_SERVED_WAYS);
        uint64_t key = LOAD(set->key[way]);
        if (key == BUSY) continue;
        if (!key) {
            *was = key;
            return way;
        }
        if (least < 0 || set->kept[way] < set->kept[least]) {
            least = way;
            *was = key;
        }
    }
    if (least < 0) return -1;
    if (set->kept[least] <= 1) {
        set->next = (uint32_t)least + 1;
        return least;
    }
    set->kept[least]--;
    set->count[least]++; /* somebody's: so the counts of a set add up */
    return -1;
}

static void bump(uint32_t *counter) {
    uint32_t value = *counter;
    if (value != UINT32_MAX) *counter = value + 1;
}

int cow_served_note(struct cow_served *served, const char *path, size_t path_length,
                    const char *host, size_t host_length, const char *cookie,
                    size_t cookie_length, int authorized) {
    if (!path_length || *path != '/' || path_length + host_length > COW_SERVED_TEXT)
        return 0;
    if (!LOAD(served->private_too) &&
        (authorized || !cow_served_public(cookie, cookie_length))) {
        (void)__atomic_add_fetch(&served->withheld, 1, __ATOMIC_RELAXED);
        return 0;
    }
    uint64_t key = cow_served_key(path, path_length, host, host_length), was;
    struct cow_served_set *set = set_of(served, key);
    (void)__atomic_add_fetch(&served->noted, 1, __ATOMIC_RELAXED);
    int way = find(set, key);
    if (way >= 0) {
        bump(&set->kept[way]);
        bump(&set->count[way]);
        return 1;
    }
    way = make_room(set, &was);
    /* Who dies between these two leaves one place that nobody uses again. */
    if (way < 0 || !__atomic_compare_exchange_n(&set->key[way], &was, (uint64_t)BUSY, 0,
                                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return 1;
    struct cow_served_page *page = &set->page[way];
    page->path = (uint16_t)path_length;
    page->host = (uint16_t)host_length;
    memcpy(page->text, path, path_length);
    memcpy(page->text + path_length, host, host_length);
    set->kept[way] = 1;
    bump(&set->count[way]); /* on top of what came before it here: see make_room */
    STORE(set->key[way], key);
    return 1;
}

/* Replaced while it was copied, or written by whoever may write to a board: what does
 * not belong together has another key. */
static int genuine(const struct cow_served_page *page, uint64_t key) {
    return page->path + page->host <= COW_SERVED_TEXT &&
           cow_served_key(page->text, page->path, page->text + page->path,
                          page->host) == key;
}

int cow_served_next(const struct cow_served *served, uint32_t *place,
                    struct cow_served_page *out, uint32_t *count) {
    while (*place < COW_SERVED_SETS * COW_SERVED_WAYS) {
        const struct cow_served_set *set = &served->set[*place / COW_SERVED_WAYS];
        uint32_t way = (*place)++ % COW_SERVED_WAYS;
        uint64_t key = LOAD(set->key[way]);
        if (key <= BUSY) continue;
        *out = set->page[way];
        *count = set->count[way];
        if (genuine(out, key)) return 1;
    }
    return 0;
}
