"""Wait for `gunicorn.config`, and let cowpreload add its class and options to it.

cowpreload.pth runs this in every start of the interpreter, so it imports nothing of
ours before gunicorn comes: it costs no more than the same text in the .pth did, and
the package would cost 3 ms. COWPRELOAD_STARTUP=0 switches it off. An interpreter start
depends on it: it must never raise.
"""

import sys


class CowpreloadFinder:
    """A finder that answers for one module."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore[no-untyped-def]
        """The real spec, whose loader tells us; None, and the next finder is asked."""
        if name != "gunicorn.config":
            return None
        try:
            from cowpreload.startup import spec_of_config

            return spec_of_config(cls, path, target)
        except Exception as error:
            print(f"cow: start-up hook failed: {error!r}", file=sys.stderr)
            return None


def install():  # type: ignore[no-untyped-def]
    """Ask our finder first. A venv whose lib64 is lib reads a .pth twice."""
    if CowpreloadFinder not in sys.meta_path:
        sys.meta_path.insert(0, CowpreloadFinder)
