/*
 * The walk: from everything that the collector tracks to everything that it holds.
 *
 * The collector knows all containers but no strings, numbers or code, and it skips
 * what cannot be part of a cycle. Here each tracked object is visited once, as the
 * collector lists it; what it holds is made immortal on the way, and containers that
 * are not listed (code, untracked tuples and dicts, static types) are entered through
 * an explicit stack. What only a program can look into (numpy's arrays) is put aside
 * until the collector's lists have been walked, and then asked for. Last comes the
 * code, whose constants are immortal by then.
 */
#include "immortal.h"

#include "compat.h"
#include "cow.h"

const char *cow_immortal_why_not(void) { return COW_IMMORTAL_WHY_NOT; }

#ifdef COW_CAN_IMMORTALIZE

#include "edges.h"
#include "fills.h"
#include "loads.h"
#include "pointers.h"

/* Objects lie all over the heap, and waiting for the first bytes of each is most of
 * the walk: they are asked for this many objects ahead. */
enum { AHEAD = 32 };

struct walk {
    struct cow_walk *out;
    PyObject *ahead[AHEAD]; /* met, asked for, not looked at yet; a ring */
    unsigned turn;
    struct cow_stack pending; /* containers that the collector does not list */
    struct cow_set entered;   /* those that had been immortal when they were pushed */
    struct cow_set kept;
    struct cow_types types;
    PyObject *held;          /* the caller, who is asked; NULL if nobody is */
    PyObject *given;         /* its list of what is immortal too: handed over later */
    struct cow_stack to_ask; /* what these objects hold */
    const uint8_t *lengths;  /* of instructions; NULL where code needs no more */
    struct cow_stack codes;
    int asking; /* the collector's lists are done: what is new is met */
    int fill;
    int code;
};

static int is_kept(const struct walk *walk, const PyObject *object) {
    return object == walk->given ||
           (walk->kept.size && cow_set_has(&walk->kept, object));
}

static void mark(struct walk *walk, PyObject *object, int edges) {
    if (edges & COW_STAYS_MORTAL || is_kept(walk, object)) return;
    cow_fill_object(object, walk->fill, walk->out);
    if (_Py_IsImmortal(object) || cow_must_stay_mortal(object)) return;
    cow_make_immortal(object);
    walk->out->objects++;
}

/* A mortal container is met for the first time, for the walk leaves it immortal: most
 * need no entry in a set, which would be a fifth of the walk. */
static void push(struct walk *walk, PyObject *object, int edges) {
    int fresh = 1;
    if (_Py_IsImmortal(object) || edges & COW_STAYS_MORTAL || is_kept(walk, object))
        fresh = cow_set_add(&walk->entered, object);
    if (fresh < 0 || (fresh && cow_stack_push(&walk->pending, object)))
        walk->code = COW_EMEMORY;
}

/* Something holds `object`. Nothing is entered from here: that would recurse. */
static void look(struct walk *walk, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    int collected = PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC);
    int tracked = collected && PyObject_GC_IsTracked(object);
    /* It is in the collector's lists, and visited from there. */
    if (tracked && !walk->asking) return;
    int edges = cow_edges_of(&walk->types, type);
    if (!tracked && (collected || edges)) push(walk, object, edges);
    mark(walk, object, edges);
}

static void meet(struct walk *walk, PyObject *object) {
    PyObject **place = &walk->ahead[walk->turn++ % AHEAD];
    __builtin_prefetch(object, 1);
    if (*place) look(walk, *place);
    *place = object;
}

/* Look at all that was met; how many that were. */
static int catch_up(struct walk *walk) {
    int count = 0;
    for (int i = 0; i < AHEAD; i++) {
        PyObject *object = walk->ahead[i];
        walk->ahead[i] = NULL;
        if (object) look(walk, object), count++;
    }
    return count;
}

static int meet_one(PyObject *object, void *walk) {
    meet(walk, object);
    return 0;
}

static void enter(struct walk *walk, PyObject *object, int edges) {
    PyTypeObject *type = Py_TYPE(object);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) meet(walk, (PyObject *)type);
    if (edges) cow_visit_edges(object, edges, meet_one, walk);
    if (edges & COW_EDGE_ASK && cow_stack_push(&walk->to_ask, object))
        walk->code = COW_EMEMORY;
    if (edges & COW_EDGE_CODE && walk->lengths && cow_stack_push(&walk->codes, object))
        walk->code = COW_EMEMORY;
    if (PyType_Check(object) &&
        !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE)) {
        cow_visit_static_type((PyTypeObject *)object, meet_one, walk);
        return;
    }
    if (type->tp_traverse) (void)type->tp_traverse(object, meet_one, walk);
    cow_visit_untraversed(object, meet_one, walk);
}

static void drain(struct walk *walk) {
    PyObject *object;
    while ((object = cow_stack_pop(&walk->pending)))
        enter(walk, object, cow_edges_of(&walk->types, Py_TYPE(object)));
}

static int visit(PyObject *object, void *argument) {
    struct walk *walk = argument;
    if (object == walk->given) return 1;
    int edges = cow_edges_of(&walk->types, Py_TYPE(object));
    mark(walk, object, edges);
    enter(walk, object, edges);
    drain(walk);
    return walk->code == COW_OK; /* 0 ends the walk */
}

