/*
 * What those share that call Python: bridge.c, stage.c, turn.c, serving.c, trial.c.
 */
#ifndef COW_BRIDGE_H
#define COW_BRIDGE_H

#include "python.h"

/* Call module.name(...); a new reference, or NULL with the traceback printed. */
PyObject *cow_call(const char *module, const char *name, const char *format, ...);

/* The number that a call gave, -1 for None and for a raised error. */
long long cow_number(PyObject *result);

/* The settings, as options.c gives them. */
extern char *cow_settings_text;

struct uwsgi_app;

/* The interpreter of an application; NULL if it is of another language. */
PyInterpreterState *cow_interpreter_of(const struct uwsgi_app *app);

/* Run `work` in every interpreter that has an application, and in the main one.
 * Called with the GIL and the main interpreter's thread state. */
typedef int (*cow_each_interpreter)(PyInterpreterState *interpreter, int is_main);
int cow_in_each_interpreter(cow_each_interpreter work);

/* trial.c, the same. */
extern PyMethodDef cow_trial_methods[];

/* serving.c, with the GIL: all of its functions and trial.c's by name, and `walk`; a
 * new reference, or NULL with an error set. */
PyObject *cow_serving_functions(PyMethodDef *walk);
/* Obey the signals that wait, if any was to; without Python. */
void cow_serving_release(void);

#endif
