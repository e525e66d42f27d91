/*
 * The ini: options as cowpreload/settings.py declares them (the table is generated
 * when the plugin is built), kept as text. Python reads and checks them, all at once.
 */
#include "plugin.h"

struct given {
    const char *name;
    const char *value;
    struct given *next;
};

static struct given *first, **last = &first;

static void keep(const char *name, const char *value) {
    struct given *given = uwsgi_malloc(sizeof *given);
    *given = (struct given){.name = name, .value = value ? value : ""};
    *last = given;
    last = &given->next;
}

/* The event log, as root may open it: when Python runs, privileges are dropped. */
static int event_log = -1;
static struct stat event_log_file;

#define LOG_FLAGS (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK)

/* Another user's symbolic link is not followed: see event_log.py, which opens what is
 * not open, and says what is wrong. */
static int open_log(const char *path) {
    int fd = open(path, LOG_FLAGS | O_NOFOLLOW, 0644);
    if (fd >= 0 || errno != ELOOP) return fd;
    int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link < 0) return -1;
    char target[PATH_MAX];
    struct stat about;
    ssize_t length = readlinkat(link, "", target, sizeof target - 1);
    int ours = !fstat(link, &about) && (about.st_uid == 0 || about.st_uid == geteuid());
    close(link);
    if (!ours || length < 1 || target[0] != '/') return -1;
    target[length] = 0;
    return open(target, LOG_FLAGS, 0644);
}

static void option(char *name, char *value, void *unused) {
    keep(name, value);
    if (strcmp(name, "cow-event-log") || value[0] != '/') return;
    if (event_log >= 0) close(event_log);
    event_log = open_log(value);
    if (event_log >= 0 && fstat(event_log, &event_log_file)) event_log = -1;
}

int cow_options_event_log(void) {
    struct stat now;
    /* A reload closes what it does not know, and the number is soon another's: a pipe
     * of uWSGI's, which took each letter of an event for a signal. */
    if (event_log < 0 || fstat(event_log, &now) ||
        now.st_dev != event_log_file.st_dev || now.st_ino != event_log_file.st_ino)
        return -1;
    return event_log;
}

#define COW_OPTION(name, help) {name, required_argument, 0, help, option, NULL, 0},
struct uwsgi_option cow_options[] = {
#include "cow_options.h"
    {0},
};

/* uWSGI takes an unknown key of an ini for a variable of the user's and is silent;
 * Python names the nearest setting. */
static void keep_unknown(void) {
    for (int i = 0; i < uwsgi.exported_opts_cnt; i++) {
        struct uwsgi_opt *each = uwsgi.exported_opts[i];
        if (!each->configured &&
            (!strncmp(each->key, "cow-", 4) || !strncmp(each->key, "cow_", 4)))
            keep(each->key, each->value);
    }
}

char *cow_options_text(void) {
    keep_unknown();
    struct uwsgi_buffer *text = uwsgi_buffer_new(1024);
    for (struct given *each = first; each; each = each->next)
        if (uwsgi_buffer_append(text, (char *)each->name, strlen(each->name)) ||
            uwsgi_buffer_append(text, "\t", 1) ||
            uwsgi_buffer_append(text, (char *)each->value, strlen(each->value)) ||
            uwsgi_buffer_append(text, "\n", 1))
            break;
    if (uwsgi_buffer_append(text, "", 1)) exit(1);
    char *result = text->buf;
    text->buf = NULL;
    uwsgi_buffer_destroy(text);
    return result;
}
