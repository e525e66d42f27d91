"""What `uwsgi --build-plugin` reads; `cowpreload plugin build` runs it.

Run by the interpreter that the plugin is for: its headers are the ones that count.
"""

import os
import sysconfig

NAME = "cow"
CFLAGS = [
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    # uWSGI's table of options ends with a row of one zero.
    "-Wno-missing-field-initializers",
    "-Wno-unused-parameter",
    "-I" + sysconfig.get_paths()["include"],
]
# In our own builds alone, as in cowpreload/native/build.py.
if os.environ.get("COW_WERROR") == "1":
    CFLAGS.append("-Werror")
LDFLAGS = []
LIBS = []
GCC_LIST = [
    "plugin",
    "identity",
    "options",
    "bridge",
    "stage",
    "trial",
    "turn",
    "serving",
    "metrics",
    "system_exit",
    "worker",
]
