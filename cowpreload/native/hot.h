/*
 * Hot code: what the interpreter has written into a code object, and how a copy of it
 * takes its place.
 *
 * Takes    code objects and functions of the main interpreter, each as its address.
 * Gives    what was seen, or a COW_E* code of cow.h; on a code other than COW_OK
 *          nothing was changed.
 * Must not make, free or keep an object, but for the references that a function holds.
 */
#ifndef COW_HOT_H
#define COW_HOT_H

#include <stdint.h>

/* What the interpreter has left in a code object. */
enum cow_code_state {
    COW_CODE_COLD = 0,     /* it has never run */
    COW_CODE_SETTLED = 1,  /* it has; each instruction that did is specialized */
    COW_CODE_TICKING = 2,  /* an instruction counts down to its next try, at each run */
    COW_CODE_BOUND = 3,    /* somebody has tied something to this very object */
    COW_CODE_COMPILED = 4, /* CPython's JIT compiled it: it may know addresses */
    COW_CODE_UNKNOWN = 5,  /* not with this interpreter, or of no known form */
};

/* What is known of instructions, by opcode: see opcodes.py. */
struct cow_opcodes {
    uint8_t length[256]; /* units of two bytes; 0: not known */
    uint8_t ran[256];    /* 1: the interpreter makes it when it runs, never before */
    uint16_t first[256]; /* the counter of one that has not run */
};

/* Look at the code object at `code`; an enum cow_code_state. */
int cow_code_state(const void *code, const struct cow_opcodes *known);

/* Write what the interpreter has left in `from` into `to`, a fresh copy of it. Takes
 * the GIL. COW_EVERSION: one is not the copy of the other, or is bound. */
int cow_code_carry(const void *from, void *to);

/* Set the code of `function`, as an assignment to __code__ does, but that whoever has
 * specialized on the function still finds it as it was: `code` does what the code that
 * it replaces did. Takes the GIL. COW_EVERSION: the assignment raised, and the
 * exception is dropped. */
int cow_function_set_code(void *function, void *code);

#endif
