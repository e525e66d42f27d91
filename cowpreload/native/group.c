/* The files of a control group, and the machine's. No policy. */
#include "group.h"

#include <stdio.h>
#include <string.h>

#include "prim.h"

#define TEXT_SIZE 8192
/* What the kernel needs for page tables and stacks, as a part of the limit. */
#define KERNEL_PART 32

static int file(const struct cow_group *group, const char *name, char *text,
                size_t *length) {
    char path[COW_GROUP_TEXT + 64];
    (void)snprintf(path, sizeof path, "%s/%s", group->folder, name);
    return cow_prim_slurp(path, text, TEXT_SIZE, length);
}

static int figure(const struct cow_group *group, const char *name, uint64_t *out) {
    char text[TEXT_SIZE];
    size_t length;
    if (file(group, name, text, &length)) return COW_EUNREADABLE;
    return cow_size_parse(text, length, out);
}

static void take_machine(struct cow_room *out) {
    char text[TEXT_SIZE];
    size_t length;
    uint64_t total, available;
    if (cow_prim_slurp("/proc/meminfo", text, sizeof text, &length) ||
        cow_meminfo_parse(text, length, &total, &available) || available > total)
        return;
    out->limit = total;
    out->used = total - available;
}

static uint64_t less(uint64_t from, uint64_t what) {
    return from > what ? from - what : 0;
}

/* Version 1 counts the kernel's caches of names and inodes, and does not say how large
 * they are: a group of 64 MB that had asked for 400,000 names was full, 54 MB of it was
 * theirs, and 40 MB were to be had at once. */
static uint64_t cached_names(const struct cow_group *group, uint64_t limit) {
    uint64_t kernel;
    if (figure(group, "memory.kmem.usage_in_bytes", &kernel) != COW_OK ||
        kernel == COW_NO_LIMIT)
        return 0;
    return less(kernel, limit / KERNEL_PART);
}

static void take_group(const struct cow_group *group, struct cow_room *out) {
    int second = group->version == 2;
    char text[TEXT_SIZE];
    size_t length;
    uint64_t limit, used, files;
    if (figure(group, second ? "memory.max" : "memory.limit_in_bytes", &limit) ||
        figure(group, second ? "memory.current" : "memory.usage_in_bytes", &used))
        return;
    if (second && figure(group, "memory.high", &out->high)) out->high = COW_NO_LIMIT;
    out->limit = limit;
    out->used = used;
    /* Adding up what the processors have counted costs the kernel most of all. */
    if (cow_room_left(out) > limit / 4) return;
    if (file(group, "memory.stat", text, &length) == 0 &&
        cow_files_parse(text, length, &files) == COW_OK)
        out->used = less(used, files);
    if (!second) out->used = less(out->used, cached_names(group, limit));
}

void cow_room_take(const struct cow_group *group, struct cow_room *out) {
    char text[TEXT_SIZE];
    size_t length;
    *out = (struct cow_room){.high = COW_NO_LIMIT};
    if (group->version)
        take_group(group, out);
    else
        take_machine(out);
    /* Version 1 has no file of the group's own. */
    if ((group->version == 2 && file(group, "memory.pressure", text, &length) == 0) ||
        cow_prim_slurp("/proc/pressure/memory", text, sizeof text, &length) == 0)
        (void)cow_stall_parse(text, length, &out->stalled_us);
}

int cow_room_swaps(const struct cow_group *group) {
    char text[TEXT_SIZE];
    size_t length;
    uint64_t most, used, free;
    if (group->version == 2 && figure(group, "memory.swap.max", &most) == COW_OK &&
        figure(group, "memory.swap.current", &used) == COW_OK && used >= most)
        return 0;
    if (cow_prim_slurp("/proc/meminfo", text, sizeof text, &length)) return 1;
    return cow_swap_parse(text, length, &free) == COW_OK && free > 0;
}
