/*
 * The master's turns while its workers serve, and its end: hosts/uwsgi_turn.py.
 *
 * uWSGI calls master_cycle at each round of the master's loop: once a second when it is
 * idle, and after each event. It has the GIL there or not, as `enable-threads` says.
 * What fails in Python ends neither the master nor its round.
 */
#include "bridge.h"
#include "plugin.h"

#define TURN "cowpreload.hosts.uwsgi_turn"

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static long long in_python(const char *name) {
    PyGILState_STATE gil = PyGILState_Ensure();
    long long given = cow_number(cow_call(TURN, name, "()"));
    PyGILState_Release(gil);
    cow_serving_release();
    return given;
}

/* Whether a worker was told to go and nobody has said it; see cow_end. */
static int ends_wait(void) {
    for (int i = 1; i <= uwsgi.numproc && i <= COW_SLOTS; i++) {
        struct cow_end *end = &cow_api->board->end[i - 1];
        if (__atomic_load_n(&end->sequence, __ATOMIC_ACQUIRE) != end->logged) return 1;
    }
    return 0;
}

void cow_turn(void) {
    static uint64_t next;
    static int over, ended, mute;
    uint64_t now = now_ms();
    /* At once, and while the server ends, too. */
    if (!mute && ends_wait()) mute = in_python("ends") < 0;
    /* The workers are told already; those that have gone are reaped in later rounds, so
     * that this one always comes before the exit, or the exec of a reload. */
    if (uwsgi_instance_is_dying || uwsgi_instance_is_reloading) {
        if (!ended++) (void)in_python("end");
        return;
    }
    if (over || now < next) return;
    long long pause = in_python("turn");
    over = pause <= 0;
    next = now + (uint64_t)pause;
}
