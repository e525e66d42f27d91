/*
 * What a report does with the bytes of two processes, where Python would take minutes.
 * Pure: no state, no system call, no heap. Words are 8 bytes, addresses the other
 * process's.
 */
#ifndef COW_WORDS_H
#define COW_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* Indexes of the words that differ, at most `words` of them; their number. Pure. */
size_t cow_words_changed(const uint64_t *ours, const uint64_t *theirs, size_t words,
                         uint16_t *out);

/* Where the words that are looked for point: from `start` to before `end`. */
struct cow_range {
    uint64_t start;
    uint64_t end;
};
/* A filter for cow_words_find(): which of COW_FILTER_BITS hashes `wanted` has. */
#define COW_FILTER_BITS (1u << 22)
void cow_words_filter(const struct cow_range *wanted, size_t count, uint8_t *filter);

struct cow_found {
    uint64_t at; /* address of the word */
    uint64_t word;
    uint64_t range; /* the index of what it points into */
};
/* The words of a piece of memory at `base` that point into one of `wanted` (ascending,
 * apart), at most `most` of them. *next is the index to go on from, `words` at the end.
 * Pure. */
size_t cow_words_find(const uint64_t *memory, size_t words, uint64_t base,
                      const struct cow_range *wanted, size_t count,
                      const uint8_t *filter, struct cow_found *out, size_t most,
                      size_t *next);

/* The index of a word that holds its own address, as does the second one after it (a
 * thread control block on x86-64), in memory at `base`; `words` if none does. Pure. */
size_t cow_words_itself(const uint64_t *memory, size_t words, uint64_t base);

/* The chunks of glibc's malloc from `from` on, an offset into a heap that was read
 * whole: offsets in `out`, at most `most`. *next is where to go on from, `size`
 * at the end or where the chain breaks. Pure. */
size_t cow_words_chunks(const uint8_t *memory, size_t size, size_t from, uint64_t *out,
                        size_t most, size_t *next);

#endif
