/*
 * Where the fields of CPython's objects are, of the version that this was built for.
 *
 * Gives offsets in bytes, as the compiler sees them, so that a report can read the
 * objects of another process of the same version and build. The only file that needs
 * CPython's internal headers is layout.c. Needs the GIL, once, for the addresses.
 */
#ifndef COW_LAYOUT_H
#define COW_LAYOUT_H

#include "cow.h"

/* What a build option changes in the layout of every object. */
enum cow_build { COW_BUILD_DEBUG = 1, COW_BUILD_FREE_THREADED = 2 };

struct cow_layout {
    struct cow_python python; /* of this process; version 0: not supported */
    uint32_t type_name, type_flags, type_dict;
    uint32_t str_length, str_hash, str_state; /* of every compact string */
    uint32_t str_ascii_data;                  /* of a compact ASCII string */
    uint32_t str_other_data;                  /* of any other compact string */
    uint32_t bytes_hash;
    uint32_t set_hash;
    uint32_t dict_keys, dict_values;
    uint32_t code_adaptive, code_name, code_filename;
    uint32_t function_code; /* of a function object */
    uint32_t keys_kind, keys_log2_index_bytes, keys_entries, keys_indices;
    uint32_t frozen_head; /* of the collector state: the permanent generation */
    uint32_t collections; /* the same: its statistics of the oldest generation */
};

/* COW_EPARSE where this interpreter's objects are not known. */
int cow_layout(struct cow_layout *out);

#endif
