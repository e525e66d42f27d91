"""Apps of Django's own test suite in a forked child.

    python django_apps.py plain|frozen RECORDS TESTS-FOLDER APP[,APP ...]

Takes the `tests` folder of Django's source distribution; loads Django, its test
runner and every test module of the apps, forks, and makes the (in-memory) databases
and runs the tests in the child: a connection must not cross the fork.
"""

from __future__ import annotations

import os
import sys
import unittest
from typing import Any

from forked import Records, fork_here, leave
from recording import recording


def run(regime: str, records: Records, folder: str, apps: list[str]) -> None:
    sys.path.insert(0, folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "test_sqlite"
    import runtests  # type: ignore[import-not-found]  # Django's, found in the folder
    from django.test.runner import DiscoverRunner

    class ForkingRunner(DiscoverRunner):  # type: ignore[misc]
        """Everything up to the suite belongs to the parent, the rest to the child."""

        def setup_databases(self, **options: Any) -> Any:
            fork_here(regime, records)
            return super().setup_databases(**options)

        def get_resultclass(self) -> type[unittest.TextTestResult]:
            return recording(records)

    labels, _ = runtests.setup_run_tests(1, None, None, test_labels=apps)
    # What runtests.py itself gives; one process, or the pool would fork again.
    ForkingRunner(verbosity=2, interactive=False, parallel=1).run_tests(labels)
    leave(records)


def main(regime: str, path: str, folder: str, apps: str) -> None:
    run(regime, Records(path), folder, apps.split(","))


if __name__ == "__main__":
    main(*sys.argv[1:])
