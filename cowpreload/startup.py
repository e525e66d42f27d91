"""Let gunicorn know "cow" and its options before it builds its configuration.

setup.py writes the code of this file into `cowpreload.pth` (Python up to 3.17);
`cowpreload.start` names `install` (3.15 and newer). Either way it runs in every
interpreter start: it must cost less than 1 ms, import neither gunicorn nor ours,
and never raise. COWPRELOAD_STARTUP=0 switches it off.
"""

import os
import sys


class CowpreloadFinder:
    """Wait for `gunicorn.config`, then step aside."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "gunicorn.config":
            return None
        sys.meta_path.remove(cls)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            load(module)
            try:
                from cowpreload.hosts.gunicorn_options import register

                register(module)
            except Exception as error:
                print("cow: start-up hook failed: %r" % error, file=sys.stderr)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install():  # type: ignore[no-untyped-def]
    if os.environ.get("COWPRELOAD_STARTUP") != "0":
        sys.meta_path.insert(0, CowpreloadFinder)


# exec'd from the .pth there is no package; imported from the .start there is one.
if not globals().get("__package__"):
    install()  # type: ignore[no-untyped-call]
