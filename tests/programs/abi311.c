/*
 * An extension as one compiled for the stable ABI of 3.11: it counts references in all
 * objects, the immortal ones too. Its two macros do what Python.h of 3.11 did: add to
 * the whole word, free at zero.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static void old_incref(PyObject *object, Py_ssize_t times) {
    *(volatile Py_ssize_t *)object += times;
}

static void old_decref(PyObject *object) {
    if (--*(volatile Py_ssize_t *)object == 0) _Py_Dealloc(object);
}

/* take(object, n): hold n references, as n old increments. */
static PyObject *take(PyObject *self, PyObject *arguments) {
    PyObject *object;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(arguments, "On", &object, &times)) return NULL;
    old_incref(object, times);
    Py_RETURN_NONE;
}

/* release(object, n): give n up. All but the last few in one step. */
static PyObject *release(PyObject *self, PyObject *arguments) {
    PyObject *object;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(arguments, "On", &object, &times)) return NULL;
    Py_ssize_t few = times < 1000 ? times : 1000;
    *(volatile Py_ssize_t *)object -= times - few;
    while (few--) old_decref(object);
    Py_RETURN_NONE;
}

/* get_and_release(object, n): n times, a reference from Python (which does not count
 * one of an immortal object) that this extension gives up. */
static PyObject *get_and_release(PyObject *self, PyObject *arguments) {
    PyObject *object;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(arguments, "On", &object, &times)) return NULL;
    while (times--) {
        Py_INCREF(object);
        old_decref(object);
    }
    Py_RETURN_NONE;
}

/* take_and_return(object, n): n times, a new reference that Python gives up. */
static PyObject *take_and_return(PyObject *self, PyObject *arguments) {
    PyObject *object;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(arguments, "On", &object, &times)) return NULL;
    while (times--) {
        old_incref(object, 1);
        Py_DECREF(object);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"take", take, METH_VARARGS, NULL},
    {"release", release, METH_VARARGS, NULL},
    {"get_and_release", get_and_release, METH_VARARGS, NULL},
    {"take_and_return", take_and_return, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "abi311", NULL, -1, methods};

PyMODINIT_FUNC PyInit_abi311(void) { return PyModule_Create(&module); }
