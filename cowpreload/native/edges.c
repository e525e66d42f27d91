/*
 * The edges that the collector does not follow, each found by a worker that copied
 * pages of objects which were still counted.
 */
#include "edges.h"

#ifdef COW_CAN_IMMORTALIZE

#include <datetime.h>

#define VISIT(field) \
    if (field) (void)visit((PyObject *)(field), argument)

/* datetime's public struct and macros know where the zone is; its import is the
 * application's business. Its types are static: one for all interpreters. */
void cow_types_init(struct cow_types *types, PyObject *ask, PyObject *mortal) {
    *types = (struct cow_types){.ask = ask, .mortal = mortal};
    if (!PyDict_GetItemString(PyImport_GetModuleDict(), "datetime")) return;
    PyDateTime_IMPORT;
    if (!PyDateTimeAPI) {
        PyErr_Clear();
        return;
    }
    types->date_time = PyDateTimeAPI->DateTimeType;
    types->time = PyDateTimeAPI->TimeType;
}

static int is_a(PyTypeObject *type, PyObject *kinds) {
    for (Py_ssize_t i = 0; kinds && i < PyTuple_GET_SIZE(kinds); i++)
        if (PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(kinds, i)))
            return 1;
    return 0;
}

static int holds_object(const PyMemberDef *member) {
    return (member->type == Py_T_OBJECT_EX || member->type == _Py_T_OBJECT) &&
           !(member->flags & Py_RELATIVE_OFFSET);
}

static int has_members(const PyTypeObject *type) {
    for (; type; type = type->tp_base)
        for (const PyMemberDef *member = type->tp_members; member && member->name;
             member++)
            if (holds_object(member)) return 1;
    return 0;
}

int cow_types_learn(struct cow_types *types, PyTypeObject *type) {
    int edges = 0;
    if (type == &PyCode_Type)
        edges = COW_EDGE_CODE;
    else if (!PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC) && has_members(type))
        edges = COW_EDGE_MEMBERS;
    if ((types->date_time && PyType_IsSubtype(type, types->date_time)) ||
        (types->time && PyType_IsSubtype(type, types->time)))
        edges |= COW_EDGE_ZONE;
    if (is_a(type, types->ask)) edges |= COW_EDGE_ASK;
    if (is_a(type, types->mortal)) edges |= COW_STAYS_MORTAL;
    uintptr_t at = ((uintptr_t)type >> 4 ^ (uintptr_t)type >> 12) % COW_TYPES_CACHED;
    types->cached[at].type = type;
    types->cached[at].edges = edges;
    return edges;
}

static void visit_code(PyCodeObject *code, visitproc visit, void *argument) {
    VISIT(code->co_consts);
    VISIT(code->co_names);
    VISIT(code->co_exceptiontable);
    VISIT(code->co_localsplusnames);
    VISIT(code->co_localspluskinds);
    VISIT(code->co_filename);
    VISIT(code->co_name);
    VISIT(code->co_qualname);
    VISIT(code->co_linetable);
}

/* What getattr() would give: ranges, msgspec's structs without gc, and the like. */
static void visit_members(PyObject *object, visitproc visit, void *argument) {
    for (PyTypeObject *type = Py_TYPE(object); type; type = type->tp_base)
        for (PyMemberDef *member = type->tp_members; member && member->name; member++)
            if (holds_object(member))
                VISIT(*(PyObject **)((char *)object + member->offset));
}

static void visit_zone(PyObject *object, visitproc visit, void *argument) {
    PyObject *zone = PyDateTime_Check(object) ? PyDateTime_DATE_GET_TZINFO(object)
                                              : PyDateTime_TIME_GET_TZINFO(object);
    VISIT(zone);
}

void cow_visit_edges(PyObject *object, int edges, visitproc visit, void *argument) {
    if (edges & COW_EDGE_CODE) visit_code((PyCodeObject *)object, visit, argument);
    if (edges & COW_EDGE_MEMBERS) visit_members(object, visit, argument);
    if (edges & COW_EDGE_ZONE) visit_zone(object, visit, argument);
}

void cow_visit_static_type(PyTypeObject *type, visitproc visit, void *argument) {
    PyObject *dict = PyType_GetDict(type); /* of this interpreter; a new reference */
    VISIT(dict);
    Py_XDECREF(dict);
    VISIT(type->tp_bases);
    VISIT(type->tp_mro);
    VISIT(type->tp_base);
}

void cow_visit_untraversed(PyObject *object, visitproc visit, void *argument) {
    if (PyDict_Check(object)) {
        PyObject *key;
        Py_ssize_t at = 0;
        while (PyDict_Next(object, &at, &key, NULL)) (void)visit(key, argument);
    } else if (PyFunction_Check(object)) {
        VISIT(((PyFunctionObject *)object)->func_name);
        VISIT(((PyFunctionObject *)object)->func_qualname);
    } else if (PyType_Check(object)) {
        VISIT(((PyHeapTypeObject *)object)->ht_name);
        VISIT(((PyHeapTypeObject *)object)->ht_qualname);
        VISIT(((PyHeapTypeObject *)object)->ht_slots);
    }
}

#else
typedef int cow_no_edges; /* a file of nothing is no C */
#endif
