"""The noise multiplier: the standard deviation of the noise on the sum of a batch's gradients, over their largest norm.

That is the word of libraries for DP-SGD, whatever the adjacency. A run here adds noise to the mean gradient, so that

    noise_std = noise multiplier x largest norm / batch size.

The largest norm is the one that gradients are clipped to, and without clipping the Lipschitz constant. The batch size
is the one that was given, or the number of records where a step uses all of them. No batch is larger; where a smaller
one is divided by its own size, a library's noise on its mean gradient is more than this noise_std, and more noise is no
less private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.model.parameter import to_give
from dpcalc.model.source import Source
from dpcalc.numerics.floats import down

if TYPE_CHECKING:
    from dpcalc.model.algorithm import Algorithm
    from dpcalc.model.draft import Description

LEAST, MOST = 1e-290, 1e290
"""Between them a product or a quotient of two is a number, and up and down are relative."""


def fill_in(algorithm: Algorithm, draft: Description) -> None:
    """Fill in noise_std from the noise multiplier, or the reverse where that can be told.

    Raises:
        SpecError: the noise multiplier is given, and noise_std does not follow from it.
    """
    name = "records" if algorithm.full_batch else "batch_size"
    lipschitz, size = draft.get("clip", draft.get("lipschitz")), draft.get(name)
    if "noise_multiplier" not in draft:
        if "noise_std" in draft and lipschitz is not None and size is not None and not algorithm.noisy_output:
            value = draft["noise_std"] / lipschitz * size
            if LEAST < value < MOST:
                draft.put("noise_multiplier", value, Source.DERIVED)
        return
    for other in ("noise_std", "langevin_std", "laplace_scale"):
        if other in draft:
            raise SpecError(f"both {other} and noise_multiplier are given", "give one of the two")
    if lipschitz is None or size is None:
        lacking = [what for what, value in (("lipschitz", lipschitz), (name, size)) if value is None]
        raise SpecError(
            f"noise_std = noise multiplier x Lipschitz constant / {name.replace('_', ' ')}, and {lacking[0]} is not "
            "known",
            f"{to_give(lacking)}; or give --noise-std",
            parameters=tuple(lacking),
        )
    if size > draft.get("records", size):
        raise SpecError(f"batch size {size} exceeds the {draft['records']} records", "use a smaller one")
    draft.put("noise_std", std_of(draft["noise_multiplier"], lipschitz, size), Source.DERIVED)


def std_of(multiplier: float, lipschitz: float, size: int) -> float:
    """Return noise_std on the mean of ``size`` gradients of norm at most ``lipschitz``, rounded down.

    Raises:
        SpecError: it is no number of a usual size.

    >>> round(std_of(1.1, 2.0, 100), 12)
    0.022
    """
    value = down(multiplier * lipschitz / size, 4.0)
    if not LEAST < value < MOST:
        raise SpecError("the noise_std that follows is out of range", "use other units")
    return value
