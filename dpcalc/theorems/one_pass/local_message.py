"""The noise of a record's own step alone: what protects it although every iterate is public (Feldman et al. 2018,
Lemma 27).

Notation as in `iteration`. Every value is rounded up.
"""

from __future__ import annotations

import math

from dpcalc.notions import classic
from dpcalc.notions.guarantee import Gdp, Point, Rdp
from dpcalc.numerics.floats import ratio_up, up
from dpcalc.theorems.conditions import GAUSSIAN, INDEX_IN_RANGE
from dpcalc.theorems.one_pass.iteration import PAPER, own_message
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, PLACE, Setting

_CLASSIC_ERRATUM = (
    "The paper uses the classic calibration for every epsilon. It is false for large epsilon: at delta = 1e-5 it holds "
    "exactly for epsilon <= 8.42. Past that range the row is withheld."
)

_MESSAGE = ("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size")


@theorem(
    "iteration.local",
    title="The record's own noisy message",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27, with the exact Gaussian calibration",
    formula="mu = Delta/(b sigma)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    erratum=_CLASSIC_ERRATUM,
    public_sums=True,
)
def local(run: Setting) -> Gdp:
    """Even if every iterate is public, the noise of the record's own step protects it: no amplification.

    >>> run = Setting(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0)
    >>> round(local(run).mu, 13)
    0.5
    """
    return Gdp(ratio_up(run.sensitivity, run.own_batch * run.noise_std))


@theorem(
    "iteration.local_rdp",
    title="The record's own noisy message, Renyi form",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27",
    formula="RDP(a) = a Delta^2/(2 b^2 sigma^2)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    implied_by="iteration.local",
    public_sums=True,
)
def local_rdp(run: Setting) -> Rdp:
    """Even if every iterate is public, the record's own step is a Gaussian mechanism.

    >>> run = Setting(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0)
    >>> round(local_rdp(run).curve(2.0), 13)
    4.0
    """
    return Rdp(lambda order: own_message(run, order))


@theorem(
    "iteration.local_classic",
    title="Classic Gaussian calibration of the message",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27, inside its true range",
    formula="eps = Delta sqrt(2 ln(1.25/delta))/(b sigma), if eps <= eps_max(delta)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    erratum=_CLASSIC_ERRATUM,
    public_sums=True,
)
def local_classic(run: Setting) -> Point:
    """The textbook calibration sigma = Delta sqrt(2 ln(1.25/delta))/eps, read as an epsilon, where it is true.

    It is infinite outside that range.

    >>> run = Setting(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=20.0)
    >>> round(local_classic(run).rule(math.log(1e-5)), 12)
    0.484480526261
    """
    mu = local(run).mu

    def rule(log_delta: float) -> float:
        epsilon = up(mu * classic.factor(log_delta), 8.0)
        return epsilon if epsilon <= classic.epsilon_max(log_delta) else math.inf

    return Point(rule)
