"""Where the random numbers come from, and how they are drawn."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.choices import Noise

Array = NDArray[np.float64]


class Source(NamedTuple):
    """A generator of random numbers: noise, and the order of records, come from the same.

    Attributes:
        generator: what draws.
        private: whether nobody can draw the same numbers again. Privacy holds only then.
        label: for reports.
    """

    generator: np.random.Generator
    private: bool
    label: str


def from_os() -> Source:
    """Return a generator seeded by 128 bits from the operating system."""
    return Source(np.random.Generator(np.random.SFC64(np.random.SeedSequence())), True, "SFC64, seeded by the OS")


def seeded(seed: int) -> Source:
    """Return a generator that draws the same numbers every time: for experiments, never for private data.

    Raises:
        SpecError: the seed is negative.
    """
    if seed < 0:
        raise SpecError(f"the seed is {seed}; it must be a whole number >= 0", "see --seed")
    return Source(np.random.Generator(np.random.SFC64(seed)), False, f"SFC64, seed {seed}: not private")


def secure() -> Source:
    """Return AES-128 in counter mode, its key from the operating system (`randomgen.AESCounter`).

    The package makes no claim of security of its own. What the low-order bits of floating-point noise would give away
    (Mironov 2012) is another matter: see `dpcalc.training.run.rounding`.

    Raises:
        SpecError: randomgen is not installed.
    """
    try:
        from randomgen import AESCounter
    except ImportError:
        raise SpecError("the secure source needs randomgen", "pip install randomgen") from None
    bits: Any = AESCounter(key=int.from_bytes(os.urandom(16), "little"))
    return Source(np.random.Generator(bits), True, "AES-128 in counter mode, its key from the OS")


def fill(generator: np.random.Generator, kind: str, out: Array) -> None:
    """Draw Gaussian or Laplace variables of scale 1 into ``out``, C-contiguous, in the order of its entries."""
    if kind == Noise.GAUSSIAN:
        generator.standard_normal(out=out)
        return
    # An exponential with a random sign bit: faster than Generator.laplace, and the same law.
    generator.standard_exponential(out=out)
    signs = np.frombuffer(generator.bytes(-(-out.size // 8)), dtype=np.uint8)
    flips = np.unpackbits(signs, count=out.size).view(np.bool_).reshape(out.shape)
    np.negative(out, out=out, where=flips)
