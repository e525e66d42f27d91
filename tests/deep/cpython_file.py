"""One file of CPython's own tests in a forked child.

    python cpython_file.py plain|frozen RECORDS NAME[,OTHER-NAME] [warm]

Takes the name of a test module in the standard library's `test` package, and the
names that other versions of Python have for it; loads it and builds its tests, forks,
and runs them. `warm` runs them once in the parent, too, as a warm up does: code is
specialized and caches are filled when the heap is frozen. Resources that regrtest
leaves out by default are left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import unittest

from forked import Records, fork_here, leave
from recording import recording


def load(names: list[str]) -> unittest.TestSuite:
    from test import support

    support.use_resources = []
    support.verbose = False
    for name in names:
        if importlib.util.find_spec(f"test.{name}"):
            module = importlib.import_module(f"test.{name}")
            return unittest.TestLoader().loadTestsFromModule(module)
    raise SystemExit(f"no test.{' or test.'.join(names)}: install Python's test suite")


def main(regime: str, path: str, names: str, warm: str = "") -> None:
    records = Records(path)
    if warm:
        unittest.TextTestRunner().run(load(names.split(",")))
    suite = load(names.split(","))
    runner = unittest.TextTestRunner(resultclass=recording(records), verbosity=2)
    fork_here(regime, records)
    runner.run(suite)
    leave(records)


if __name__ == "__main__":
    main(*sys.argv[1:])
