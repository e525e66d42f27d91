/* What cow_prim_slurp() does without descriptors, and nothing else: a child that has
 * this memory. Ends with 0 if the runtime that it is linked with bears it. */
#define _GNU_SOURCE 1
#include <sched.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static int seen;

static int child(void *argument) {
    (void)argument;
    seen = 1;
    _exit(0);
}

int main(void) {
    static char stack[65536] __attribute__((aligned(64)));
    int status = 1;
    pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK, NULL);
    return pid < 0 || waitpid(pid, &status, __WCLONE) != pid || status || !seen;
}
