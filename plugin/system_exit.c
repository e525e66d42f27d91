/*
 * An application's SystemExit in a request, a mule or a spooler.
 *
 * uWSGI prints what its Python raises, and printing a SystemExit is Py_Exit(): it would
 * finalize the shared heap, and only then come to exit() and our handler, which needs
 * Python. So what Py_Exit() does first, threading._shutdown(), brings us to exit()
 * before; there every way out is the same. Its code is known only in passing: it is the
 * exception's attribute `code`, read by the same thread right before. Where that was
 * not seen (a subclass with a `code` of its own, and sys.exit() before 3.12, where no
 * heap is immortal), Python is finalized as without us.
 */
#include <pthread.h>

#include "python.h"

#include "plugin.h"

static __thread int code_read = -1; /* what Py_Exit() would be called with */

static PyObject *get_code(PyObject *self, void *unused) {
    PyObject *code = ((PySystemExitObject *)self)->code;
    if (!code || code == Py_None)
        code_read = 0;
    else if (PyLong_Check(code))
        code_read = (int)(PyLong_AsUnsignedLongMask(code) & 0xff);
    else
        code_read = 1; /* a text, which is printed */
    if (!code) code = Py_None;
    Py_INCREF(code);
    return code;
}

static int set_code(PyObject *self, PyObject *value, void *unused) {
    PyObject *before = ((PySystemExitObject *)self)->code;
    Py_XINCREF(value);
    ((PySystemExitObject *)self)->code = value;
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef code_attribute = {"code", get_code, set_code, "exception code",
                                     NULL};

/* In place of the plain member, which subclasses inherit. */
static void watch_code(void) {
    PyTypeObject *type = (PyTypeObject *)PyExc_SystemExit;
    PyObject *descriptor = PyDescr_NewGetSet(type, &code_attribute);
#if PY_VERSION_HEX < 0x030C0000
    PyObject *dict = type->tp_dict;
    Py_XINCREF(dict);
#else
    PyObject *dict = PyType_GetDict(type); /* each interpreter has its own */
#endif
    if (!descriptor || !dict || PyDict_SetItemString(dict, "code", descriptor))
        PyErr_Clear();
    PyType_Modified(type);
    Py_XDECREF(dict);
    Py_XDECREF(descriptor);
}

/* Called by threading._shutdown(). Returns where Python may go on: in our own exit
 * handlers, in processes that are not ours to end, and where no code was seen. */
static PyObject *at_shutdown(PyObject *unused, PyObject *none) {
    if (code_read >= 0 && cow_worker_leaves_fast() && !cow_bridge_handlers_are_mine()) {
        (void)PyEval_SaveThread();
        exit(code_read);
    }
    Py_RETURN_NONE;
}

static PyMethodDef at_shutdown_method = {"at_shutdown", at_shutdown, METH_NOARGS, NULL};

void cow_system_exit_hook(void) {
    watch_code();
    PyObject *function = PyCFunction_New(&at_shutdown_method, NULL);
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *done = NULL;
    if (function && threading)
        done = PyObject_CallMethod(threading, "_register_atexit", "O", function);
    if (!done) PyErr_Clear(); /* then it is finalized too, and exit() copes */
    Py_XDECREF(done);
    Py_XDECREF(threading);
    Py_XDECREF(function);
}

/* uWSGI does not look at what a mule's function raised. From 3.13 on its finalization
 * comes upon it, and the mule ends with that code; before, with uWSGI's own. */
int cow_system_exit_pending(void) {
    PyObject *type, *value, *trace, *code = NULL;
    int pending = -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && PyObject_IsInstance(value, PyExc_SystemExit) == 1)
        code = PyObject_GetAttrString(value, "code");
    if (code && PY_VERSION_HEX >= 0x030D0000) pending = code_read;
    Py_XDECREF(code);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return pending;
}
