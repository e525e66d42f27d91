/*
 * The inner loops of a report; see words.h.
 */
#include <string.h>

#include "words.h"

size_t cow_words_changed(const uint64_t *ours, const uint64_t *theirs, size_t words,
                         uint16_t *out) {
    size_t count = 0;
    for (size_t i = 0; i < words; i++)
        if (ours[i] != theirs[i]) out[count++] = (uint16_t)i;
    return count;
}

/* By page: what is wanted are whole blocks. Fibonacci hashing spreads the pages. */
static uint32_t hash_of(uint64_t word) {
    return (uint32_t)((word >> 12) * 0x9e3779b97f4a7c15ull >> 42);
}

void cow_words_filter(const struct cow_range *wanted, size_t count, uint8_t *filter) {
    memset(filter, 0, COW_FILTER_BITS / 8);
    for (size_t i = 0; i < count; i++)
        for (uint64_t at = wanted[i].start & ~(uint64_t)4095; at < wanted[i].end;
             at += 4096) {
            uint32_t hash = hash_of(at);
            filter[hash >> 3] |= (uint8_t)(1u << (hash & 7));
        }
}

/* The range around `word`; `count` if there is none. */
static size_t range_of(const struct cow_range *wanted, size_t count, uint64_t word) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wanted[middle].end <= word)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && wanted[low].start <= word ? low : count;
}

size_t cow_words_find(const uint64_t *memory, size_t words, uint64_t base,
                      const struct cow_range *wanted, size_t count,
                      const uint8_t *filter, struct cow_found *out, size_t most,
                      size_t *next) {
    size_t found = 0;
    if (!count) *next = words;
    for (; *next < words && found < most; ++*next) {
        uint64_t word = memory[*next];
        if (word < wanted[0].start || word >= wanted[count - 1].end) continue;
        uint32_t hash = hash_of(word);
        if (!(filter[hash >> 3] >> (hash & 7) & 1)) continue;
        size_t range = range_of(wanted, count, word);
        if (range == count) continue;
        out[found].at = base + *next * 8;
        out[found].word = word;
        out[found++].range = range;
    }
    return found;
}

size_t cow_words_itself(const uint64_t *memory, size_t words, uint64_t base) {
    for (size_t i = 0; i + 2 < words; i++)
        if (memory[i] == base + i * 8 && memory[i + 2] == memory[i]) return i;
    return words;
}

size_t cow_words_chunks(const uint8_t *memory, size_t size, size_t from, uint64_t *out,
                        size_t most, size_t *next) {
    size_t count = 0;
    while (from + 16 <= size && count < most) {
        uint64_t field;
        memcpy(&field, memory + from + 8, sizeof field);
        uint64_t length = field & ~(uint64_t)15;
        out[count++] = from;
        /* The top chunk ends the heap; a length that cannot be ends what we can read.
         */
        if (length < 32 || length > size - from) {
            from = size;
            break;
        }
        from += length;
    }
    *next = from + 16 <= size ? from : size;
    return count;
}
