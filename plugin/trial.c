/*
 * The child of a trial, and the signals that come while pages are requested that nobody
 * has listed, for Python: hosts/uwsgi_forks.py.
 *
 * Where applications have interpreters of their own, Python's os.fork() will not do: in
 * the child it clears every interpreter but the main one, which hangs on 3.10 to 3.12
 * and aborts on 3.13. A plain fork() leaves them as they are, on the thread that has
 * the GIL; uWSGI forks its workers in no other way. Python sets no signal outside of
 * the main interpreter either.
 */
#include "bridge.h"
#include "plugin.h"

static int in_trial;

/* Those of a process that nobody has set up, as trial_child.py has them. uWSGI's
 * handler of a crash would run the exit handlers of the master. */
static void default_signals(void) {
    static const int ending[] = {SIGINT,  SIGTERM, SIGQUIT, SIGALRM, SIGCHLD,
                                 SIGSEGV, SIGFPE,  SIGBUS,  SIGILL,  SIGABRT};
    static const int ignored[] = {SIGHUP,  SIGUSR1,  SIGUSR2, SIGTTIN,
                                  SIGTTOU, SIGWINCH, SIGTSTP};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        (void)signal(ending[i], SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
}

/* As os.fork(), but for what Python does around it. */
static PyObject *fork_plainly(PyObject *unused, PyObject *none) {
    pid_t pid = fork();
    if (pid == 0) default_signals();
    if (pid < 0) return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLong(pid);
}

/* The child of a trial is not the master: uWSGI's exit handlers and its record of who
 * holds a lock go by this. */
static PyObject *in_child(PyObject *unused, PyObject *master) {
    /* A master that is killed must not leave it: it holds the listening sockets. */
    if (cow_api->end_with((pid_t)PyLong_AsLongLong(master))) _exit(0);
    uwsgi.mypid = getpid();
    in_trial = 1;
    cow_worker_keep_status(); /* C code of a page may call exit() */
    Py_RETURN_NONE;
}

/* It may have been killed with a lock of uWSGI's, a cache's for one; for its own
 * children, uWSGI does the same. */
static PyObject *after_child(PyObject *unused, PyObject *pid) {
    uwsgi_deadlock_check((pid_t)PyLong_AsLongLong(pid));
    Py_RETURN_NONE;
}

int cow_trial_in_child(void) { return in_trial; }

/* At a start, uWSGI ignores them until its master serves; while it loads, that is as
 * without us. Here it would last longer: they are kept, what can be left out is left
 * out, and plugin.c sends one again when handlers are set. */
static const int kept[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
#define KEPT (sizeof kept / sizeof *kept)

static struct sigaction before[KEPT];
static volatile sig_atomic_t waiting;

static void keep(int signal) {
    /* One that ends the server wins over a reload. */
    if (!waiting || waiting == SIGHUP) waiting = signal;
}

static PyObject *keep_signals(PyObject *unused, PyObject *none) {
    struct sigaction ours = {.sa_handler = keep, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < KEPT; i++) sigaction(kept[i], &ours, &before[i]);
    Py_RETURN_NONE;
}

static PyObject *let_signals_go(PyObject *unused, PyObject *none) {
    for (size_t i = 0; i < KEPT; i++) sigaction(kept[i], &before[i], NULL);
    Py_RETURN_NONE;
}

static PyObject *kept_signal(PyObject *unused, PyObject *none) {
    return PyLong_FromLong(waiting);
}

int cow_trial_kept_signal(void) { return waiting; }

PyMethodDef cow_trial_methods[] = {
    {"fork", fork_plainly, METH_NOARGS, NULL},
    {"in_child", in_child, METH_O, NULL},
    {"after_child", after_child, METH_O, NULL},
    {"keep_signals", keep_signals, METH_NOARGS, NULL},
    {"let_signals_go", let_signals_go, METH_NOARGS, NULL},
    {"kept_signal", kept_signal, METH_NOARGS, NULL},
    {NULL},
};
