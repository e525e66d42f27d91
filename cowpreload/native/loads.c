/*
 * CPython 3.14 looks at a constant when an instruction first loads it: if it is mortal
 * then, that instruction counts it from there on, up and down again and without another
 * look. So what ran before the freeze goes on writing to its constants, immortal or
 * not. (A worker of the example site copied 152 of its 1,780 private pages by that, and
 * their bytes were the master's again.)
 */
#include "loads.h"

#ifdef COW_CAN_IMMORTALIZE

#include <opcode.h>

#ifdef LOAD_CONST_MORTAL

/* Whether the instructions can be told from their caches up to the end. */
static int are_known(const uint8_t *at, const uint8_t *end, const uint8_t *lengths) {
    while (at < end && lengths[*at]) at += 2 * lengths[*at];
    return at == end;
}

void cow_settle_loads(PyObject *object, const uint8_t lengths[256]) {
    PyCodeObject *code = (PyCodeObject *)object;
    uint8_t *at = (uint8_t *)code->co_code_adaptive, *end = at + 2 * Py_SIZE(code);
    if (!are_known(at, end, lengths)) return;
    for (Py_ssize_t extended = 0, number; at < end; at += 2 * lengths[*at]) {
        number = extended << 8 | at[1];
        extended = *at == EXTENDED_ARG ? number : 0;
        if (*at == LOAD_CONST_MORTAL && number < PyTuple_GET_SIZE(code->co_consts) &&
            _Py_IsImmortal(PyTuple_GET_ITEM(code->co_consts, number)))
            *at = LOAD_CONST_IMMORTAL;
    }
}

#else

void cow_settle_loads(PyObject *code, const uint8_t lengths[256]) {
    (void)code, (void)lengths;
}

#endif

#else
typedef int cow_no_loads; /* a file of nothing is no C */
#endif
