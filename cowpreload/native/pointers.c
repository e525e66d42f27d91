/*
 * Takes pointers that are not NULL. The memory comes from the C heap in large pieces,
 * which the system gets back: a walk must leave no holes among what workers inherit.
 */
#include "pointers.h"

#include <stdint.h>
#include <stdlib.h>

int cow_stack_push(struct cow_stack *stack, void *pointer) {
    if (stack->size == stack->room) {
        size_t room = stack->room ? stack->room * 2 : 1 << 16;
        void **items = realloc(stack->items, room * sizeof *items);
        if (!items) return -1;
        stack->items = items;
        stack->room = room;
    }
    stack->items[stack->size++] = pointer;
    return 0;
}

void *cow_stack_pop(struct cow_stack *stack) {
    return stack->size ? stack->items[--stack->size] : NULL;
}

void cow_stack_free(struct cow_stack *stack) {
    free(stack->items);
    *stack = (struct cow_stack){0};
}

/* Objects are 16 bytes apart: the low bits say nothing, the product's high ones do. */
static size_t place(const void *pointer, size_t room) {
    uint64_t hash = ((uint64_t)(uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash >> 32) & (room - 1);
}

static void **find(void **slots, size_t room, const void *pointer) {
    size_t at = place(pointer, room);
    while (slots[at] && slots[at] != pointer) at = (at + 1) & (room - 1);
    return &slots[at];
}

static int grow(struct cow_set *set) {
    size_t room = set->room ? set->room * 2 : 1 << 16;
    void **slots = calloc(room, sizeof *slots);
    if (!slots) return -1;
    for (size_t i = 0; i < set->room; i++)
        if (set->slots[i]) *find(slots, room, set->slots[i]) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->room = room;
    return 0;
}

int cow_set_add(struct cow_set *set, void *pointer) {
    if (2 * set->size >= set->room && grow(set)) return -1;
    void **slot = find(set->slots, set->room, pointer);
    if (*slot) return 0;
    *slot = pointer;
    set->size++;
    return 1;
}

int cow_set_has(const struct cow_set *set, const void *pointer) {
    return set->size && *find(set->slots, set->room, pointer) != NULL;
}

void cow_set_free(struct cow_set *set) {
    free(set->slots);
    *set = (struct cow_set){0};
}
