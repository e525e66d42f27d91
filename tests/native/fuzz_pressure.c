/*
 * The files of control groups, meminfo and pressure files, or what a sandbox gives in
 * their place: any bytes.
 *
 * Links: pressure.c
 */
#define _GNU_SOURCE
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cow.h"
#include "pressure.h"

/* The same figure as C's library reads it, where the text begins with a digit. */
static void try_size(const char *text, size_t size) {
    uint64_t figure;
    int code = cow_size_parse(text, size, &figure);
    assert(code == COW_OK || code == COW_EPARSE);
    if (!size || !isdigit((unsigned char)*text)) return;
    char *whole = strndup(text, size);
    errno = 0;
    uint64_t known = strtoull(whole, NULL, 10);
    free(whole);
    assert(code == COW_OK);
    assert(figure == (errno || known >= 1ull << 62 ? COW_NO_LIMIT : known));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t one, other;
    char *text = malloc(size + !size); /* so that a byte too many is seen */
    memcpy(text, data, size);
    try_size(text, size);
    if (cow_files_parse(text, size, &one) == COW_OK)
        assert(memmem(text, size, "active_file", 11));
    if (cow_stall_parse(text, size, &one) == COW_OK) {
        assert(memmem(text, size, "some", 4));
        assert(memmem(text, size, " total=", 7));
    }
    if (cow_meminfo_parse(text, size, &one, &other) == COW_OK)
        assert(memmem(text, size, "MemTotal:", 9));
    free(text);
    return 0;
}
