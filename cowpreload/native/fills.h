/*
 * The immortal walk's fills: what a worker would write into an object that it reads.
 *
 * Takes    an object and a sum of enum cow_fill. Counts in `out` what was filled.
 * Must not track or free an object: the collector's lists are being walked.
 */
#ifndef COW_FILLS_H
#define COW_FILLS_H

#include "compat.h"
#include "immortal.h"

#ifdef COW_CAN_IMMORTALIZE
void cow_fill_object(PyObject *object, int what, struct cow_walk *out);
#endif

#endif
