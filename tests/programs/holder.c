/*
 * An extension whose objects hold others where the collector does not see it: Holder
 * in an array of its own, Pair in two attributes that the class declares.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD;
    Py_ssize_t size;
    PyObject **items;
} Holder;

static PyObject *new_holder(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    Holder *holder = (Holder *)type->tp_alloc(type, 0);
    PyObject *items;
    if (!holder || !PyArg_ParseTuple(arguments, "O!", &PyList_Type, &items))
        return NULL;
    holder->size = PyList_GET_SIZE(items);
    holder->items = PyMem_Malloc(sizeof *holder->items * (holder->size + 1));
    for (Py_ssize_t i = 0; i < holder->size; i++)
        Py_INCREF(holder->items[i] = PyList_GET_ITEM(items, i));
    return (PyObject *)holder;
}

static PyObject *items(PyObject *self, PyObject *unused) {
    Holder *holder = (Holder *)self;
    PyObject *list = PyList_New(holder->size);
    for (Py_ssize_t i = 0; list && i < holder->size; i++) {
        Py_INCREF(holder->items[i]);
        PyList_SET_ITEM(list, i, holder->items[i]);
    }
    return list;
}

static PyMethodDef methods[] = {{"items", items, METH_NOARGS, NULL}, {NULL}};

static PyTypeObject holder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "holder.Holder",
    .tp_basicsize = sizeof(Holder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_holder,
    .tp_methods = methods,
};

typedef struct {
    PyObject_HEAD;
    PyObject *first, *second;
} Pair;

static PyMemberDef members[] = {{"first", T_OBJECT, offsetof(Pair, first), 0, NULL},
                                {"second", T_OBJECT_EX, offsetof(Pair, second), 0, NULL},
                                {NULL}};

static PyTypeObject pair_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "holder.Pair",
    .tp_basicsize = sizeof(Pair),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_members = members,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "holder", NULL, -1, NULL};

PyMODINIT_FUNC PyInit_holder(void) {
    PyObject *made = PyModule_Create(&module);
    if (PyType_Ready(&holder_type) || PyType_Ready(&pair_type)) return NULL;
    PyModule_AddObject(made, "Holder", (PyObject *)&holder_type);
    PyModule_AddObject(made, "Pair", (PyObject *)&pair_type);
    return made;
}
