/*
 * The immortal heap, its whole contract.
 *
 * Takes    the interpreter whose GIL the caller holds. Makes every object that it can
 *          reach immortal: reading one writes nothing any more, and none is freed.
 * Gives    COW_OK or a COW_E* code of cow.h; after a code other than COW_OK a part of
 *          the heap is immortal, which is harmless.
 * Must not make or free a Python object while it walks the collector's lists.
 */
#ifndef COW_IMMORTAL_H
#define COW_IMMORTAL_H

#include <stdint.h>

/* What a worker would write later and the walk can write now. */
enum cow_fill {
    COW_FILL_HASHES = 1,   /* of strings, frozensets and (3.14) tuples */
    COW_FILL_UTF8 = 2,     /* the UTF-8 form of strings that are not ASCII */
    COW_FILL_VERSIONS = 4, /* version tags of types */
};
/* What was measured to save pages: see docs/immortality.md. */
#define COW_FILL_DEFAULT COW_FILL_HASHES

struct cow_walk {
    uint64_t objects; /* immortal now and not before */
    uint64_t kept;    /* left mortal because the caller asked for it */
    uint64_t hashes;  /* what was filled */
    uint64_t utf8;
    uint64_t versions;
};

/* Why this interpreter cannot do it; "" if it can. Never NULL. */
const char *cow_immortal_why_not(void);

/* Walk the interpreter whose GIL is held. `keep` is a list object whose items stay
 * mortal, or NULL. `held` is NULL or a Python object, holders.Held: instances of the
 * classes in its tuple `mortal` stay mortal; after the collector's lists were walked it
 * is called with the instances that were met of those in its tuple `asked`, and gives
 * an iterator of lists of what they hold, its list `items` first; then again, while
 * that brings new ones. Programs run there: only then objects are made and freed. Its
 * bytes `lengths` are those of loads.h, or empty.
 * `fill` is a sum of enum cow_fill. */
int cow_immortal_walk(void *keep, void *held, int fill, struct cow_walk *out);

/* The same in the main interpreter, for a caller without the GIL: cffi gives it up. */
int cow_immortalize(void *keep, void *held, int fill, struct cow_walk *out);

/* For the self-check: make one object immortal; read the word that counting writes. */
int cow_immortal_one(void *object);
uint64_t cow_immortal_word(void *object);

#endif
