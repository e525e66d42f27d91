"""What Django asks of an installed application."""

from __future__ import annotations

from django.apps import AppConfig

import cowpreload


class CowpreloadConfig(AppConfig):  # type: ignore[misc]
    """Registers the checks, and the warming for the master of a server of ours."""

    name = "cowpreload.django"
    label = "cowpreload"
    verbose_name = "cowpreload"

    def ready(self) -> None:
        """Every process that loads the site comes by here: nothing is loaded yet.

        Nobody but a server of ours calls what `before_fork` is given.
        """
        from cowpreload.django import checks, warming

        checks.register()
        cowpreload.before_fork(warming.warm)
