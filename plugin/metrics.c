/*
 * uWSGI's metrics of ours, where `enable-metrics` is set: in its stats server, and in
 * all that it pushes metrics to.
 *
 * uWSGI's thread collects them once a second in the master, under its own lock: here,
 * figures are copied off the board. Nothing is read from /proc, no lock is taken and no
 * Python is called. What the board has of a worker is its own last reading.
 */
#include <stddef.h>

#include "plugin.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* Bytes are uWSGI's unit of memory, too (rss_size). */
static const struct {
    const char *name; /* worker.N.NAME and core.NAME, its sum over the workers */
    size_t at;        /* of a uint64_t in struct cow_slot */
    uint8_t type;
    int summed;
} OF_WORKER[] = {
    {"cow_private", offsetof(struct cow_slot, memory.private_bytes), UWSGI_METRIC_GAUGE,
     1},
    {"cow_shared", offsetof(struct cow_slot, memory.shared_bytes), UWSGI_METRIC_GAUGE,
     0},
    {"cow_pss", offsetof(struct cow_slot, memory.pss), UWSGI_METRIC_GAUGE, 1},
    {"cow_max_private", offsetof(struct cow_slot, judged.max_private),
     UWSGI_METRIC_GAUGE, 0},
    {"cow_generation", offsetof(struct cow_slot, life.generation), UWSGI_METRIC_COUNTER,
     0},
};

enum counted { RECYCLED, KILLED, READINGS_FAILED };
static const char *const COUNTED[] = {"core.cow_recycled", "core.cow_killed",
                                      "core.cow_readings_failed"};

#define COUNT_OF(table) ((int)(sizeof(table) / sizeof *(table)))

static int64_t of_slot(int slot, const void *which) {
    struct cow_slot *at = &cow_api->board->slot[slot - 1];
    size_t offset = (size_t)which;
    /* A worker that has gone takes nothing; how often there was one, stays. */
    if (LOAD(at->life.state) == COW_FREE &&
        offset != offsetof(struct cow_slot, life.generation))
        return 0;
    return (int64_t)LOAD(*(uint64_t *)((char *)at + offset));
}

static int64_t collect_worker(struct uwsgi_metric *metric) {
    return cow_api ? of_slot((int)metric->arg1n, metric->custom) : 0;
}

static int64_t collect_sum(struct uwsgi_metric *metric) {
    int64_t sum = 0;
    for (int i = 1; cow_api && i <= uwsgi.numproc && i <= COW_SLOTS; i++)
        sum += of_slot(i, metric->custom);
    return sum;
}

static int64_t collect_count(struct uwsgi_metric *metric) {
    static const uint32_t ACTIONS[] = {
        [RECYCLED] = COW_RECYCLE,
        [KILLED] = COW_KILL,
    };
    int64_t sum = 0;
    if (!cow_api) return 0;
    struct cow_counts *counts = &cow_api->board->counts;
    if (metric->arg1n == READINGS_FAILED) return (int64_t)LOAD(counts->readings_failed);
    for (int reason = 0; reason < COW_REASONS; reason++)
        sum += (int64_t)LOAD(counts->ends[ACTIONS[metric->arg1n]][reason]);
    return sum;
}

static int64_t collect_budget(struct uwsgi_metric *metric) {
    (void)metric;
    return cow_api ? (int64_t)LOAD(cow_api->board->whole.budget) : 0;
}

static void register_one(const char *name, uint8_t type, char *collector, size_t which,
                         int64_t number) {
    struct uwsgi_metric *metric = uwsgi_register_metric(
        (char *)name, NULL, type, collector, NULL, 0, (void *)which);
    if (metric) metric->arg1n = number;
}

void cow_metrics_register(void) {
    char name[64];
    if (!uwsgi.has_metrics) return;
    (void)uwsgi_register_metric_collector("cow-worker", collect_worker);
    (void)uwsgi_register_metric_collector("cow-sum", collect_sum);
    (void)uwsgi_register_metric_collector("cow-count", collect_count);
    (void)uwsgi_register_metric_collector("cow-budget", collect_budget);
    register_one("core.cow_budget", UWSGI_METRIC_GAUGE, "cow-budget", 0, 0);
    for (int each = 0; each < COUNT_OF(OF_WORKER); each++) {
        for (int i = 1; i <= uwsgi.numproc && i <= COW_SLOTS; i++) {
            (void)snprintf(name, sizeof name, "worker.%d.%s", i, OF_WORKER[each].name);
            register_one(name, OF_WORKER[each].type, "cow-worker", OF_WORKER[each].at,
                         i);
        }
        if (!OF_WORKER[each].summed) continue;
        (void)snprintf(name, sizeof name, "core.%s", OF_WORKER[each].name);
        register_one(name, UWSGI_METRIC_GAUGE, "cow-sum", OF_WORKER[each].at, 0);
    }
    for (int each = 0; each < COUNT_OF(COUNTED); each++)
        register_one(COUNTED[each], UWSGI_METRIC_COUNTER, "cow-count", 0, each);
}
