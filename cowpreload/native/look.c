/* The bound and the guess of look.h. No policy: verdict.c has the formula. */
#include "look.h"

#include <string.h>

#include "prim.h"

/* Whether children share a mark, which they do as long as they share any page that we
 * had when they were forked. The newest mark is one that none of them has. */
static int kindred(struct cow_look *look) {
    if (look->blind) return 0;
    if (!look->marks || cow_prim_page_shared(look->mark[look->marks - 1])) {
        if (look->marks == COW_MARKS) {
            /* The oldest tells of a child that stays, the newest of those that go. */
            cow_prim_page_free(look->mark[1]);
            memmove(&look->mark[1], &look->mark[2],
                    (COW_MARKS - 2) * sizeof look->mark[0]);
            look->marks--;
        }
        void *fresh;
        if (cow_prim_page(&fresh)) return look->marks > 1;
        look->mark[look->marks++] = fresh;
        if (cow_prim_page_shared(fresh)) { /* by whom? a kernel that does not tell */
            look->blind = 1;
            while (look->marks) cow_prim_page_free(look->mark[--look->marks]);
        }
    }
    return look->marks > 1;
}

/* What was shared with children that have ended is private again, without a fault. */
static void forget_children(struct cow_look *look) {
    while (look->marks > 1 && !cow_prim_page_shared(look->mark[look->marks - 2])) {
        cow_prim_page_free(look->mark[--look->marks]);
        if (look->kindred) look->taken = 0;
    }
}

int cow_look_read(struct cow_look *look, struct cow_reading *out) {
    struct cow_traffic now;
    forget_children(look);
    (void)kindred(look);
    cow_pages_take(&look->pages);
    int code = cow_traffic_take(&now);
    if (code == COW_OK) code = cow_reading_take(0, out);
    if (code != COW_OK) return code;
    look->reading = *out;
    look->then = look->now = now;
    look->least_files = now.files;
    look->least_resident = now.resident;
    look->peeked_faults = now.faults;
    look->guess = out->private_bytes;
    look->kindred = (uint32_t)kindred(look); /* one forked meanwhile counts, too */
    look->taken = 1;
    return COW_OK;
}

uint64_t cow_look_bound(struct cow_look *look, uint64_t *alone) {
    struct cow_traffic *now = &look->now;
    forget_children(look);
    (void)kindred(look);
    *alone = UINT64_MAX;
    /* Every process has faults: none is a sandbox that does not tell. */
    if (cow_traffic_take(now) != COW_OK || !look->taken || !now->faults)
        return UINT64_MAX;
    if (now->files < look->least_files) look->least_files = now->files;
    if (now->resident < look->least_resident) look->least_resident = now->resident;
    struct cow_traffic small = *now;
    small.huge_faults = look->then.huge_faults;
    small.huge_collapses = look->then.huge_collapses;
    *alone = cow_private_bound(&look->reading, &look->pages, &look->then, &small,
                               look->least_files);
    return cow_private_bound(&look->reading, &look->pages, &look->then, now,
                             look->least_files);
}

uint64_t cow_look_guess(struct cow_look *look) {
    uint64_t resident, files, faults = cow_prim_faults();
    if (!look->taken || faults == look->peeked_faults) return look->guess;
    look->peeked_faults = faults;
    if (cow_resident(&resident, &files) != COW_OK) return look->guess;
    if (resident < look->least_resident) look->least_resident = resident;
    uint64_t copied = (faults - look->then.faults) * look->pages.page;
    uint64_t grown = resident - look->least_resident;
    look->guess = look->reading.private_bytes + (copied > grown ? copied : grown);
    return look->guess;
}

void cow_look_end(struct cow_look *look) {
    while (look->marks) cow_prim_page_free(look->mark[--look->marks]);
    memset(look, 0, sizeof *look);
}
