/*
 * Calls of Python functions, for the two files that take the GIL: bridge.c, where they
 * are, and turn.c.
 */
#ifndef COW_BRIDGE_H
#define COW_BRIDGE_H

#include "python.h"

/* Call module.name(...); a new reference, or NULL with the traceback printed. */
PyObject *cow_call(const char *module, const char *name, const char *format, ...);

/* The number that a call gave, -1 for None and for a raised error. */
long long cow_number(PyObject *result);

#endif
