/* The layer of system calls, prim.c and prim_memory.c. Every function gives 0 or errno.
 */
#ifndef COW_PRIM_H
#define COW_PRIM_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A field that other threads or processes write or read. */
#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define COUNT(field) (void)__atomic_fetch_add(&(field), 1, __ATOMIC_RELAXED)

/* Read a whole small file into `buffer`; *length is what was read. Needs no free
 * descriptor. */
int cow_prim_slurp(const char *path, char *buffer, size_t size, size_t *length);
/* Open, then hand out piece after piece: for files too long for a buffer. */
int cow_prim_open(const char *path, int *fd);
int cow_prim_read(int fd, char *buffer, size_t size, size_t *length);
void cow_prim_close(int fd);

/* Shared memory as a sealed file, at a descriptor above 2. */
int cow_prim_shared(const char *name, size_t size, int *fd, void **address);
/* The same without a descriptor: only processes forked later have it. */
int cow_prim_inherited(size_t size, void **address);
/* Map such a file of another process; EINVAL if its size is not sealed. */
int cow_prim_map(int fd, size_t size, int writable, void **address);
int cow_prim_unmap(void *address, size_t size);

/* Whether a process (or its zombie) exists. */
int cow_prim_alive(pid_t pid);
/* A signal for the main thread, not for whichever thread takes it first. */
int cow_prim_signal_main(int signal);
void cow_prim_kill_self(void);
/* A page of memory that nothing else is near, and whether another process, a forked
 * child, has it too (0 where that cannot be known). */
int cow_prim_page(void **page);
int cow_prim_page_shared(void *page);
void cow_prim_page_free(void *page);
/* Let the kernel merge equal pages of these; EINVAL if it cannot. */
int cow_prim_mergeable(uintptr_t start, size_t size);

/* What a thread of ours gets: 64 KiB of its own on top of what the system's library
 * wants. First asked before the fork: it takes the loader's lock. */
size_t cow_prim_stack_size(void);
/* Start a thread with such a stack, or with the default one where that fails. */
int cow_prim_thread(pthread_t *thread, void *(*run)(void *));
void cow_prim_thread_name(const char *name);
/* One line to stderr, unless that would wait. */
void cow_prim_say(const char *line, size_t length);

/* The most that was ever resident of the process, bytes. */
uint64_t cow_prim_peak(void);
/* Minor and major faults of the process, all threads. */
uint64_t cow_prim_faults(void);
/* CPU time of the calling thread, nanoseconds. */
uint64_t cow_prim_thread_cpu_ns(void);
uint64_t cow_prim_page_size(void);
/* How many threads this process has; 0 where that cannot be known. */
uint32_t cow_prim_threads(void);

void cow_prim_nap_us(uint64_t us);
uint64_t cow_prim_now_us(void);

/* Fork, without the handlers of pthread_atfork (OpenBLAS ends its threads in its own),
 * and so that no wait() but cow_prim_reap() sees the child and no signal tells of its
 * end. *pid is 0 in the child, which may only make system calls. */
int cow_prim_clone(pid_t *pid);
/* Whether that child has ended; it is reaped then. */
int cow_prim_reap(pid_t pid);
/* In a child: end when `parent` does, whatever runs then; ESRCH if it has. */
int cow_prim_end_with(pid_t parent);
/* In that child: end with `parent`, hold none of its files. 0 or an errno: ESRCH if the
 * parent is gone already, ENOSYS before Linux 5.9. */
int cow_prim_detach(pid_t parent);

/* An event is a word that only these touch, from 0; it needs no descriptor, which the
 * application could close and reuse. Posting is async-signal-safe. */
void cow_prim_event_post(uint32_t *event);
/* Wait until the event differs from `seen`, or `until_ms` is reached. */
void cow_prim_event_wait(uint32_t *event, uint32_t seen, uint64_t until_ms);

#endif
