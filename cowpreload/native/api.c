/* What the uWSGI plugin gets of the core: it is not linked with it. */
#include "cow.h"
#include "immortal.h"
#include "moved.h"

void cow_api_fill(struct cow_board *board, struct cow_api *api) {
    *api = (struct cow_api){
        .revision = COW_REVISION,
        .size = sizeof *api,
        .board = board,
        .slot_free = cow_slot_free,
        .request_exit = cow_watch_request_exit,
        .immortal_walk = cow_immortal_walk,
        .strerror = cow_strerror,
        .deadline_begin = cow_deadline_begin,
        .deadline_end = cow_deadline_end,
        .flush_stdio = cow_flush_stdio,
        .end_with = cow_end_with,
        .served_note = cow_served_note,
        .heal_turn = cow_heal_turn,
    };
}
