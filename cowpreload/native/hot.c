/*
 * What the specializing interpreter keeps in code objects and functions; public fields
 * alone, and the form of instructions as opcodes.py tells it.
 */
#include "hot.h"

#include <string.h>

#include "compat.h"
#include "cow.h"

#ifdef COW_CAN_IMMORTALIZE /* the same interpreters were tested */

static int is_compiled(const PyCodeObject *code) {
#if PY_VERSION_HEX >= 0x030D0000
    return code->co_executors != NULL;
#else
    (void)code;
    return 0;
#endif
}

/* Tools that count lines or calls, debuggers, compilers, weak references. */
static int is_bound(const PyCodeObject *code) {
    return code->_co_monitoring || code->co_extra || code->co_weakreflist;
}

int cow_code_state(const void *object, const struct cow_opcodes *known) {
    const PyCodeObject *code = object;
    const uint8_t *at = (const uint8_t *)code->co_code_adaptive;
    const uint8_t *end = at + 2 * Py_SIZE(code);
    int ran = 0, ticking = 0;
    if (is_compiled(code)) return COW_CODE_COMPILED;
    if (is_bound(code)) return COW_CODE_BOUND;
    for (; at < end && known->length[*at]; at += 2 * known->length[*at]) {
        uint16_t counter;
        ran |= known->ran[*at];
        if (known->ran[*at] || known->length[*at] == 1 || at + 4 > end) continue;
        memcpy(&counter, at + 2, sizeof counter);
        ticking |= counter != known->first[*at];
    }
    if (at != end) return COW_CODE_UNKNOWN;
    return ticking ? COW_CODE_TICKING : ran ? COW_CODE_SETTLED : COW_CODE_COLD;
}

static int is_copy(const PyCodeObject *from, const PyCodeObject *to) {
    return Py_SIZE(from) == Py_SIZE(to) && from->co_flags == to->co_flags &&
           from->co_framesize == to->co_framesize &&
           from->co_nlocalsplus == to->co_nlocalsplus &&
           from->co_names == to->co_names &&
           from->_co_firsttraceable == to->_co_firsttraceable;
}

int cow_code_carry(const void *from_object, void *to_object) {
    const PyCodeObject *from = from_object;
    PyCodeObject *to = to_object;
    PyGILState_STATE gil = PyGILState_Ensure();
    int fits =
        is_copy(from, to) && !is_bound(from) && !is_bound(to) && !is_compiled(from);
    if (fits) {
        memcpy(to->co_code_adaptive, from->co_code_adaptive, 2 * (size_t)Py_SIZE(to));
        /* Functions that are made from now on are as those that were made before. */
        to->co_version = from->co_version;
        to->_co_instrumentation_version = from->_co_instrumentation_version;
    }
    PyGILState_Release(gil);
    return fits ? COW_OK : COW_EVERSION;
}

int cow_function_set_code(void *object, void *code) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyFunctionObject *function = object;
    uint32_t version = function->func_version;
    int failed = PyObject_SetAttrString(object, "__code__", code) != 0;
    if (failed) PyErr_Clear();
    /* Else each call that is specialized on it would have to be anew; 3.14 and newer
     * would never do it. */
    else if (function->func_code == code)
        function->func_version = version;
    PyGILState_Release(gil);
    return failed ? COW_EVERSION : COW_OK;
}

#else

int cow_code_state(const void *code, const struct cow_opcodes *known) {
    (void)code, (void)known;
    return COW_CODE_UNKNOWN;
}

int cow_code_carry(const void *from, void *to) {
    (void)from, (void)to;
    return COW_EVERSION;
}

int cow_function_set_code(void *function, void *code) {
    (void)function, (void)code;
    return COW_EVERSION;
}

#endif
