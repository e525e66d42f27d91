/*
 * What bridge.c, which calls Python, shares with turn.c and serving.c.
 */
#ifndef COW_BRIDGE_H
#define COW_BRIDGE_H

#include "python.h"

/* Call module.name(...); a new reference, or NULL with the traceback printed. */
PyObject *cow_call(const char *module, const char *name, const char *format, ...);

/* The number that a call gave, -1 for None and for a raised error. */
long long cow_number(PyObject *result);

/* serving.c, with the GIL: all of its functions by name, and `walk`; a new reference,
 * or NULL with an error set. */
PyObject *cow_serving_functions(PyMethodDef *walk);
/* Obey the signals that wait, if any was to; without Python. */
void cow_serving_release(void);

#endif
