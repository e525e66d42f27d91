/* What a native test needs: CHECK, and a place to run in a child. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            _Exit(1);                                                                 \
        }                                                                             \
    } while (0)

#define TEST(name) static void name(void)
#define RUN(name)              \
    do {                       \
        name();                \
        printf("%s\n", #name); \
    } while (0)

/* Run `body` in a child; its wait status. */
static inline int in_child(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

#endif
