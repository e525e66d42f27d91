/*
 * Instructions that load a constant, told that it has become immortal.
 *
 * Takes    a code object of the interpreter whose GIL is held, which no other thread
 *          runs, and its constants, immortal or not.
 * Gives    the same code, whose instructions do not count immortal constants.
 * Must not make, free or count an object.
 */
#ifndef COW_LOADS_H
#define COW_LOADS_H

#include "compat.h"

#ifdef COW_CAN_IMMORTALIZE

#include <stdint.h>

/* `lengths` says by opcode how many units of two bytes an instruction takes, 0 if that
 * is not known: see opcodes.py. Code with such an instruction is left as it is. */
void cow_settle_loads(PyObject *code, const uint8_t lengths[256]);

#endif
#endif
