/*
 * This process's mappings, as /proc/self/maps tells them. For merge.c, moved.c, heal.c.
 */
#ifndef COW_MAPS_H
#define COW_MAPS_H

#include <stddef.h>
#include <stdint.h>

struct cow_mapping {
    uintptr_t start, end;
    uint64_t offset; /* in the file */
    uint64_t device; /* of the file, as maps shows it: major << 32 | minor */
    uint64_t inode;  /* 0: no file is behind it */
    char access[5];  /* rw-p and the like */
    const char *name;
    size_t named; /* length of the name; it does not end with 0 */
};

/* One line, without its newline; 0 if it is none. Pure. */
int cow_mapping_parse(const char *line, size_t size, struct cow_mapping *out);

/* Whether it is private, writable memory that no file is behind, and no stack. Pure. */
int cow_mapping_is_heap(const struct cow_mapping *mapping);
int cow_mapping_named(const struct cow_mapping *mapping, const char *name);

/* Call `each` with every mapping until it gives other than 0; COW_EUNREADABLE without
 * /proc. On the stack alone: an allocation would change what is told. */
int cow_maps_read(int (*each)(const struct cow_mapping *, void *), void *context);

#endif
