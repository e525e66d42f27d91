/*
 * The stages before the first fork, in the master: warm up, audit, freeze, seal; each
 * in every interpreter that has an application, the main one last.
 */
#include "bridge.h"
#include "plugin.h"

#define HOST "cowpreload.hosts.uwsgi"
#define APPS "cowpreload.hosts.uwsgi_apps"
#define WARMUP "cowpreload.hosts.uwsgi_warmup"
#define PLUGIN "cowpreload.hosts.uwsgi_plugin"

static long long warmed, of_file, of_routes, findings, frozen, freeze_ms;
static unsigned long long immortal;
static int wants_immortal;
static PyObject *known; /* by the main interpreter, a text */

int cow_bridge_immortal(void) { return immortal > 0; }

/* All mount points, so that each application warms the paths that are its own. */
static PyObject *mount_points(void) {
    struct uwsgi_app *apps = uwsgi.workers[uwsgi.mywid].apps;
    int count = uwsgi.workers[uwsgi.mywid].apps_cnt;
    PyObject *names = PyList_New(count);
    for (int i = 0; names && i < count; i++)
        PyList_SetItem(names, i,
                       PyUnicode_DecodeLatin1(apps[i].mountpoint,
                                              apps[i].mountpoint_len, "replace"));
    return names;
}

static int hook(PyInterpreterState *here, int is_main) {
    cow_system_exit_hook();
    return 0;
}

static int warm(PyInterpreterState *here, int is_main) {
    struct uwsgi_app *apps = uwsgi.workers[uwsgi.mywid].apps;
    for (int i = 0; i < uwsgi.workers[uwsgi.mywid].apps_cnt; i++) {
        if (cow_interpreter_of(&apps[i]) != here) continue;
        /* Interpreters share no object. */
        PyObject *done =
            cow_call(WARMUP, "warm", "(sOiNiis)", cow_settings_text, apps[i].callable,
                     i, mount_points(), uwsgi.default_app, uwsgi.manage_script_name,
                     PyUnicode_AsUTF8(known));
        long long requests, file, routes;
        int refused = !done || done == Py_None ||
                      !PyArg_ParseTuple(done, "LLL", &requests, &file, &routes);
        Py_XDECREF(done);
        if (refused) return -1;
        warmed += requests;
        of_file += file;
        of_routes += routes;
    }
    return 0;
}

static int settle(PyInterpreterState *here, int is_main) {
    long long found =
        cow_number(cow_call(APPS, "settle", "(si)", cow_settings_text, is_main));
    if (found < 0) return -1;
    findings += found;
    return 0;
}

/* uWSGI calls an application with a tuple that it fills anew for each request, which
 * Python only allows for one that nobody else holds: an immortal one is refused. */
static void keep_arguments(PyObject *keep) {
    struct uwsgi_app *apps = uwsgi.workers[uwsgi.mywid].apps;
    for (int i = 0; i < uwsgi.workers[uwsgi.mywid].apps_cnt; i++)
        for (int core = 0; cow_interpreter_of(&apps[i]) && core < uwsgi.cores; core++)
            if (PyList_Append(keep, apps[i].args[core])) PyErr_Print();
}

/* The walk as freezing.py takes it: over the interpreter that calls it. */
static PyObject *walk(PyObject *unused, PyObject *arguments) {
    struct cow_walk out;
    PyObject *keep, *held;
    if (!PyArg_ParseTuple(arguments, "OO", &keep, &held)) return NULL;
    keep_arguments(keep);
    int code = cow_api->immortal_walk(keep, held, COW_FILL_DEFAULT, &out);
    immortal += out.objects;
    return Py_BuildValue("(sKKKKK)", code ? cow_api->strerror(code) : "", out.objects,
                         out.kept, out.hashes, out.utf8, out.versions);
}

static PyMethodDef walk_method = {"walk", walk, METH_VARARGS, NULL};

static int meet(PyInterpreterState *here, int is_main) {
    PyObject *functions = cow_serving_functions(&walk_method);
    return cow_number(cow_call(PLUGIN, "meet", "(N)", functions)) < 0 ? -1 : 0;
}

static int freeze(PyInterpreterState *here, int is_main) {
    PyObject *function = wants_immortal ? PyCFunction_New(&walk_method, NULL) : NULL;
    struct timespec began, over;
    clock_gettime(CLOCK_MONOTONIC, &began);
    long long objects = cow_number(cow_call(
        APPS, "freeze_here", "(sO)", cow_settings_text, function ? function : Py_None));
    Py_XDECREF(function);
    if (objects < 0) return -1;
    clock_gettime(CLOCK_MONOTONIC, &over);
    frozen += objects;
    freeze_ms +=
        (over.tv_sec - began.tv_sec) * 1000 + (over.tv_nsec - began.tv_nsec) / 1000000;
    return 0;
}

int cow_bridge_stage(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int code = cow_in_each_interpreter(meet);
    Py_XDECREF(cow_call(WARMUP, "name_unserved", "(sNi)", cow_settings_text,
                        mount_points(), uwsgi.default_app));
    if (!code) known = cow_call(HOST, "loaded", "(N)", mount_points());
    if (!known || known == Py_None) code = -1;
    if (!code) code = cow_in_each_interpreter(warm);
    Py_CLEAR(known);
    if (!code) {
        PyObject *done = cow_call(HOST, "warmed", "(LLL)", warmed, of_file, of_routes);
        code = cow_number(done) < 0 ? -1 : 0;
    }
    if (!code) code = cow_in_each_interpreter(settle);
    if (!code && cow_number(cow_call(HOST, "allow_fork", "(L)", findings)) < 0)
        code = -1;
    if (!code) wants_immortal = cow_number(cow_call(HOST, "immortal", "()")) == 1;
    if (!code) code = cow_in_each_interpreter(hook);
    if (!code) code = cow_in_each_interpreter(freeze);
    if (!code && cow_number(cow_call(HOST, "sealed", "(LLLKL)", warmed, findings,
                                     frozen, immortal, freeze_ms)) < 0)
        code = -1;
    PyGILState_Release(gil);
    return code;
}
