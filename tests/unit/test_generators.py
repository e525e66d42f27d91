"""numpy's generators: workers draw other numbers, but from a user's seed."""

from __future__ import annotations

import json

import pytest
from conftest import run

DRAWN = """
import json, os, sys
import numpy
from cowpreload import mending
from numpy.random import mtrand

GENERATORS = {
    "global": mtrand._rand,
    "RandomState": numpy.random.RandomState(),
    "default_rng": numpy.random.default_rng(),
    "spawned": numpy.random.default_rng().bit_generator.seed_seq.spawn(1)[0],
    "seeded RandomState": numpy.random.RandomState(7),
    "seeded default_rng": numpy.random.default_rng(7),
}
GENERATORS["spawned"] = numpy.random.default_rng(GENERATORS["spawned"])
if "seed" in sys.argv:
    numpy.random.seed(7)
for each in GENERATORS.values():
    each.normal()  # of two that RandomState makes at once
if "mend" in sys.argv:
    mending.prepare()
for worker in range(3):
    read, write = os.pipe()
    if not os.fork():
        drawn = {name: [each.normal(), each.random()] if hasattr(each, "random") else
            [each.normal(), each.random_sample()] for name, each in GENERATORS.items()}
        os.write(write, json.dumps(drawn).encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 1 << 16).decode())
"""


def repeated(*arguments: str) -> set[str]:
    """Those of which any two children drew the same numbers."""
    done = run("-c", DRAWN, *arguments)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    drawn = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(drawn) == 3
    return {
        name
        for name in drawn[0]
        for place in (0, 1)
        if len({each[name][place] for each in drawn}) < 3
    }


SEEDED = {"seeded RandomState", "seeded default_rng"}


@pytest.fixture(autouse=True)
def _numpy() -> None:
    pytest.importorskip("numpy")


def test_numpys_generators_do_not_repeat_what_other_workers_draw() -> None:
    assert repeated("mend") == SEEDED
    assert repeated() > {*SEEDED, "global", "RandomState", "default_rng"}


def test_a_seed_of_the_applications_is_kept() -> None:
    assert repeated("mend", "seed") == {*SEEDED, "global"}
