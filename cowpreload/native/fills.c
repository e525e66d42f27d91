/*
 * What is written into an object before the fork, because whoever uses it would write
 * it: asked for through the public functions that would, in the main process.
 */
#include "fills.h"

#ifdef COW_CAN_IMMORTALIZE

#if COW_TUPLE_HAS_HASH
/* Hashing a tuple hashes its items, and some items' hash is a program. (A frozenset
 * has the hashes of its items already.) */
static int hashable_plain(PyObject *object) {
    if (PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
        PyBytes_CheckExact(object) || PyBool_Check(object) || object == Py_None)
        return 1;
    if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > 16) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
        PyObject *item = PyTuple_GET_ITEM(object, i);
        if (PyTuple_CheckExact(item) || !hashable_plain(item)) return 0;
    }
    return 1;
}
#endif

static int lacks_hash(PyObject *object) {
    if (PyUnicode_CheckExact(object)) return ((PyASCIIObject *)object)->hash == -1;
    if (PyFrozenSet_CheckExact(object)) return ((PySetObject *)object)->hash == -1;
#if COW_TUPLE_HAS_HASH
    if (PyTuple_CheckExact(object))
        return ((PyTupleObject *)object)->ob_hash == -1 && hashable_plain(object);
#endif
    return 0;
}

/* Lone surrogates have no UTF-8 form; asking would make an exception object. */
static int has_surrogates(PyObject *string) {
    if (PyUnicode_KIND(string) == PyUnicode_1BYTE_KIND) return 0;
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(string); i++)
        if (Py_UNICODE_IS_SURROGATE(PyUnicode_READ_CHAR(string, i))) return 1;
    return 0;
}

void cow_fill_object(PyObject *object, int what, struct cow_walk *out) {
    if (what & COW_FILL_HASHES && lacks_hash(object)) {
        (void)PyObject_Hash(object);
        out->hashes++;
    }
    if (what & COW_FILL_UTF8 && PyUnicode_CheckExact(object) &&
        !PyUnicode_IS_ASCII(object) && !((PyCompactUnicodeObject *)object)->utf8 &&
        !has_surrogates(object)) {
        Py_ssize_t size;
        if (!PyUnicode_AsUTF8AndSize(object, &size)) PyErr_Clear();
        out->utf8++;
    }
    if (what & COW_FILL_VERSIONS && PyType_Check(object) &&
        ((PyTypeObject *)object)->tp_version_tag == 0)
        out->versions +=
            (uint64_t)PyUnstable_Type_AssignVersionTag((PyTypeObject *)object);
}

#endif
