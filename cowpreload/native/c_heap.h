/*
 * The C heap's part of sealing: free chunks of glibc's, of any size.
 *
 * Takes the counts so far; adds to them. Gives an enum cow_unsealed. Called as
 * cow_seal() is; it starts threads that take no lock but malloc's, and ends them.
 */
#ifndef COW_C_HEAP_H
#define COW_C_HEAP_H

#include "seal.h"

int cow_c_heap_fill(struct cow_seal *out);
/* Whether malloc() is the one we know, glibc's. */
int cow_c_heap_is_known(void);

#endif
