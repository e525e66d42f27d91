/*
 * An allocator of Python's objects that no fill comes to the end of: each block stands
 * where pymalloc could have put it, and each in another pool.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>
#include <sys/mman.h>

#define POOL 16384
#define HEADER 48
#define LARGEST 512
#define AREA ((size_t)64 << 30) /* of addresses; nothing is written to most of them */

static PyMemAllocatorEx before;
static char *area, *next;
static int scattering;

static int is_ours(const void *block) {
    return (const char *)block >= area && (const char *)block < area + AREA;
}

static void *take(void *context, size_t size) {
    if (!scattering || size > LARGEST) return before.malloc(before.ctx, size);
    (void)context;
    if (next >= area + AREA) return NULL;
    next += POOL;
    return next - POOL + HEADER;
}

static void *take_zeros(void *context, size_t count, size_t size) {
    void *block = take(context, count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

static void give(void *context, void *block) {
    (void)context;
    if (!is_ours(block)) before.free(before.ctx, block);
}

static void *retake(void *context, void *block, size_t size) {
    if (block && !is_ours(block)) return before.realloc(before.ctx, block, size);
    void *moved = take(context, size);
    if (block && moved) memcpy(moved, block, size < LARGEST ? size : LARGEST);
    return moved;
}

/* Begin, or serve as before; gives how many blocks were served so far. */
long scatter(int on) {
    if (!area) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        char *found = mmap(NULL, AREA + POOL, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (found == MAP_FAILED) return -1;
        area = next = found + POOL - (uintptr_t)found % POOL;
        PyMemAllocatorEx ours = {NULL, take, take_zeros, retake, give};
        PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &before);
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
    }
    scattering = on;
    return (long)((next - area) / POOL);
}
