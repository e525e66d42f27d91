/*
 * Python's API as the plugin uses it: weak, all of it.
 *
 * uWSGI resolves every symbol when it loads a plugin. In a binary without Python the
 * load would fail with the name of a symbol; like this it succeeds, and identity.c
 * says what to do. What any file of plugin/ calls must be listed here.
 */
#ifndef COW_PYTHON_H
#define COW_PYTHON_H

#include <Python.h>

#pragma weak Py_BuildValue
#pragma weak Py_GetVersion
#pragma weak Py_IsInitialized
#pragma weak Py_VaBuildValue
#pragma weak PyArg_ParseTuple
#pragma weak PyCMethod_New
#pragma weak PyDescr_NewGetSet
#pragma weak PyDict_New
#pragma weak PyDict_SetItemString
#pragma weak PyErr_Clear
#pragma weak PyErr_Fetch
#pragma weak PyErr_NormalizeException
#pragma weak PyErr_Print
#pragma weak PyEval_SaveThread
#pragma weak PyErr_SetFromErrno
#pragma weak PyExc_OSError
#pragma weak PyExc_SystemExit
#pragma weak PyGILState_Ensure
#pragma weak PyGILState_Release
#pragma weak PyImport_ImportModule
#pragma weak PyInterpreterState_Main
#pragma weak PyList_Append
#pragma weak PyList_New
#pragma weak PyList_SetItem
#pragma weak PyList_Type
#pragma weak PyLong_AsLongLong
#pragma weak PyLong_AsUnsignedLongMask
#pragma weak PyLong_FromLong
#pragma weak PyObject_CallMethod
#pragma weak PyObject_CallObject
#pragma weak PyObject_GetAttrString
#pragma weak PyObject_IsInstance
#pragma weak PyThreadState_Clear
#pragma weak PyThreadState_Delete
#pragma weak PyThreadState_GetInterpreter
#pragma weak PyThreadState_New
#pragma weak PyThreadState_Swap
#pragma weak PyType_GetDict
#pragma weak PyType_Modified
#pragma weak PyUnicode_AsUTF8
#pragma weak PyUnicode_DecodeLatin1
#pragma weak _Py_Dealloc
#pragma weak _Py_NoneStruct

#endif