static void settle(struct walk *walk) {
    while (catch_up(walk)) drain(walk);
}

/* Whoever was asked has made `list` for us. An object in it that nobody else has was
 * made too: it stays mortal, and alive while it may be asked about. */
static void take_answer(struct walk *walk, PyObject *list, PyObject *made) {
    for (Py_ssize_t i = 0; PyList_Check(list) && i < PyList_GET_SIZE(list); i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        if (Py_REFCNT(object) > 1) {
            meet(walk, object);
        } else {
            if (PyList_Append(made, object)) walk->code = COW_EMEMORY;
            enter(walk, object, cow_edges_of(&walk->types, Py_TYPE(object)));
        }
    }
    settle(walk);
}

/* Ask once, with the objects put aside: an iterator of lists. Python runs here. */
static void ask(struct walk *walk, PyObject *made) {
    PyObject *objects = PyList_New(0), *object, *list;
    while (objects && (object = cow_stack_pop(&walk->to_ask)))
        if (PyList_Append(objects, object)) walk->code = COW_EMEMORY;
    PyObject *answers = objects ? PyObject_CallOneArg(walk->held, objects) : NULL;
    while (answers && (list = PyIter_Next(answers))) {
        take_answer(walk, list, made);
        Py_DECREF(list);
    }
    if (PyErr_Occurred()) PyErr_WriteUnraisable(walk->held);
    Py_XDECREF(answers);
    Py_XDECREF(objects);
}

static void ask_for_all(struct walk *walk) {
    PyObject *made = PyList_New(0);
    walk->asking = 1;
    if (!made) walk->code = COW_EMEMORY;
    if (made) do
            ask(walk, made);
        while (walk->to_ask.size && walk->code == COW_OK);
    Py_XDECREF(made);
}

/* An attribute of `held`; a new reference, NULL if it is not there or of that type. */
static PyObject *told(PyObject *held, const char *name, PyTypeObject *type) {
    PyObject *found = held ? PyObject_GetAttrString(held, name) : NULL;
    PyErr_Clear();
    if (found && !Py_IS_TYPE(found, type)) Py_CLEAR(found);
    return found;
}

static void settle_code(struct walk *walk) {
    PyObject *code;
    while ((code = cow_stack_pop(&walk->codes))) cow_settle_loads(code, walk->lengths);
}

int cow_immortal_walk(void *keep, void *held, int fill, struct cow_walk *out) {
    struct walk walk = {.out = out, .held = held, .fill = fill, .code = COW_OK};
    *out = (struct cow_walk){0};
    PyObject *asked = told(held, "asked", &PyTuple_Type);
    PyObject *mortal = told(held, "mortal", &PyTuple_Type);
    PyObject *lengths = told(held, "lengths", &PyBytes_Type);
    if (lengths && PyBytes_GET_SIZE(lengths) == 256)
        walk.lengths = (const uint8_t *)PyBytes_AS_STRING(lengths);
    walk.given = told(held, "items", &PyList_Type);
    int collects = PyGC_Disable(); /* a collection would move what we walk over */
    cow_types_init(&walk.types, asked, mortal);
    for (Py_ssize_t i = 0; keep && i < PyList_GET_SIZE((PyObject *)keep); i++)
        if (cow_set_add(&walk.kept, PyList_GET_ITEM((PyObject *)keep, i)) < 0)
            walk.code = COW_EMEMORY;
    if (walk.code == COW_OK) PyUnstable_GC_VisitObjects(visit, &walk);
    settle(&walk);
    if (held && walk.code == COW_OK) ask_for_all(&walk);
    settle_code(&walk);
    out->kept = walk.kept.size;
    if (collects) PyGC_Enable();
    Py_XDECREF(asked);
    Py_XDECREF(mortal);
    Py_XDECREF(lengths);
    Py_XDECREF(walk.given);
    cow_stack_free(&walk.pending);
    cow_stack_free(&walk.to_ask);
    cow_stack_free(&walk.codes);
    cow_set_free(&walk.entered);
    cow_set_free(&walk.kept);
    return walk.code;
}

int cow_immortalize(void *keep, void *held, int fill, struct cow_walk *out) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int code = cow_immortal_walk(keep, held, fill, out);
    PyGILState_Release(gil);
    return code;
}

int cow_immortal_one(void *object) {
    cow_make_immortal(object);
    return COW_OK;
}

uint64_t cow_immortal_word(void *object) { return cow_count_word(object); }

#else

int cow_immortal_walk(void *keep, void *held, int fill, struct cow_walk *out) {
    (void)keep, (void)held, (void)fill;
    *out = (struct cow_walk){0};
    return COW_EVERSION;
}

int cow_immortalize(void *keep, void *held, int fill, struct cow_walk *out) {
    return cow_immortal_walk(keep, held, fill, out);
}

int cow_immortal_one(void *object) {
    (void)object;
    return COW_EVERSION;
}

uint64_t cow_immortal_word(void *object) {
    (void)object;
    return 0;
}

#endif
