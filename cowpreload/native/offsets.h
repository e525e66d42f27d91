/*
 * Where the fields of CPython's objects are, of the version that this was built for.
 *
 * Gives offsets in bytes, as the compiler sees them, so that a report can read the
 * objects of another process of the same version and build. Needs the GIL, once, for
 * the addresses.
 *
 * An extension of its own: offsets.c is the only file that needs CPython's internal
 * headers, and where it does not compile nothing but the names in a report is missing.
 */
#ifndef COW_OFFSETS_H
#define COW_OFFSETS_H

#include "cow.h"

/* What a build option changes in where the fields of every object are. */
enum cow_build { COW_BUILD_DEBUG = 1 };

struct cow_offsets {
    struct cow_python python; /* of this process; version 0: not supported */
    uint32_t type_name, type_flags, type_dict;
    uint32_t str_length, str_hash, str_state; /* of every compact string */
    uint32_t str_ascii_data;                  /* of a compact ASCII string */
    uint32_t str_other_data;                  /* of any other compact string */
    uint32_t bytes_hash;
    uint32_t set_hash;
    uint32_t tuple_hash;      /* 3.14 on; 0: none */
    uint32_t frozendict_hash; /* 3.15 on; 0: none */
    uint32_t dict_keys, dict_values;
    uint32_t code_size, code_adaptive, code_name, code_filename, code_line;
    uint32_t function_code, function_module, function_name;
    uint32_t keys_kind, keys_log2_index_bytes, keys_entries, keys_indices;
    uint32_t frozen_head; /* of the collector state: the permanent generation */
    /* The same: how often the oldest generation was collected, the highest of as many
     * counters, so many bytes apart; behind a pointer unless that is 0. */
    uint32_t collections_pointer, collections, collections_apart, collections_count;
};

/* Why this interpreter's objects are not known; "" where they are. */
const char *cow_offsets_why_not(void);
/* COW_EPARSE where they are not. */
int cow_offsets(struct cow_offsets *out);

#endif
