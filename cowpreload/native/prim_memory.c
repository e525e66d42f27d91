/*
 * The system calls that are about memory: shared, a page alone, given back. prim.c's
 * rules hold here.
 */
#define _GNU_SOURCE
#include "prim.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cow.h"

/* A sealed size: no reader can be made to fault by a shrinking file. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int cow_prim_shared(const char *name, size_t size, int *fd, void **address) {
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) return errno;
    /* A server whose stdout and stderr are closed would write its log into the board,
     * and close it with a dup2(). */
    *fd = made > 2 ? made : fcntl(made, F_DUPFD_CLOEXEC, 3);
    int refused = errno;
    if (*fd != made) cow_prim_close(made);
    if (*fd < 0) return refused;
    if (fchmod(*fd, S_IRUSR | S_IWUSR) || ftruncate(*fd, (off_t)size) ||
        fcntl(*fd, F_ADD_SEALS, SEALS)) {
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

int cow_prim_inherited(size_t size, void **address) {
    int access = PROT_READ | PROT_WRITE;
    *address = mmap(NULL, size, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *address == MAP_FAILED ? errno : 0;
}

int cow_prim_map(int fd, size_t size, int writable, void **address) {
    struct stat about;
    if (fstat(fd, &about)) return errno;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) return errno; /* a file of another kind by our name */
    if (~seals & SEALS || (uint64_t)about.st_size < size) return EINVAL;
    int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    *address = mmap(NULL, size, access, MAP_SHARED, fd, 0);
    return *address == MAP_FAILED ? errno : 0;
}

int cow_prim_unmap(void *address, size_t size) {
    return munmap(address, size) ? errno : 0;
}

int cow_prim_page(void **page) {
    size_t size = (size_t)cow_prim_page_size();
    *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*page == MAP_FAILED) return errno;
    /* Nor merged with a neighbour's pages into a huge one. */
    (void)madvise(*page, size, MADV_NOHUGEPAGE);
    *(volatile char *)*page = 1;
    return 0;
}

void cow_prim_page_free(void *page) { (void)munmap(page, cow_prim_page_size()); }

int cow_prim_mergeable(uintptr_t start, size_t size) {
    return madvise((void *)start, size, MADV_MERGEABLE) ? errno : 0;
}

/* Bits of /proc/self/pagemap. */
#define PRESENT ((uint64_t)1 << 63)
#define EXCLUSIVE ((uint64_t)1 << 56)

int cow_prim_page_shared(void *page) {
    int fd;
    uint64_t entry = 0;
    if (cow_prim_open("/proc/self/pagemap", &fd)) return 0;
    (void)*(volatile char *)page; /* back from swap */
    off_t at = (off_t)((uintptr_t)page / cow_prim_page_size() * sizeof entry);
    ssize_t got = pread(fd, &entry, sizeof entry, at);
    cow_prim_close(fd);
    return got == (ssize_t)sizeof entry && entry & PRESENT && !(entry & EXCLUSIVE);
}

int cow_trim(void) {
#ifdef __GLIBC__
    return malloc_trim(0);
#else
    return 0; /* musl has no such call: what free() empties, it unmaps by itself */
#endif
}
