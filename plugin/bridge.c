/*
 * From uWSGI to cowpreload.hosts.uwsgi: this file and turn.c take the GIL.
 *
 * uWSGI holds it in some phases and not in others; PyGILState_Ensure copes with
 * both. Further interpreters are entered with a thread state of their own, so that
 * a request that runs in one of them on another thread is not disturbed.
 */
#include <pthread.h>

#include "bridge.h"
#include "cow_build.h"
#include "plugin.h"

#define HOST "cowpreload.hosts.uwsgi"
#define APPS "cowpreload.hosts.uwsgi_apps"

char *cow_settings_text;
static int exits_fast;
static int after_request;
static int handlers_begun;
static pthread_t handlers_thread;
static int pending_code = -1;

PyObject *cow_call(const char *module, const char *name, const char *format, ...) {
    PyObject *result = NULL;
    PyObject *home = PyImport_ImportModule(module);
    PyObject *function = home ? PyObject_GetAttrString(home, name) : NULL;
    va_list arguments;
    va_start(arguments, format);
    PyObject *tuple = function ? Py_VaBuildValue(format, arguments) : NULL;
    va_end(arguments);
    if (tuple) result = PyObject_CallObject(function, tuple);
    if (!result) PyErr_Print();
    Py_XDECREF(tuple);
    Py_XDECREF(function);
    Py_XDECREF(home);
    return result;
}

long long cow_number(PyObject *result) {
    if (!result) return -1;
    long long value = result == Py_None ? -1 : PyLong_AsLongLong(result);
    Py_DECREF(result);
    return value;
}

struct cow_api *cow_bridge_configure(void) {
    cow_settings_text = cow_options_text();
    PyGILState_STATE gil = PyGILState_Ensure();
    long long address = cow_number(
        cow_call(HOST, "configure", "(ssiiiii)", cow_settings_text, COW_BUILD_VERSION,
                 uwsgi.numproc, uwsgi.lazy || uwsgi.lazy_apps, uwsgi.master_process,
                 uwsgi.async > 1 || uwsgi.loop != NULL, cow_options_event_log()));
    if (address > 0) exits_fast = cow_number(cow_call(HOST, "exits_fast", "()")) == 1;
    if (address > 0)
        after_request = (int)cow_number(cow_call(HOST, "after_request", "()"));
    if (after_request < 0) after_request = 0;
    PyGILState_Release(gil);
    return address > 0 ? (struct cow_api *)(uintptr_t)address : NULL;
}

int cow_bridge_exits_fast(void) { return exits_fast; }

int cow_bridge_notes(void) { return after_request & 1; }

int cow_bridge_heals(void) { return after_request & 2; }

PyInterpreterState *cow_interpreter_of(const struct uwsgi_app *app) {
    return app->modifier1 == 0 ? PyThreadState_GetInterpreter(app->interpreter) : NULL;
}

int cow_in_each_interpreter(cow_each_interpreter work) {
    struct uwsgi_app *apps = uwsgi.workers[uwsgi.mywid].apps;
    int count = uwsgi.workers[uwsgi.mywid].apps_cnt, code;
    PyInterpreterState *main_interpreter = PyInterpreterState_Main();
    for (int i = 0; i < count; i++) {
        PyInterpreterState *here = cow_interpreter_of(&apps[i]);
        int seen = !here || here == main_interpreter;
        for (int j = 0; j < i && !seen; j++)
            seen = here == cow_interpreter_of(&apps[j]);
        if (seen) continue;
        PyThreadState *inner = PyThreadState_New(here);
        PyThreadState *outer = PyThreadState_Swap(inner);
        code = work(here, 0);
        PyThreadState_Clear(inner);
        PyThreadState_Swap(outer);
        PyThreadState_Delete(inner);
        if (code) return code;
    }
    return work(main_interpreter, 1);
}

static int begin(PyInterpreterState *here, int is_main) {
    return cow_number(cow_call(APPS, "begin", "(s)", cow_settings_text)) < 0 ? -1 : 0;
}

int cow_bridge_begin(void) {
    struct uwsgi_worker *worker = &uwsgi.workers[uwsgi.mywid];
    PyGILState_STATE gil = PyGILState_Ensure();
    int code = cow_in_each_interpreter(begin);
    if (!code)
        code = cow_number(cow_call(
                   HOST, "begin", "(iiKKKK)", uwsgi.mywid, uwsgi.worker_reload_mercy,
                   (unsigned long long)(uintptr_t)cow_worker_ask_to_leave,
                   (unsigned long long)(uintptr_t)cow_worker_exit_now,
                   (unsigned long long)(uintptr_t)&worker->delta_requests,
                   (unsigned long long)(uintptr_t)cow_worker_busy)) < 0
                   ? -1
                   : 0;
    PyGILState_Release(gil);
    return code;
}

static int after_fork(PyInterpreterState *here, int is_main) {
    return cow_number(cow_call(APPS, "after_fork", "()")) < 0 ? -1 : 0;
}

int cow_bridge_after_fork(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int code = cow_in_each_interpreter(after_fork);
    if (code) Py_XDECREF(cow_call(HOST, "after_fork_failed", "(i)", uwsgi.mywid));
    PyGILState_Release(gil);
    return code;
}

int cow_bridge_ready(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int code = cow_number(cow_call(HOST, "ready", "()")) < 0 ? -1 : 0;
    PyGILState_Release(gil);
    return code;
}

static int run_handlers(PyInterpreterState *here, int is_main) {
    Py_XDECREF(cow_call(APPS, "run_exit_handlers", "()"));
    return 0;
}

static int flush_files(PyInterpreterState *here, int is_main) {
    Py_XDECREF(cow_call(APPS, "flush", "(i)", 0));
    return 0;
}

static int flush_the_rest(PyInterpreterState *here, int is_main) {
    Py_XDECREF(cow_call(APPS, "flush", "(i)", 1));
    return 0;
}

void cow_bridge_flush(int code) {
    (void)cow_api->deadline_begin(code);
    (void)cow_in_each_interpreter(flush_files);
    cow_api->flush_stdio();
    (void)cow_in_each_interpreter(flush_the_rest);
    cow_api->deadline_end();
}

static int unfreeze(PyInterpreterState *here, int is_main) {
    return cow_number(cow_call(APPS, "unfreeze", "()")) < 0 ? -1 : 0;
}

void cow_bridge_unfreeze(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    (void)cow_in_each_interpreter(unfreeze);
    PyGILState_Release(gil);
}

int cow_bridge_handlers_are_mine(void) {
    if (!handlers_begun) return 0;
    if (pthread_equal(handlers_thread, pthread_self())) return 1;
    (void)PyEval_SaveThread();
    for (;;) pause();
}

int cow_bridge_pending_code(void) { return pending_code; }

int cow_bridge_exit_handlers(volatile int *taken) {
    (void)PyGILState_Ensure(); /* never given back: the process ends */
    *taken = 1;
    /* Two threads can come here: the main one at its end, and the one that leaves
     * although requests are in flight. The GIL orders them. */
    if (handlers_begun++) {
        (void)PyEval_SaveThread();
        return -1;
    }
    handlers_thread = pthread_self();
    pending_code = cow_system_exit_pending();
    Py_XDECREF(cow_call(HOST, "leaving", "()"));
    return cow_in_each_interpreter(run_handlers);
}
