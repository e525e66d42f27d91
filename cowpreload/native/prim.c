/*
 * The only file with system calls. Nothing here allocates, logs or retries for
 * longer than EINTR lasts; all of it may run after a fork and beside Python.
 */
#define _GNU_SOURCE
#include "prim.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cow.h"

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

int cow_prim_slurp(const char *path, char *buffer, size_t size, size_t *length) {
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

int cow_prim_shared(const char *name, size_t size, int *fd, void **address) {
    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) return errno;
    /* A sealed size: no reader can be made to fault by a shrinking file. */
    if (fchmod(*fd, S_IRUSR | S_IWUSR) || ftruncate(*fd, (off_t)size) ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        int error = errno;
        cow_prim_close(*fd);
        return error;
    }
    *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (*address == MAP_FAILED) {
        int error = errno;
        cow_prim_close(*fd);
        return error;
    }
    return 0;
}

int cow_prim_map(int fd, size_t size, int writable, void **address) {
    struct stat about;
    if (fstat(fd, &about)) return errno;
    if ((uint64_t)about.st_size < size) return EINVAL;
    int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    *address = mmap(NULL, size, access, MAP_SHARED, fd, 0);
    return *address == MAP_FAILED ? errno : 0;
}

int cow_prim_unmap(void *address, size_t size) {
    return munmap(address, size) ? errno : 0;
}

int cow_prim_alive(pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

int cow_prim_signal_main(int signal) {
    pid_t pid = getpid();
    /* Threads of the application leave signals unblocked; one of them would take
     * a signal meant for the process and the loop would sleep on. */
    return syscall(SYS_tgkill, pid, pid, signal) ? errno : 0;
}

void cow_prim_kill_self(void) { (void)kill(getpid(), SIGKILL); }

void cow_prim_thread_name(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }

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

int cow_prim_detach(pid_t parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) return ESRCH;
    /* An open copy of a client's connection would hide its end from the client. One
     * by one up to the limit of descriptors can take minutes. */
    if (syscall(SYS_close_range, 0, ~0u, 0)) return errno;
    cow_prim_thread_name("cow-still");
    return 0;
}

int cow_prim_event(int *fd) {
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *fd < 0 ? errno : 0;
}

void cow_prim_event_post(int fd) {
    int saved = errno; /* callers include signal handlers */
    uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one);
    (void)ignored;
    errno = saved;
}

int cow_prim_event_wait(int fd, uint64_t until_ms) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (;;) {
        uint64_t now = cow_now_ms();
        uint64_t left = until_ms > now ? until_ms - now : 0;
        int ready = poll(&wait, 1, left > 60000 ? 60000 : (int)left);
        if (ready > 0) {
            uint64_t count;
            if (read(fd, &count, sizeof count) == (ssize_t)sizeof count) return 1;
            /* The application closed our descriptor: do not spin on it. */
            struct timespec nap = {.tv_sec = (time_t)(left / 1000),
                                   .tv_nsec = (long)(left % 1000) * 1000000};
            (void)nanosleep(&nap, NULL);
            return 0;
        }
        if (ready < 0 && errno != EINTR) return 0;
        if (cow_now_ms() >= until_ms) return 0;
    }
}

int cow_trim(void) { return malloc_trim(0); }
