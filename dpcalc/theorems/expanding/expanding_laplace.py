"""Laplace noise, composed: no more is known of the losses than their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.errors import NotApplicable
from dpcalc.model.choices import Noise
from dpcalc.notions.guarantee import Composition
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.expanding.expanding_maps import ALL, LENGTH
from dpcalc.theorems.record import NotNeeded, requires, theorem
from dpcalc.theorems.setting import Setting

_LAPLACE = requires(
    "noise = laplace",
    lambda run: run.noise in (None, Noise.LAPLACE),
    NotNeeded("is for Laplace noise, and the noise is Gaussian", "give --laplace-scale, if it is Laplace"),
)


@theorem(
    "expanding.laplace",
    title="Laplace noise, composed",
    needs=("records", "sensitivity", "lipschitz", "noise", "scale", "batch_size?", "last_batch?", "epochs?", "steps?"),
    algorithms=tuple(name + suffix for suffix in ("", "-released") for name in ALL),
    reference="dong2022",
    locator="composition and subsampling without replacement, by the law of the privacy loss",
    formula="Lap(Delta/(b v)) composed once for every use, b the smallest batch; for batches drawn afresh "
    "C_{b/n}(Lap(2 L/(b v))) composed T times",
    conditions=(_LAPLACE, LENGTH),
    assumes=(
        "order and iterates may all be public",
        "fresh Laplace noise in every step, w - step_size (gradient + Z); in several dimensions lipschitz is in the "
        "1-norm",
        "orders and batches are drawn without looking at the data; no convexity, no smoothness, any step size",
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    public_sums=True,
)  # fmt: skip
def laplace(run: Setting) -> Composition:
    """Each use of the record is a Laplace mechanism, whatever the losses and the order; all iterates may be seen."""
    from dpcalc.notions import pld

    size = run.records if run.batch_size is None else run.batch_size
    if run.steps is not None:
        times, divisor, rate = run.steps, min(size, run.records), min(1.0, size / run.records)
    else:
        plan = layout(run.records, size, run.last_batch)
        times, divisor, rate = run.epochs or 1, plan.least_divisor, 1.0
    if rate == 1.0:
        ratio = quotient_up((run.sensitivity,), (float(divisor), run.scale))
        if ratio > 1e15:
            raise NotApplicable("gives no finite epsilon here", "more noise")
        return Composition([(pld.laplace(ratio=max(ratio, 1e-30)), times)])
    ratio = quotient_up((2.0, run.lipschitz), (float(divisor), run.scale))
    return Composition([(pld.from_curve(_sampled_laplace(ratio, up(rate))), times)])


def _sampled_laplace(ratio: float, rate: float) -> Callable[[Array], Array]:
    """Return the curve p h(ln(1 + (e^eps - 1)/p), r) of a step that uses the record with probability p."""
    from dpcalc.theorems.contraction.recursion import log_one_steps

    def curve(e: Array) -> Array:
        with np.errstate(over="ignore"):
            inner = np.where(e < 1.0, np.log1p(np.expm1(np.minimum(e, 1.0)) / rate), e - math.log(rate))
            inner = np.where(e < 1.0, inner, inner + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(e, 1.0))))
        shifted = np.maximum(0.0, inner - UNIT * (16.0 * np.abs(inner) + 16.0 * -math.log(rate) + 16.0))
        value: Array = log_one_steps(Noise.LAPLACE, shifted, ratio) + (math.log(rate) + 4.0 * UNIT)
        return np.minimum(0.0, value)

    return curve
