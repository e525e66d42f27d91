/*
 * Is this the uwsgi, and the Python, that the plugin was compiled for?
 *
 * uWSGI's structs depend on its build flags, so a plugin in another binary reads
 * the wrong fields and crashes. The binary carries its own header and flags; their
 * hash was compiled in. Nothing of `struct uwsgi_server` may be touched here.
 */
#include "python.h"

#include "cow_build.h"
#include "plugin.h"

/* Weak, so that a binary without them loads the plugin far enough to say why. */
#pragma weak uwsgi_get_dot_h
#pragma weak uwsgi_get_cflags

/* For `cowpreload doctor`, which reads it in the file. */
__attribute__((used)) static const char mark[] = COW_BUILD_MARK;

static uint64_t fnv1a(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

static void refuse(const char *why) {
    char binary[4096];
    ssize_t length = readlink("/proc/self/exe", binary, sizeof binary - 1);
    binary[length > 0 ? length : 0] = 0;
    uwsgi_log("cow: this plugin %s; run: cowpreload plugin build --uwsgi %s\n", why,
              length > 0 ? binary : "PATH");
    exit(1);
}

void cow_identity_check(void) {
    if (!uwsgi_get_dot_h || !uwsgi_get_cflags) refuse("was built for another uwsgi");
    if (!Py_GetVersion || !PyGILState_Ensure)
        refuse(
            "found no Python in this uwsgi (a Python plugin must be named before it)");

    char *header = uwsgi_get_dot_h();
    char *flags = uwsgi_get_cflags();
    uint64_t hash = fnv1a(fnv1a(0xcbf29ce484222325ull, header), flags);
    free(header);
    free(flags);
    if (hash != COW_FINGERPRINT) refuse("was built for another uwsgi");

    const char *built = PY_VERSION;
    size_t minor = strcspn(built, ".") + 1;
    minor += strcspn(built + minor, ".") + 1;
    if (strncmp(Py_GetVersion(), built, minor) != 0)
        refuse("was built for another Python, " PY_VERSION);
}
