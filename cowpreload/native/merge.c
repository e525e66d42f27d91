/*
 * What the kernel may merge: see merge.h. No policy, no state, no heap.
 */
#include "merge.h"

#include <errno.h>
#include <string.h>

#include "cow.h"
#include "maps.h"
#include "prim.h"

int cow_merge_wants(const char *line, size_t size, uint64_t *start, uint64_t *end) {
    struct cow_mapping mapping;
    if (!cow_mapping_parse(line, size, &mapping) || !cow_mapping_is_heap(&mapping))
        return 0;
    *start = mapping.start;
    *end = mapping.end;
    return 1;
}

static int offer(const struct cow_mapping *mapping, void *context) {
    struct cow_merge *out = context;
    if (!cow_mapping_is_heap(mapping)) return 0;
    size_t size = mapping->end - mapping->start;
    int error = cow_prim_mergeable(mapping->start, size);
    if (error) {
        if (!out->error) out->error = (uint32_t)error;
        return 0;
    }
    out->bytes += size;
    out->ranges++;
    return 0;
}

int cow_merge_offer(struct cow_merge *out) {
    memset(out, 0, sizeof *out);
    int code = cow_maps_read(offer, out);
    if (code != COW_OK) return code;
    errno = (int)out->error;
    return out->ranges || !out->error ? COW_OK : COW_ESYSTEM;
}
