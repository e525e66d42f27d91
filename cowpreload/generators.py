"""numpy's random generators: other numbers in each worker than in its siblings.

CPython seeds `random` anew in a child; a generator of numpy's is copied, and all
workers and generations would draw the same numbers. `find` is called in the master,
`reseed` in a worker. One that the application has seeded keeps its sequence: it was
asked for. `random.Random` does not tell whether it was seeded, and is left alone.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

# numpy takes 128 bits of the system's where nobody gives a seed; people give fewer.
_SEED_BITS = 64


def _kinds() -> tuple[type, ...]:
    """numpy's two classes of generators, for issubclass, if anybody has imported it."""
    module = sys.modules.get("numpy.random")
    found = (getattr(module, name, None) for name in ("Generator", "RandomState"))
    return tuple(each for each in found if each is not None)


def _bits(generator: Any) -> Any:
    """What makes its numbers."""
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator
    return generator._bit_generator


def _unseeded(generator: Any) -> bool:
    """Whether the system gave its seed."""
    bits = _bits(generator)
    sequence = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
    entropy = getattr(sequence, "entropy", None)
    return isinstance(entropy, int) and entropy.bit_length() > _SEED_BITS


def find() -> list[Any]:
    """Every generator that nobody has seeded; looks at each object not frozen."""
    kinds = _kinds()
    if not kinds:
        return []
    # By type: isinstance() would look at __class__, which builds Django's lazy objects.
    found = [each for each in gc.get_objects() if issubclass(type(each), kinds)]
    return [each for each in found if _unseeded(each)]


def reseed(generator: Any) -> None:
    """In a worker: draw from now on what nobody else draws."""
    bits = _bits(generator)
    if not bits.lock.acquire(blocking=False):
        return  # of a thread that the fork has lost; so would each use of it wait
    bits.lock.release()
    bits.state = type(bits)().state
    if hasattr(generator, "set_state"):
        # The second of two normal numbers that were drawn at once.
        state = generator.get_state(legacy=False)
        generator.set_state({**state, "has_gauss": 0, "gauss": 0.0})
