"""Let gunicorn know "cow" and its options before it builds its configuration.

What is in start-up/ is installed beside the package, into site-packages.
`cowpreload.pth` (Python up to 3.17) puts a finder of ours before the others, which
calls `spec_of_config` when gunicorn.config is imported. `cowpreload.start` (PEP 829)
does the same from 3.18 on, which ignores the .pth; 3.15 reads it too, but to resolve
its name it imports `re` and `pkgutil`, 9 ms in each interpreter start (CPU, 3.15.2).

Whatever goes wrong here, gunicorn must be imported as it is without us.
"""

from __future__ import annotations

import os
import sys

# As typing's, without importing it: gunicorn has not asked for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class ConfigLoader:
    """The loader of `gunicorn.config`, which has our options registered afterwards.

    A loader of our own, because the real one may serve other modules too (zipimport) or
    take no attributes. It is gone before the module's code runs: inspect, pkgutil and
    importlib.resources only ever see the real one.
    """

    def __init__(self, real: Any, finder: Any) -> None:
        self._real = real
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._real
        self._real.exec_module(module)
        try:
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            from cowpreload.hosts.gunicorn_options import register

            register(module)
        except Exception as error:
            print(f"cow: start-up hook failed: {error!r}", file=sys.stderr)


def _real_spec(
    ours: Any, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What the other finders say, as the import system would ask them."""
    for finder in sys.meta_path:
        if finder is not ours:
            spec = finder.find_spec("gunicorn.config", path, target)
            if spec is not None:
                return spec
    return None


def spec_of_config(
    finder: Any, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """The real spec of `gunicorn.config` with our loader; None if we are switched off.

    `finder` is ours: it is taken out once the module is loaded.
    """
    if os.environ.get("COWPRELOAD_STARTUP") == "0":
        return None
    spec = _real_spec(finder, path, target)
    if spec is not None and hasattr(spec.loader, "exec_module"):
        loader: Any = ConfigLoader(spec.loader, finder)
        spec.loader = loader
    return spec
