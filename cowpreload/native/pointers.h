/* A stack and a set of pointers, outside Python's memory. 0, or -1 without memory. */
#ifndef COW_POINTERS_H
#define COW_POINTERS_H

#include <stddef.h>

struct cow_stack {
    void **items;
    size_t size, room;
};

int cow_stack_push(struct cow_stack *stack, void *pointer);
/* The last one pushed, NULL if there is none. */
void *cow_stack_pop(struct cow_stack *stack);
void cow_stack_free(struct cow_stack *stack);

struct cow_set {
    void **slots; /* open addressing; NULL is a free slot */
    size_t size, room;
};

/* 1 if `pointer` is new in the set, 0 if it was there. */
int cow_set_add(struct cow_set *set, void *pointer);
int cow_set_has(const struct cow_set *set, const void *pointer);
void cow_set_free(struct cow_set *set);

#endif
