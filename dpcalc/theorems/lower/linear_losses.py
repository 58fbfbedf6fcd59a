"""Lower bounds on every guarantee: the exact privacy of each algorithm over linear losses.

A linear loss is convex, smooth with every constant, and Lipschitz with the norm of its gradient. It belongs to every
class of losses here, unless strong convexity is promised. On the whole space the last iterate is the sum of all
gradients and all noise. `random_linear_losses` has the algorithms that use a record a random number of times.

Notation: r = Delta/(b sigma), n records, l steps a pass, E passes. Every value rounds down.
"""

from __future__ import annotations

import math

from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.floats import quotient_down
from dpcalc.theorems.conditions import GAUSSIAN, INDEX_IN_RANGE, ONE_RELEASE, UNBOUNDED
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, PLACE, Setting

LINEAR = "a lower bound: linear losses on the whole space, of the given Lipschitz constant"


FLAT = requires(
    "strong_convexity <= 0",
    lambda run: (run.strong_convexity or 0.0) <= 0.0,
    lambda run: Unmet(
        f"linear losses have no curvature, and strong convexity is {run.strong_convexity:g}",
        "leave out --strong-convexity",
        ("strong_convexity",),
    ),
)
WHOLE_SPACE = (FLAT, UNBOUNDED)


# --- a fixed number of steps ------------------------------------------------------------------------------------------


@theorem(
    "linear.pass",
    title="One pass over linear losses, exactly",
    needs=(*PLACE, *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = Delta/(b sigma sqrt(l))",
    conditions=(INDEX_IN_RANGE, *WHOLE_SPACE),
    assumes=(LINEAR, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def single_pass(run: Setting) -> Gdp:
    """With linear losses the last iterate is the sum of all steps: the record moves it by eta Delta/b, and the noise of
    all l steps, both before and after the record's own, has variance l eta^2 sigma^2.

    >>> round(single_pass(Setting(records=100, index=100, batch_size=1, sensitivity=2.0, noise_std=1.0)).mu, 12)
    0.2
    """
    return Gdp(quotient_down((run.sensitivity,), (run.own_batch, run.noise_std, math.sqrt(run.period)), 8.0))


@theorem(
    "linear.passes",
    title="Passes in one order over linear losses, exactly",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("cyclic", "cyclic-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(b sigma)) sqrt(E/l)",
    conditions=(INDEX_IN_RANGE, *WHOLE_SPACE),
    assumes=(LINEAR, GAUSSIAN, "the last iterate is released; every pass moves it alike and independently"),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def passes(run: Setting) -> Gdp:
    """With linear losses E passes move the last iterate by E eta Delta/b, and the noise of all E l steps hides it.
    Released iterates between the passes reveal nothing more: the increments of the passes are independent with the same
    law, so their sum is sufficient.

    It is `multi_epoch.quadratic` at m = 0, for any smoothness.

    >>> run = Setting(records=100, index=100, batch_size=1, epochs=25, sensitivity=2.0, noise_std=1.0)
    >>> round(passes(run).mu, 12)
    1.0
    """
    moved = (run.sensitivity, math.sqrt(run.epochs))
    return Gdp(quotient_down(moved, (run.own_batch, run.noise_std, math.sqrt(run.period)), 12.0))


@theorem(
    "linear.descent",
    title="Full-batch steps over linear losses, exactly",
    needs=("records", "steps", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("noisy-gd", "noisy-gd-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(n sigma)) sqrt(T)",
    conditions=WHOLE_SPACE,
    assumes=(LINEAR, GAUSSIAN, "the last iterate is released, or every one"),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def descent(run: Setting) -> Gdp:
    """With linear losses T steps move the last iterate by T eta Delta/n, and the noise of all of them hides it. This
    equals the composition bound, which is therefore exact.

    >>> round(descent(Setting(records=10, steps=100, sensitivity=1.0, noise_std=1.0)).mu, 12)
    1.0
    """
    return Gdp(quotient_down((run.sensitivity, math.sqrt(run.steps)), (run.records, run.noise_std), 8.0))


@theorem(
    "linear.local",
    title="The record's own noisy message, exactly",
    needs=(*PLACE, *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("local",),
    reference="dpcalc",
    locator="a Gaussian mechanism",
    formula="mu = Delta/(b sigma)",
    conditions=(INDEX_IN_RANGE, FLAT),
    assumes=("a lower bound: linear losses of the given Lipschitz constant", GAUSSIAN),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def local(run: Setting) -> Gdp:
    """The message is a gradient plus noise, and linear losses have gradients that differ by Delta. It is a Gaussian
    mechanism of exactly this mu, whatever the domain.

    >>> round(local(Setting(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0)).mu, 12)
    0.5
    """
    return Gdp(quotient_down((run.sensitivity,), (run.own_batch, run.noise_std), 4.0))
