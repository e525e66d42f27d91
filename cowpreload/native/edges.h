/*
 * What an object holds and the collector does not know, by its type.
 *
 * Takes    objects of the interpreter whose GIL is held.
 * Gives    each object that one holds to a visitproc, borrowed.
 * Must not make, free or count an object: the collector's lists are being walked.
 */
#ifndef COW_EDGES_H
#define COW_EDGES_H

#include "compat.h"

#ifdef COW_CAN_IMMORTALIZE

enum cow_edges {
    COW_EDGE_CODE = 1,    /* a code object: the collector knows none */
    COW_EDGE_MEMBERS = 2, /* not collected, and declares attributes that hold objects */
    COW_EDGE_ZONE = 4,    /* a datetime or time: its tzinfo */
    COW_EDGE_ASK = 8,     /* only the caller can say: see holders.py */
    COW_STAYS_MORTAL = 16 /* no edge: the caller wants all instances counted */
};

enum { COW_TYPES_CACHED = 256 };

/* Every object that is met asks for its type's edges; types are few. */
struct cow_types {
    PyObject *ask, *mortal; /* tuples of types, borrowed */
    PyTypeObject *date_time, *time;
    struct {
        PyTypeObject *type;
        int edges;
    } cached[COW_TYPES_CACHED];
};

/* Fill in what is not given: the types of the module datetime, if it is loaded. */
void cow_types_init(struct cow_types *types, PyObject *ask, PyObject *mortal);

int cow_types_learn(struct cow_types *types, PyTypeObject *type);

/* A sum of enum cow_edges; 0 for nearly all types. */
static inline int cow_edges_of(struct cow_types *types, PyTypeObject *type) {
    uintptr_t at = ((uintptr_t)type >> 4 ^ (uintptr_t)type >> 12) % COW_TYPES_CACHED;
    if (type == &PyUnicode_Type) return 0; /* half of what is met */
    if (types->cached[at].type == type) return types->cached[at].edges;
    return cow_types_learn(types, type);
}

/* Visit what `object` holds by its type's edges, but for COW_EDGE_ASK. */
void cow_visit_edges(PyObject *object, int edges, visitproc visit, void *argument);

/* A static type: the collector enters heap types alone, and tp_traverse aborts here. */
void cow_visit_static_type(PyTypeObject *type, visitproc visit, void *argument);

/* What tp_traverse leaves out because it cannot be part of a cycle: names, and the
 * keys of dicts that only have strings. */
void cow_visit_untraversed(PyObject *object, visitproc visit, void *argument);

#endif
#endif
