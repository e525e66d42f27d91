/*
 * CPython's objects as the compiler sees them; the one user of internal headers.
 */
#ifdef COW_CPYTHON
#define Py_BUILD_CORE 1
#include <Python.h>
#endif

#include <stddef.h>
#include <string.h>

#include "offsets.h"

/* Those that the tests were run on. */
#if !defined(COW_CPYTHON)
#define WHY_NOT "objects are known on CPython alone"
#elif PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#define WHY_NOT "objects are known on CPython 3.11 to 3.15"
#elif defined(Py_GIL_DISABLED)
#define WHY_NOT "objects of a free-threaded build are not known"
#elif UINTPTR_MAX != UINT64_MAX
#define WHY_NOT "objects are known on 64 bits alone"
#else
#define WHY_NOT ""
#define KNOWN 1
#include "internal/pycore_dict.h"
#include "internal/pycore_interp.h"
#endif

const char *cow_offsets_why_not(void) { return WHY_NOT; }

#define AT(field, type, member) .field = (uint32_t)offsetof(type, member)

int cow_offsets(struct cow_offsets *out) {
    memset(out, 0, sizeof *out);
#ifdef KNOWN
    *out = (struct cow_offsets){
        AT(type_name, PyTypeObject, tp_name),
        AT(type_flags, PyTypeObject, tp_flags),
        AT(type_dict, PyTypeObject, tp_dict),
        AT(str_length, PyASCIIObject, length),
        AT(str_hash, PyASCIIObject, hash),
        AT(str_state, PyASCIIObject, state),
        .str_ascii_data = sizeof(PyASCIIObject),
        .str_other_data = sizeof(PyCompactUnicodeObject),
        .bytes_hash = offsetof(PyBytesObject, ob_sval) - sizeof(Py_hash_t),
        AT(set_hash, PySetObject, hash),
        AT(dict_keys, PyDictObject, ma_keys),
        AT(dict_values, PyDictObject, ma_values),
        AT(code_size, PyVarObject, ob_size), /* units of two bytes */
        AT(code_adaptive, PyCodeObject, co_code_adaptive),
        AT(code_name, PyCodeObject, co_qualname),
        AT(code_filename, PyCodeObject, co_filename),
        AT(code_line, PyCodeObject, co_firstlineno),
        AT(function_code, PyFunctionObject, func_code),
        AT(function_module, PyFunctionObject, func_module),
        AT(function_name, PyFunctionObject, func_qualname),
        AT(keys_kind, struct _dictkeysobject, dk_kind),
        AT(keys_log2_index_bytes, struct _dictkeysobject, dk_log2_index_bytes),
        AT(keys_entries, struct _dictkeysobject, dk_nentries),
        AT(keys_indices, struct _dictkeysobject, dk_indices),
        AT(frozen_head, struct _gc_runtime_state, permanent_generation),
#if PY_VERSION_HEX < 0x030F0000
        .collections = offsetof(struct _gc_runtime_state, generation_stats) +
                       (NUM_GENERATIONS - 1) * sizeof(struct gc_generation_stats) +
                       offsetof(struct gc_generation_stats, collections),
        .collections_count = 1,
#else /* allocated, and each collection adds to a copy of the last one's */
        AT(collections_pointer, struct _gc_runtime_state, generation_stats),
        .collections = offsetof(struct gc_stats, old[NUM_GENERATIONS - 2].items) +
                       offsetof(struct gc_generation_stats, collections),
        .collections_apart = sizeof(struct gc_generation_stats),
        .collections_count = GC_OLD_STATS_SIZE,
        AT(frozendict_hash, PyFrozenDictObject, ma_hash),
#endif
#if PY_VERSION_HEX >= 0x030E0000
        AT(tuple_hash, PyTupleObject, ob_hash),
#endif
    };
    out->python.version = PY_VERSION_HEX;
#ifdef Py_DEBUG
    out->python.build |= COW_BUILD_DEBUG;
#endif
    out->python.type_type = (uint64_t)(uintptr_t)&PyType_Type;
    out->python.collector = (uint64_t)(uintptr_t)&PyInterpreterState_Main()->gc;
    return COW_OK;
#else
    return COW_EPARSE;
#endif
}
