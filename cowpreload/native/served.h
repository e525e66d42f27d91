/*
 * What the server has served: pages that a warm up could request, each with one
 * example of a path, its host, and a count. Part of the board.
 *
 * Written by every worker, and by all their threads, after an answer; read by whoever
 * has the board. Bounded: a page that is new takes the place of the one that came
 * least of late. Takes no lock and allocates nothing.
 */
#ifndef COW_SERVED_H
#define COW_SERVED_H

#include <stddef.h>
#include <stdint.h>

#define COW_SERVED_SETS 64u /* a page's set follows from its key */
#define COW_SERVED_WAYS 16u
#define COW_SERVED_TEXT 252u /* a longer path, with its host, is not noted */

struct cow_served_page {
    uint16_t path;              /* bytes of `text` that are the path, */
    uint16_t host;              /* and, after them, the host */
    char text[COW_SERVED_TEXT]; /* as it was requested: percent signs and all */
};

/* Sixteen places for the pages whose keys end alike; what a look needs comes first, in
 * a few cache lines. */
struct cow_served_set {
    uint64_t key[COW_SERVED_WAYS];  /* of host and shape; 0: free, 1: being written */
    uint32_t kept[COW_SERVED_WAYS]; /* what of its count speaks for it: see note */
    uint32_t count[COW_SERVED_WAYS];
    uint32_t next; /* where the search for room goes on */
    struct cow_served_page page[COW_SERVED_WAYS];
};

struct cow_served {
    uint64_t noted;       /* requests, all in all */
    uint64_t withheld;    /* requests that were not, because they carried a login */
    uint32_t private_too; /* the operator's wish, set by the master: these too */
    struct cow_served_set set[COW_SERVED_SETS] __attribute__((aligned(128)));
};

/* Whether these are cookies that no login is known by; "" is. Pure.
 * Anything that is not on a short list may be a session's. */
int cow_served_public(const char *cookie, size_t length);

/* What is one page: the same for paths that differ in numbers, in UUIDs, or in other
 * identifiers of hexadecimal digits. Pure; never 0 or 1. */
uint64_t cow_served_key(const char *path, size_t path_length, const char *host,
                        size_t host_length);

/* Note a GET without a query that was answered with 200; 1 if it was noted. Not if it
 * is no path, or too long; nor, but counted, if it carries a login: `authorized` says
 * that it has an Authorization header, and its cookies may be a session's. */
int cow_served_note(struct cow_served *served, const char *path, size_t path_length,
                    const char *host, size_t host_length, const char *cookie,
                    size_t cookie_length, int authorized);

/* Copy the first page from *place on (0 at first), and set *place behind it; 0 if there
 * is none. One that is just being replaced is left out. */
int cow_served_next(const struct cow_served *served, uint32_t *place,
                    struct cow_served_page *out, uint32_t *count);

#endif
