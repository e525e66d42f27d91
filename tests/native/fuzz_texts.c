/*
 * The kernel's texts, or what a sandbox gives in their place: any bytes, in pieces of
 * any length. Includes what it tries, for its static functions; /proc is `text`.
 *
 * Seeds: the texts of tests/unit/recorded, and those of this machine.
 */
#include <assert.h>
#include <stdlib.h>

#include "../../cowpreload/native/reading.c"
#include "../../cowpreload/native/traffic.c"

static const uint8_t *text;
static size_t rest, piece;

int cow_prim_open(const char *path, int *fd) {
    (void)path;
    *fd = 3;
    return 0;
}

int cow_prim_read(int fd, char *buffer, size_t size, size_t *length) {
    (void)fd;
    size_t got = size < piece ? size : piece;
    if (got > rest) got = rest;
    assert(size); /* a full buffer would be read for ever */
    memcpy(buffer, text, got);
    text += got;
    rest -= got;
    *length = got;
    return 0;
}

void cow_prim_close(int fd) { (void)fd; }

int cow_prim_slurp(const char *path, char *buffer, size_t size, size_t *length) {
    (void)path;
    *length = rest < size ? rest : size;
    memcpy(buffer, text, *length);
    return 0;
}

uint64_t cow_prim_page_size(void) { return 4096; }
uint64_t cow_prim_faults(void) { return 1; }
uint64_t cow_now_ms(void) { return 1; }

/* The same without the lines that are longer than any figure's; its size. */
static size_t short_lines(const char *data, size_t size, char *out) {
    size_t kept = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = (end ? (size_t)(end - data) + 1 : size) - at;
        if (length <= TEXT_SIZE && end) {
            memcpy(out + kept, data + at, length);
            kept += length;
        }
        at += length;
    }
    return kept;
}

static void try_smaps(const char *data, size_t size) {
    struct cow_reading whole, streamed;
    if (cow_reading_parse(data, size, &whole) == COW_OK)
        assert(whole.silent_bytes <= whole.evictable_bytes);
    char *without = malloc(size + 1);
    int code = cow_reading_parse(without, short_lines(data, size, without), &whole);
    free(without);
    text = (const uint8_t *)data;
    rest = size;
    assert(take_streamed("smaps", &streamed) == code);
    if (code == COW_OK) assert(!memcmp(&whole, &streamed, sizeof whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    piece = (size_t)data[0] * 16 + 1;
    data++;
    size--;
    char *exact = malloc(size + !size); /* so that a byte too many is seen */
    memcpy(exact, data, size);
    try_smaps(exact, size);

    uint64_t resident, files;
    (void)cow_statm_parse(exact, size, 4096, &resident, &files);
    (void)counter(exact, size, "thp_fault_alloc");
    (void)counter(exact, size, "");

    struct cow_traffic traffic;
    struct cow_pages pages;
    text = (const uint8_t *)exact;
    rest = size;
    (void)cow_traffic_take(&traffic);
    cow_pages_take(&pages);
    assert(pages.most >= pages.page &&
           (pages.huge == 0 || pages.most < pages.huge || pages.most == pages.page));
    free(exact);
    return 0;
}
