/*
 * What hosts/uwsgi_serving.py asks of the master while its workers serve: facts of
 * uWSGI's, and the signals, which wait while Python requests pages.
 *
 * uWSGI's own handlers write to its log and tell the workers, all of that inside the
 * handler. A page that they interrupt may hold a lock that they need, and the master
 * would wait for itself.
 */
#include "bridge.h"
#include "plugin.h"

/* Those that uWSGI's master has handlers for; of two that wait, one that ends the
 * server wins over a reload. */
static const int kept[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP, SIGUSR1};
#define KEPT (sizeof kept / sizeof *kept)

static struct sigaction before[KEPT], before_child, before_alarm;
static volatile sig_atomic_t came[KEPT];
static int held;

static void note(int signal) {
    for (size_t i = 0; i < KEPT; i++) came[i] |= kept[i] == signal;
}

static PyObject *hold(PyObject *unused, PyObject *none) {
    struct sigaction ours = {.sa_handler = note, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < KEPT && !held; i++) {
        came[i] = 0;
        sigaction(kept[i], NULL, &before[i]);
        /* Not over one that is ignored. */
        if (before[i].sa_handler != SIG_IGN) sigaction(kept[i], &ours, NULL);
    }
    /* Python sets these two for a while, and back to what it knows, which is not
     * uWSGI's handler nor ours. */
    sigaction(SIGCHLD, NULL, &before_child);
    sigaction(SIGALRM, NULL, &before_alarm);
    held = 1;
    Py_RETURN_NONE;
}

void cow_serving_release(void) {
    if (!held) return;
    held = 0;
    for (size_t i = 0; i < KEPT; i++) sigaction(kept[i], &before[i], NULL);
    sigaction(SIGCHLD, &before_child, NULL);
    sigaction(SIGALRM, &before_alarm, NULL);
    for (size_t i = 0; i < KEPT; i++)
        if (came[i]) raise(kept[i]);
}

static PyObject *waits(PyObject *unused, PyObject *none) {
    long any = 0;
    for (size_t i = 0; i < KEPT; i++) any |= came[i];
    return PyLong_FromLong(held && any);
}

static PyObject *workers(PyObject *unused, PyObject *none) {
    long wanted = 0;
    for (int i = 1; i <= uwsgi.numproc; i++) wanted += !uwsgi.workers[i].cheaped;
    return PyLong_FromLong(wanted);
}

static PyObject *is_alone(PyObject *unused, PyObject *none) {
    return PyLong_FromLong(!uwsgi_instance_is_dying && !uwsgi_instance_is_reloading &&
                           !uwsgi.status.chain_reloading && !uwsgi.status.is_cheap &&
                           !uwsgi.workers[0].suspended && !cow_start_refused());
}

static PyObject *uid(PyObject *unused, PyObject *none) {
    uid_t workers = geteuid();
    if (uwsgi.master_as_root && uwsgi.uid) workers = uwsgi.uid;
    /* A name is looked up when privileges are dropped: in each worker. */
    if (uwsgi.master_as_root && uwsgi.uidname) {
        struct passwd *user = getpwnam(uwsgi.uidname);
        if (user) workers = user->pw_uid;
    }
    return PyLong_FromLong(workers);
}

/* Whether the workers' lines wait in a pipe for the master's loop to write them: what
 * does not fit is lost. */
static PyObject *writes_log(PyObject *unused, PyObject *none) {
    return PyLong_FromLong(uwsgi.log_master && !uwsgi.threaded_logger);
}

static PyMethodDef methods[] = {
    {"hold", hold, METH_NOARGS, NULL},
    {"waits", waits, METH_NOARGS, NULL},
    {"workers", workers, METH_NOARGS, NULL},
    {"is_alone", is_alone, METH_NOARGS, NULL},
    {"uid", uid, METH_NOARGS, NULL},
    {"writes_log", writes_log, METH_NOARGS, NULL},
    {NULL},
};

static int add(PyObject *functions, PyMethodDef *method) {
    PyObject *function = PyCFunction_New(method, NULL);
    int code =
        function ? PyDict_SetItemString(functions, method->ml_name, function) : -1;
    Py_XDECREF(function);
    return code;
}

PyObject *cow_serving_functions(PyMethodDef *walk) {
    PyObject *found = PyDict_New();
    int code = found ? add(found, walk) : -1;
    for (PyMethodDef *each = methods; !code && each->ml_name; each++)
        code = add(found, each);
    for (PyMethodDef *each = cow_trial_methods; !code && each->ml_name; each++)
        code = add(found, each);
    if (code) Py_CLEAR(found);
    return found;
}
