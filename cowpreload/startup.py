"""Let gunicorn know "cow" and its options before it builds its configuration.

setup.py installs a start-up file. `cowpreload.pth` (Python up to 3.17) is LINE: in an
interpreter start it makes one small class and imports nothing of ours; the text in it
is only compiled when `gunicorn.config` is imported. `cowpreload.start` (PEP 829) holds
START, from 3.18 on: 3.15 reads it too, and ignores the .pth beside it, but to resolve
an entry point it imports `re` and `pkgutil`, which costs each interpreter start 9 ms
where the .pth costs none that can be measured (CPU, 3.15.2). 3.18 ignores the .pth.
COWPRELOAD_STARTUP=0 switches both off.

Must never raise, whatever is damaged: an interpreter start depends on it.
"""

from __future__ import annotations

import sys

# As typing's, without importing it: this is read in interpreter starts.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

START = "cowpreload.startup:install"
NEEDS_START = sys.version_info >= (3, 18)

_WHEN_GUNICORN_COMES = """
try:
    import os
    find = lambda: None
    if os.environ.get("COWPRELOAD_STARTUP") != "0":
        from cowpreload.startup import spec_of_config as find
except Exception as error:
    import sys
    print(f"cow: start-up hook failed: {error!r}", file=sys.stderr)
"""
_SPEC = f"[exec({_WHEN_GUNICORN_COMES!r}, space := {{}}), space['find']()][1]"

# A finder that answers for one module. A .pth has room for one line, and each start
# compiles it: 0.45 ms less than with the whole text in it, 3 ms less than importing it.
LINE = (
    "import sys; sys.meta_path.insert(0, type('CowpreloadFinder', (), {'find_spec': "
    "staticmethod(lambda name, path=None, target=None: "
    f"eval({_SPEC!r}, {{}}) if name == 'gunicorn.config' else None)}}))"
)


def install() -> None:
    """What LINE does, for interpreters that read .start files."""
    exec(LINE, {})


def spec_of_config() -> ModuleSpec | None:
    """The real `gunicorn.config`, which registers our options once it is loaded."""
    sys.meta_path[:] = [
        each
        for each in sys.meta_path
        if getattr(each, "__name__", "") != "CowpreloadFinder"
    ]
    from importlib.util import find_spec

    spec = find_spec("gunicorn.config")
    if spec is None or spec.loader is None:
        return spec
    loader: Any = spec.loader
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        try:
            from cowpreload.hosts.gunicorn_options import register

            register(module)
        except Exception as error:
            print(f"cow: start-up hook failed: {error!r}", file=sys.stderr)

    loader.exec_module = exec_module
    return spec
