/*
 * System calls, here and in prim_memory.c. Nothing allocates, logs or retries for
 * longer than EINTR lasts; all of it may run after a fork and beside Python.
 */
#define _GNU_SOURCE
#include "prim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cow.h"

#define STACK_SIZE (64 * 1024)

int cow_prim_open(const char *path, int *fd) {
    do {
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? errno : 0;
}

int cow_prim_read(int fd, char *buffer, size_t size, size_t *length) {
    ssize_t got;
    do {
        got = read(fd, buffer, size);
    } while (got < 0 && errno == EINTR);
    *length = got < 0 ? 0 : (size_t)got;
    return got < 0 ? errno : 0;
}

void cow_prim_close(int fd) { (void)close(fd); }

static int slurp(const char *path, char *buffer, size_t size, size_t *length) {
    int fd;
    *length = 0;
    int error = cow_prim_open(path, &fd);
    if (error) return error;
    while (*length < size) {
        size_t got;
        error = cow_prim_read(fd, buffer + *length, size - *length, &got);
        if (error || got == 0) break;
        *length += got;
    }
    cow_prim_close(fd);
    return error;
}

struct beside {
    const char *path;
    char *buffer;
    size_t size, *length;
    int error;
};

static int slurp_there(void *argument) {
    struct beside *given = argument;
    (void)close(0); /* in its own table: all numbers are taken, and one is enough */
    given->error = slurp(given->path, given->buffer, given->size, given->length);
    _exit(0);
}

/* Where the application has used up its descriptors: read in a process that has this
 * memory, so that /proc/self tells of it, and a table of descriptors of its own. It is
 * made as posix_spawn() makes one: we wait until it has ended, and no signal may run a
 * handler there. None tells of its end, and no wait() but ours sees it. A descriptor
 * kept open would do, too, until the application closed it and used its number. */
static int slurp_beside(const char *path, char *buffer, size_t size, size_t *length) {
    char stack[8192] __attribute__((aligned(64)));
    struct beside given = {path, buffer, size, length, EMFILE};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid =
        clone(slurp_there, stack + sizeof stack, CLONE_VM | CLONE_VFORK, &given);
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return given.error;
}

int cow_prim_slurp(const char *path, char *buffer, size_t size, size_t *length) {
    int error = slurp(path, buffer, size, length);
    return error == EMFILE ? slurp_beside(path, buffer, size, length) : error;
}

uint32_t cow_prim_threads(void) {
    char text[1024];
    size_t length;
    if (slurp("/proc/self/stat", text, sizeof text - 1, &length)) return 0;
    text[length] = 0;
    /* The name of the program may hold anything; what follows it is numbers. */
    char *at = strrchr(text, ')');
    uint32_t count = 0;
    for (int field = 2; at && field < 20; field++) at = strchr(at + 1, ' ');
    for (at = at ? at + 1 : text + length; *at >= '0' && *at <= '9'; at++)
        count = count * 10 + (uint32_t)(*at - '0');
    return count;
}

int cow_prim_alive(pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

int cow_prim_signal_main(int signal) {
    pid_t pid = getpid();
    /* Threads of the application leave signals unblocked; one of them would take
     * a signal meant for the process and the loop would sleep on. */
    if (!syscall(SYS_tgkill, pid, pid, signal)) return 0;
    return kill(pid, signal) ? errno : 0; /* a sandbox without it */
}

void cow_prim_kill_self(void) { (void)kill(getpid(), SIGKILL); }

size_t cow_prim_stack_size(void) {
    static size_t size;
    if (size) return size;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t (*with_tls)(const pthread_attr_t *) =
        (size_t (*)(const pthread_attr_t *))dlsym(RTLD_DEFAULT,
                                                  "__pthread_get_minstack");
    pthread_attr_t attributes;
    if (with_tls && !pthread_attr_init(&attributes)) {
        least = (long)with_tls(&attributes);
        (void)pthread_attr_destroy(&attributes);
    }
    /* What the library needs comes on top: a program's static thread-local storage,
     * which no stack can do without, may be larger than all of ours. */
    size = STACK_SIZE + (least > 0 ? (size_t)least : 0);
    return size;
}

int cow_prim_thread(pthread_t *thread, void *(*run)(void *)) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (!error) {
        error = pthread_attr_setstacksize(&attributes, cow_prim_stack_size());
        if (!error) error = pthread_create(thread, &attributes, run, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    return error ? pthread_create(thread, NULL, run, NULL) : 0;
}

void cow_prim_thread_name(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }

void cow_prim_say(const char *line, size_t length) {
    /* A pipe that can take a byte can take a line: PIPE_BUF is more. */
    struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&wait, 1, 0) != 1 || !(wait.revents & POLLOUT)) return;
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}

uint64_t cow_prim_peak(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

uint64_t cow_prim_faults(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return 0;
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

uint64_t cow_prim_thread_cpu_ns(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t cow_prim_page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

uint64_t cow_now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000u + (uint64_t)time.tv_nsec / 1000000u;
}

void cow_prim_nap_us(uint64_t us) {
    struct timespec nap = {.tv_sec = (time_t)(us / 1000000),
                           .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&nap, NULL);
}

uint64_t cow_prim_now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

int cow_prim_clone(pid_t *pid) {
    /* No flags, and no signal at its end: what wait() calls a clone child. */
    long made = syscall(SYS_clone, 0, 0, 0, 0, 0);
    *pid = (pid_t)made;
    return made < 0 ? errno : 0;
}

int cow_prim_reap(pid_t pid) {
    int status;
    pid_t ended = waitpid(pid, &status, WNOHANG | __WCLONE);
    return ended == pid || (ended < 0 && errno == ECHILD);
}

int cow_prim_end_with(pid_t parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return getppid() == parent ? 0 : ESRCH;
}

int cow_prim_detach(pid_t parent) {
    if (cow_prim_end_with(parent)) return ESRCH;
    /* An open copy of a client's connection would hide its end from the client. One
     * by one up to the limit of descriptors can take minutes. */
    if (syscall(SYS_close_range, 0, ~0u, 0)) return errno;
    cow_prim_thread_name("cow-still");
    return 0;
}

void cow_prim_event_post(uint32_t *event) {
    int saved = errno; /* callers include signal handlers */
    __atomic_add_fetch(event, 1, __ATOMIC_ACQ_REL);
    (void)syscall(SYS_futex, event, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

void cow_prim_event_wait(uint32_t *event, uint32_t seen, uint64_t until_ms) {
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    /* This operation's time is a moment of CLOCK_MONOTONIC, not a span: waiting again
     * after a spurious return makes no wait longer. */
    while (LOAD(*event) == seen && cow_now_ms() < until_ms)
        if (syscall(SYS_futex, event, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) &&
            errno != EINTR && errno != EAGAIN && errno != ETIMEDOUT)
            cow_prim_nap_us(100000); /* a sandbox without it: do not spin */
}
