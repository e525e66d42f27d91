/*
 * Between the server and the system: reading /proc fails, or the wall clock jumps, when
 * a test says so.
 *
 * Preloaded (LD_PRELOAD) below everything, our core too. FAULTS names a file of the
 * integers of `struct wanted`, mapped by every process, which the test writes to while
 * the server runs. `done` counts what was done.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum file { NONE, ROLLUP, SMAPS, STATM, STAT, PAGEMAP, VMSTAT, FILES };
static const char *const NAMES[FILES] = {
    [ROLLUP] = "/smaps_rollup", [SMAPS] = "/smaps",     [STATM] = "/statm",
    [STAT] = "/self/stat",      [PAGEMAP] = "/pagemap", [VMSTAT] = "/vmstat",
};

static volatile struct wanted {
    int64_t open_error[FILES]; /* an errno */
    int64_t read_error[FILES];
    int64_t length[FILES]; /* cut after so many bytes; -1: whole */
    int64_t without;       /* 1: no line Private_Dirty */
    int64_t one_in;        /* of so many calls, one; 0: none */
    int64_t ahead_ns;      /* what the wall clock is set ahead by */
    int64_t done;
} *wanted;

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_read)(int, void *, size_t);
static int (*real_clock)(clockid_t, struct timespec *);
static int64_t calls;

/* What is open, and how much of it was given. */
static struct {
    unsigned char file;
    int64_t given;
} fds[4096];

/* Others' constructors read files before ours has run. */
__attribute__((constructor)) static void begin(void) {
    if (real_read) return;
    real_open = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    real_clock =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    const char *path = getenv("FAULTS");
    int fd = path ? real_open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof *wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (at != MAP_FAILED) wanted = at;
}

static int due(void) {
    if (!wanted || !wanted->one_in) return 0;
    /* Scattered: a look makes as many calls as the one before it. */
    uint64_t mixed = (uint64_t)__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    mixed = (mixed + (uint64_t)getpid()) * 0x9e3779b97f4a7c15ull;
    if ((mixed >> 33) % (uint64_t)wanted->one_in) return 0;
    (void)__atomic_add_fetch(&wanted->done, 1, __ATOMIC_RELAXED);
    return 1;
}

static enum file file_of(const char *path) {
    if (strncmp(path, "/proc/", 6)) return NONE;
    size_t length = strlen(path);
    for (int i = 1; i < FILES; i++) {
        size_t end = strlen(NAMES[i]);
        if (length > end && !strcmp(path + length - end, NAMES[i])) return (enum file)i;
    }
    return NONE;
}

int open(const char *path, int flags, ...) {
    begin();
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    enum file file = wanted ? file_of(path) : NONE;
    if (file && wanted->open_error[file] && due()) {
        errno = (int)wanted->open_error[file];
        return -1;
    }
    int fd = real_open(path, flags, mode);
    if (fd >= 0 && fd < 4096) {
        fds[fd].file = (unsigned char)file;
        fds[fd].given = 0;
        /* Of one file, all reads are cut, or none. */
        if (file && wanted->length[file] >= 0 && !due()) fds[fd].given = -1;
    }
    return fd;
}

/* Take the line out of what was read. */
static ssize_t without(char *text, ssize_t got) {
    char *line = memmem(text, (size_t)got, "Private_Dirty:", 14);
    char *end = line ? memchr(line, '\n', (size_t)(text + got - line)) : NULL;
    if (!end) return got;
    memmove(line, end + 1, (size_t)(text + got - end - 1));
    return got - (end + 1 - line);
}

ssize_t read(int fd, void *buffer, size_t size) {
    begin();
    enum file file = fd >= 0 && fd < 4096 ? (enum file)fds[fd].file : NONE;
    if (!wanted || !file) return real_read(fd, buffer, size);
    if (wanted->read_error[file] && due()) {
        errno = (int)wanted->read_error[file];
        return -1;
    }
    ssize_t got = real_read(fd, buffer, size);
    if (got <= 0) return got;
    if (file <= SMAPS && wanted->without && due()) return without(buffer, got);
    int64_t most = wanted->length[file];
    if (most < 0 || fds[fd].given < 0) return got;
    int64_t left = most - fds[fd].given;
    if (got > left) got = left > 0 ? (ssize_t)left : 0;
    fds[fd].given += got;
    return got;
}

int close(int fd) {
    static int (*real_close)(int);
    if (!real_close) real_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd < 4096) fds[fd].file = NONE;
    return real_close(fd);
}

static void add(struct timespec *time, int64_t ns) {
    int64_t all = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + ns;
    time->tv_sec = (time_t)(all / 1000000000);
    time->tv_nsec = (long)(all % 1000000000);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    begin();
    int code = real_clock(clock, time);
    if (code || !wanted) return code;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        add(time, wanted->ahead_ns);
    return 0;
}

int gettimeofday(struct timeval *restrict given, void *restrict zone) {
    struct timespec time;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    given->tv_sec = time.tv_sec;
    given->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
