"""DP-SGD on clipped gradients of a linear model, of which only the last iterate is seen; shuffled or full batches.

Clipped gradients of a linear model are those of a convex loss (`dpcalc.model.clipping`), so that the run is one of
`shuffled_epochs` or of `noisy_gd`: a batch is divided by a constant, and a shorter one contracts no less than the
regulariser does. A record moves the sum of its batch by the clipping norm C, and by 2 C where another one comes in its
place; the noise on the sum is z C.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.choices import Adjacency, LastBatch, Sampling
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import down
from dpcalc.theorems.conditions import ONE_RELEASE, STEP_WITHIN
from dpcalc.theorems.many_passes import shuffled_epochs
from dpcalc.theorems.many_passes.periodic_allocation import Uses, bounded_mu, contracting_mu
from dpcalc.theorems.record import Condition, Obstacle, Unmet, theorem
from dpcalc.theorems.sampled.sampled_hidden import CONVEX_IF_CLIPPED, LINEAR_MODEL, ONLY_THE_LAST
from dpcalc.theorems.sampled.sampled_steps import ENDS_IN_SHUFFLED, sampling_is
from dpcalc.theorems.setting import Setting, decay_rate

_GRADIENTS = (
    "each record's gradient is clipped to norm clip, an intercept with the rest; a regulariser's is added after"
)
_NOISE = "fresh Gaussian noise of standard deviation noise_multiplier x clip on the sum, in every coordinate and step"
_PROJECTED = "where a diameter is given, every iterate is projected onto a set of that diameter"


class HiddenEpochs(Setting):
    """Epochs of shuffled batches over a linear model."""

    @functools.cached_property
    def orders(self) -> shuffled_epochs.RandomOrders:
        """The same run as one of gradients that need no clipping."""
        bins = -(-self.records // self.batch_size)
        clip = 1.0 if self.clip is None else self.clip
        return shuffled_epochs.RandomOrders(
            records=self.records, batch_size=self.batch_size, last_batch=LastBatch.NOMINAL, epochs=self.steps // bins,
            sensitivity=moved(self.adjacency) * clip,
            noise_std=down(self.noise_multiplier * clip / min(self.batch_size, self.records), 4.0),
            step_size=self.step_size, smoothness=max(self.smoothness, self.regularisation),
            strong_convexity=self.regularisation, diameter=math.inf if self.clip is None else self.diameter,
        )  # fmt: skip


def moved(adjacency: Adjacency) -> float:
    """Return by how much a record moves the sum of its batch, in clipping norms."""
    return 2.0 if adjacency == Adjacency.REPLACE_ONE else 1.0


def _whole_epochs(run: Run) -> Obstacle | None:
    n, b, steps = run.records, run.batch_size, run.steps
    if n is None or b is None or steps is None or steps % -(-n // b) == 0:
        return None
    return Unmet(
        "is for whole epochs, and the last one is cut short", f"use a multiple of {-(-n // b)} steps", ("steps",)
    )


@theorem(
    "sampled.hidden_shuffle",
    title="Shuffled batches with hidden iterates",
    needs=(
        "sampling", "adjacency", "records", "batch_size", "steps", "noise_multiplier", "step_size", "smoothness",
        "regularisation?", "clip?", "diameter?",
    ),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="shuffled_epochs.fresh for clipped gradients, which are those of a convex loss",
    formula="as shuffled_epochs.fresh with mu_1 = a/z, a = 1 (zero-out) or 2 (replace-one)",
    conditions=(
        LINEAR_MODEL, sampling_is(Sampling.SHUFFLE), ENDS_IN_SHUFFLED, Condition("whole epochs", _whole_epochs),
        STEP_WITHIN, ONLY_THE_LAST,
    ),
    assumes=(
        "in every epoch the records are cut into batches in a fresh random order, all orders equally likely and drawn "
        "without looking at the data; the orders may be published after the run",
        _GRADIENTS, "the sum of a batch is divided by batch_size, whatever its size", _NOISE, _PROJECTED,
        CONVEX_IF_CLIPPED, ONE_RELEASE,
    ),
    slack="as shuffled_epochs.fresh",
)  # fmt: skip
def shuffled(run: HiddenEpochs) -> Profile:
    """A use of the record in an earlier epoch fades in the steps behind it; the place in the last epoch decides.

    >>> run = HiddenEpochs(sampling="shuffle", adjacency="zero-out", records=1000, batch_size=1, steps=10**4,
    ...                    noise_multiplier=1.0, step_size=1.0, smoothness=1.0)
    >>> round(shuffled(run).profile(1.0), 2)  # as shuffled_epochs.fresh, with Delta = sigma
    -8.51
    """
    return shuffled_epochs.fresh(run.orders)


@theorem(
    "sampled.hidden_full",
    title="Full batches of clipped gradients with hidden iterates",
    needs=(
        "sampling", "adjacency", "steps", "noise_multiplier", "step_size", "smoothness", "regularisation?", "records?",
        "clip?", "diameter?",
    ),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="noisy_gd.contraction and noisy_gd.domain for clipped gradients, which are those of a convex loss",
    formula="as noisy_gd.contraction and noisy_gd.domain with r = a/z, a = 2 (replace-one) or 1, m = lambda",
    conditions=(LINEAR_MODEL, sampling_is(Sampling.FULL), STEP_WITHIN, ONLY_THE_LAST),
    assumes=(
        "every step uses all records", _GRADIENTS,
        "the sum is divided by a constant: for add and remove, by the number of records of the larger data set",
        _NOISE, _PROJECTED, CONVEX_IF_CLIPPED, ONE_RELEASE,
    ),
)  # fmt: skip
def descent(run: Setting) -> Gdp:
    """A regulariser, or a bounded domain, makes a run forget its early steps.

    >>> run = Setting(sampling="full", adjacency="zero-out", steps=10**6, noise_multiplier=10.0, step_size=1.0,
    ...               smoothness=0.01, regularisation=0.01)
    >>> round(descent(run).mu, 9)  # r sqrt((1 + c)/(1 - c)), c = 0.99
    1.410673598
    """
    uses = Uses(moved(run.adjacency), 1, run.noise_multiplier, period=1, tail=1, times=run.steps)
    rate = decay_rate(run.step_size, max(run.smoothness, run.regularisation), run.regularisation)
    if run.records is None or run.clip is None or math.isinf(run.diameter):
        return Gdp(contracting_mu(uses, rate))
    return Gdp(bounded_mu(uses, rate, down(run.step_size * run.clip / run.records, 4.0), run.diameter))
