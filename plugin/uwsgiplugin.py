"""What `uwsgi --build-plugin` reads; `cowpreload plugin build` runs it.

Run by the interpreter that the plugin is for: its headers are the ones that count.
"""

import sysconfig

NAME = "cow"
CFLAGS = [
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    # uWSGI's table of options ends with a row of one zero.
    "-Wno-missing-field-initializers",
    "-Wno-unused-parameter",
    "-I" + sysconfig.get_paths()["include"],
]
LDFLAGS = []
LIBS = []
GCC_LIST = ["plugin", "identity", "options", "bridge", "worker"]
