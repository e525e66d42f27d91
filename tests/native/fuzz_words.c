/*
 * The bytes of another process, as a report reads them: any bytes.
 *
 * Links: words.c
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define MOST 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t filter[COW_FILTER_BITS / 8];
    size_t words = size / 8, next = 0, found;
    uint64_t *memory = malloc(words * 8 + !words), out[MOST];
    memcpy(memory, data, words * 8);

    /* Each chunk is further on, and within. */
    for (uint64_t last = 0, first = 1; next < words * 8;) {
        size_t from = next;
        found = cow_words_chunks((uint8_t *)memory, words * 8, from, out, MOST, &next);
        assert(next > from || next == words * 8);
        for (size_t i = 0; i < found; i++, first = 0) {
            assert(out[i] + 16 <= words * 8 && (first || out[i] > last));
            last = out[i];
        }
    }

    size_t itself = cow_words_itself(memory, words, 4096);
    assert(itself <= words && (itself == words || itself + 2 < words));

    if (words >= 4) {
        struct cow_found hits[MOST];
        struct cow_range range = {memory[0] & 0xffffffff, 0};
        range.end = range.start + (memory[1] & 0xffff) + 1;
        memset(filter, 0, sizeof filter);
        cow_words_filter(&range, 1, filter);
        for (next = 2; next < words;) {
            size_t from = next;
            found =
                cow_words_find(memory, words, 64, &range, 1, filter, hits, MOST, &next);
            assert(found <= MOST && (next > from || found == MOST));
            for (size_t i = 0; i < found; i++)
                assert(hits[i].word >= range.start && hits[i].word < range.end);
        }
    }

    uint16_t changed[512];
    size_t half = words / 2 < 512 ? words / 2 : 512;
    assert(cow_words_changed(memory, memory + words / 2, half, changed) <= half);
    free(memory);
    return 0;
}
