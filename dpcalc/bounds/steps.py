"""What several families need to know of a step: its batch, its contraction, and the clauses both rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.numerics.floats import down, up
from dpcalc.registry import Requirement
from dpcalc.spec.loss import LIPSCHITZ_MAPS, exceeds_two

ONE_RELEASE = "only the last iterate is released, once"
CONVEX_SMOOTH = "every loss is convex and smooth, step_size <= 2/smoothness"
GAUSSIAN = "fresh Gaussian noise in every step, w - step_size (gradient + Z)"
FIXED_ORDER = "one pass in a fixed order, each record used once"
NO_CLIPPING = "the gradient is that of the loss (per-example clipping breaks this unless the model is linear)"


def batch_of(records: int, index: int, batch_size: int) -> tuple[int, int]:
    """Return (size of the batch that holds record ``index``, number of steps from it to the end, itself included)."""
    position = (index - 1) // batch_size
    size = min(batch_size, records - position * batch_size)
    return size, -(-records // batch_size) - position


def decay_rate(step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return -ln c, rounded down, for c = max(|1 - eta m|, |1 - eta beta|); 0 when c = 1, inf when c = 0."""
    # Each product is moved to its unsafe side before 1 is subtracted, where its rounding would be magnified.
    shrunk = down(step_size * strong_convexity, 4.0)
    from_convexity = -math.log1p(-shrunk) if shrunk < 1.0 else math.inf
    overshoot = up(step_size * smoothness, 4.0) - 1.0
    from_smoothness = -math.log(overshoot) if overshoot > 0.0 else math.inf
    return max(0.0, down(min(from_convexity, from_smoothness), 4.0))


def faded(ratio: float, rate: float, lag: int, steps: int) -> float:
    """Return ratio c^lag sqrt((1 - c^2)/(1 - c^(2 steps))) for c = exp(-rate), rounded up (ratio/sqrt(steps) at c = 1).

    The GDP parameter of one shift (in units of the noise of a step) that is spent optimally over ``steps`` steps, when
    ``lag`` contractions stand between the shift and the end.
    """
    if rate == 0.0:
        return up(ratio / math.sqrt(steps), 8.0)
    if math.isinf(rate):
        return ratio if lag == 0 else 5e-324
    spread = math.expm1(-2.0 * rate) / math.expm1(-2.0 * rate * steps)
    exponent = min(rate * lag, 1500.0)
    quarter = math.exp(-0.25 * exponent)  # four factors, none of them subnormal
    value = ratio * quarter * quarter * math.sqrt(spread) * quarter * quarter
    return up(max(value, 5e-324), 32.0 + 4.0 * exponent)


def _index_in_range(values: Mapping[str, Any]) -> tuple[str, str] | None:
    n, i = values["records"], values["index"]
    return (f"index {i} is past the last record {n}", f"use --index between 1 and {n}") if i > n else None


def _step_within(values: Mapping[str, Any]) -> tuple[str, str] | None:
    eta, beta, known = values.get("step_size"), values.get("smoothness"), values.get("loss_class")
    if eta is None or beta is None:
        return "needs step_size and smoothness", "give --step-size and --smoothness"
    if known not in (None, "convex-smooth"):
        return f"speaks of convex smooth losses, and the loss is {known}", _CONVEX_SMOOTH_HINT
    if beta > 0.0 and exceeds_two(eta, beta):
        return (
            f"step size {eta:g} exceeds 2/smoothness = {2.0 / beta:g}, which the theorem needs",
            f"use --step-size <= {2.0 / beta:g}, or --algorithm local, which asks nothing of the loss "
            "but promises no amplification",
        )
    return None


_CONVEX_SMOOTH_HINT = "give --loss-class convex-smooth, if it is"


def _convexity_within(values: Mapping[str, Any]) -> tuple[str, str] | None:
    m, beta = values.get("strong_convexity"), values.get("smoothness")
    if m is not None and beta is not None and m > beta:
        return f"strong convexity {m:g} exceeds smoothness {beta:g}", "a loss cannot curve more than its smoothness"
    return None


def _batches_of_one(values: Mapping[str, Any]) -> tuple[str, str] | None:
    b = values.get("batch_size")
    return (f"batch size is {b}; this theorem is for single records", "use --batch-size 1") if b != 1 else None


def _strongly_convex(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if not values["strong_convexity"]:
        return "the losses are not known to be strongly convex", "give --strong-convexity if they are"
    return _convexity_within(values)


STRONGLY_CONVEX = Requirement("0 < strong_convexity <= smoothness", _strongly_convex)


INDEX_IN_RANGE = Requirement("1 <= index <= records", _index_in_range)
STEP_WITHIN = Requirement("loss_class = convex-smooth, step_size <= 2/smoothness", _step_within)
CONVEXITY_WITHIN = Requirement("strong_convexity <= smoothness", _convexity_within)
BATCHES_OF_ONE = Requirement("batch_size = 1", _batches_of_one)


def _noise_is(kind: str) -> Requirement:
    def failure(values: Mapping[str, Any]) -> tuple[str, str] | None:
        found = values.get("noise")
        flag = {"gaussian": "--noise-std", "laplace": "--laplace-scale"}[kind]
        return None if found in (None, kind) else (f"is for {kind} noise, and the noise is {found}", f"give {flag}")

    return Requirement(f"noise = {kind}", failure)


GAUSSIAN_NOISE = _noise_is("gaussian")
LAPLACE_NOISE = _noise_is("laplace")


def _lipschitz_maps(values: Mapping[str, Any]) -> tuple[str, str] | None:
    found = values.get("loss_class")
    if found in LIPSCHITZ_MAPS:
        return None
    return (
        f"needs maps that are Lipschitz, and of a loss that is only {found} they are not",
        "give --loss-class convex-smooth or smooth, if it is, with --smoothness",
    )


LIPSCHITZ = Requirement("loss_class is convex-smooth or smooth", _lipschitz_maps)


def _chain_lipschitz(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if getattr(values.get("schedule"), "lipschitz", True):
        return None
    return f"needs maps that are Lipschitz, and of a loss that is only {values.get('loss_class')} they are not", (
        "give --smoothness, or a column contraction"
    )


LIPSCHITZ_CHAIN = Requirement("every step's map is Lipschitz with a known factor", _chain_lipschitz)


def _one_dimension(values: Mapping[str, Any]) -> tuple[str, str] | None:
    d = values.get("dimension", 1)
    return None if d == 1 else (f"is for one dimension, and the dimension is {d}", "use --dimension 1 if it is")


ONE_DIMENSION = Requirement("dimension = 1", _one_dimension)
