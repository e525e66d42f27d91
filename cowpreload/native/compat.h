/*
 * Every difference between versions of CPython, each with its reason.
 *
 * Takes the interpreter's public headers; gives COW_IMMORTAL_WHY_NOT ("" where a heap
 * can be made immortal), and how. Includes no internal header of CPython.
 */
#ifndef COW_COMPAT_H
#define COW_COMPAT_H

/* build.py says which interpreter this is: PyPy has a Python.h of its own, in which
 * counts are no part of an object. */
#ifdef COW_CPYTHON
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif

#if !defined(COW_CPYTHON)
#define COW_IMMORTAL_WHY_NOT "only CPython writes reference counts into its objects"
#elif PY_VERSION_HEX < 0x030C0000
#define COW_IMMORTAL_WHY_NOT \
    "CPython before 3.12 has no immortal objects: reading one writes its count"
#elif PY_VERSION_HEX >= 0x03100000
#define COW_IMMORTAL_WHY_NOT \
    "this CPython is newer than those that were tested, 3.12 to 3.15"
#elif defined(Py_GIL_DISABLED)
/* It counts in two fields, one of them only for the thread that made the object. */
#define COW_IMMORTAL_WHY_NOT "a free-threaded build counts elsewhere"
#elif UINTPTR_MAX != UINT64_MAX
#define COW_IMMORTAL_WHY_NOT "only tested on 64 bits"
#else
#define COW_IMMORTAL_WHY_NOT ""
#define COW_CAN_IMMORTALIZE 1
#endif

#ifdef COW_CAN_IMMORTALIZE

#if PY_VERSION_HEX < 0x030E0000
/* 3.12 and 3.13: this very count is neither raised nor lowered. One that is merely
 * large and negative is raised until it gets here, that is, written. */
static inline void cow_make_immortal(PyObject *object) {
    object->ob_refcnt = _Py_IMMORTAL_REFCNT;
}
#else
/* 3.14 and 3.15: a count above this one drifts, as above. And the interpreter's stack
 * tags its references by a flag of the object; without it, loading a local variable
 * raises the count without a look at it (measured: 86 MB copied instead of 3). */
static inline void cow_make_immortal(PyObject *object) {
    object->ob_flags |= _Py_IMMORTAL_FLAGS;
    object->ob_refcnt = _Py_IMMORTAL_INITIAL_REFCNT;
}
#endif

#ifdef Py_DEBUG
/* Debug builds of 3.13 and newer abort at the first use of a string that is immortal
 * but not interned for ever (_PyUnicode_CheckConsistency). What is interned is said to
 * be so for ever, which is true; other strings stay mortal there: reading them copies
 * their pages, and nothing else changes. */
static inline int cow_must_stay_mortal(PyObject *object) {
    if (!PyUnicode_Check(object)) return 0;
    if (!PyUnicode_CHECK_INTERNED(object)) return 1;
    ((PyASCIIObject *)object)->state.interned = SSTATE_INTERNED_IMMORTAL;
    return 0;
}
#else
static inline int cow_must_stay_mortal(PyObject *object) {
    (void)object;
    return 0;
}
#endif

/* What is written into an object when it is counted, whichever fields it has. */
static inline uint64_t cow_count_word(const PyObject *object) {
    uint64_t word;
    memcpy(&word, object, sizeof word);
    return word;
}

/* Whether a tuple remembers its hash: new in 3.14, and one more write. */
#define COW_TUPLE_HAS_HASH (PY_VERSION_HEX >= 0x030E0000)

#endif
#endif
