/*
 * What clients send: paths, hosts and cookies of any bytes. What is noted can be read
 * again, and is what was sent.
 *
 * Links: served.c
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "served.h"

static struct cow_served served;

static char *copy(const uint8_t **at, const uint8_t *end, size_t *length) {
    size_t wanted = *at < end ? *(*at)++ : 0, left = (size_t)(end - *at);
    *length = wanted < left ? wanted : left;
    char *text = malloc(*length + !*length);
    memcpy(text, *at, *length);
    *at += *length;
    return text;
}

static int is_there(const char *path, size_t path_size, const char *host, size_t size) {
    struct cow_served_page page;
    uint32_t place = 0, count;
    while (cow_served_next(&served, &place, &page, &count))
        if (page.path == path_size && page.host == size &&
            !memcmp(page.text, path, path_size) &&
            !memcmp(page.text + path_size, host, size))
            return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    memset(&served, 0, sizeof served);
    for (int pages = 0; at < end && pages < 64; pages++) {
        size_t path_size, host_size, cookie_size;
        char *path = copy(&at, end, &path_size), *host = copy(&at, end, &host_size);
        char *cookie = copy(&at, end, &cookie_size);
        uint64_t key = cow_served_key(path, path_size, host, host_size);
        assert(key > 1);
        uint64_t before = served.noted;
        int noted = cow_served_note(&served, path, path_size, host, host_size, cookie,
                                    cookie_size, 0);
        if (noted) assert(cow_served_public(cookie, cookie_size));
        assert(served.noted == before + (uint64_t)noted);
        if (noted && !pages) assert(is_there(path, path_size, host, host_size));
        free(path);
        free(host);
        free(cookie);
    }
    return 0;
}
