/*
 * What is left of the memory that this process shares with others: its control group's,
 * or the machine's.
 *
 * Takes  where the group's files are, as the master has found them (capacity.py). Gives
 *        figures for pressure.h. System calls only; no descriptor stays open, and no
 *        trigger of the kernel's is set: that needs one, and privileges.
 */
#ifndef COW_GROUP_H
#define COW_GROUP_H

#include "pressure.h"

/* 0.02 ms for a group with enough left, 0.03 for one without or for the machine.
 * room->limit is 0 where nothing is known. */
void cow_room_take(const struct cow_group *group, struct cow_room *out);

/* Whether the system could still move memory of the group to a disk. */
int cow_room_swaps(const struct cow_group *group);

#endif
