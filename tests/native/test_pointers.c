/* The walk's stack and set, for the address sanitizer. */
#include <stdint.h>

#include "check.h"
#include "pointers.h"

/* As far apart as objects are. */
static void *pointer(size_t number) { return (void *)(uintptr_t)(16 * (number + 1)); }

TEST(a_stack_gives_back_in_reverse_across_its_growth) {
    struct cow_stack stack = {0};
    const size_t many = 200000;
    for (size_t i = 0; i < many; i++) CHECK(cow_stack_push(&stack, pointer(i)) == 0);
    for (size_t i = many; i-- > 0;) CHECK(cow_stack_pop(&stack) == pointer(i));
    CHECK(cow_stack_pop(&stack) == NULL);
    cow_stack_free(&stack);
    CHECK(cow_stack_pop(&stack) == NULL);
}

TEST(a_set_knows_what_it_was_given_across_its_growth) {
    struct cow_set set = {0};
    const size_t many = 200000;
    CHECK(!cow_set_has(&set, pointer(0)));
    for (size_t i = 0; i < many; i += 2) CHECK(cow_set_add(&set, pointer(i)) == 1);
    for (size_t i = 0; i < many; i += 2) CHECK(cow_set_add(&set, pointer(i)) == 0);
    for (size_t i = 0; i < many; i++)
        CHECK(cow_set_has(&set, pointer(i)) == (i % 2 == 0));
    CHECK(set.size == many / 2);
    cow_set_free(&set);
}

int main(void) {
    RUN(a_stack_gives_back_in_reverse_across_its_growth);
    RUN(a_set_knows_what_it_was_given_across_its_growth);
    printf("done\n");
    return 0;
}
