"""Conditions and assumptions shared by several families."""

from __future__ import annotations

from dpcalc.model.loss_class import LIPSCHITZ_MAPS, exceeds_two, two_over
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.quantities import LastBatch, LossClass, Noise
from dpcalc.model.run import Run
from dpcalc.theorems.record import Condition, Obstacle, Unmet, lacking, requires

ONE_RELEASE = "only the last iterate is released, once"
CONVEX_SMOOTH = "every loss is convex and smooth, step_size <= 2/smoothness"
GAUSSIAN = "fresh Gaussian noise in every step, w - step_size (gradient + Z)"
FIXED_ORDER = "one pass in a fixed order, each record used once"
RANDOM_ORDER = (
    "one pass in a uniformly random order (or rotation), drawn without looking at the data; it may be published"
)
ONE_ORDER = (
    "one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the data; it may "
    "be published"
)
DOMAIN = "iterates are projected onto a set of the given diameter"
WHERE_BOUNDED = f"where used: {DOMAIN}"
HIDDEN = {
    ONE_RELEASE: "only the final model is seen",
    "only the last iterate of each pass is released": "of a pass only the last iterate is seen",
    "the latest iterate is released once; releases at several times compose": "the model is seen once",
    "the iterate after a uniformly random number 1..n of steps is released": "only the final model is seen",
    "the iterate after every pass is released, and nothing between": "only one iterate a pass is seen",
    "the average of the iterates plus noise is released, once": "only the noisy average is seen",
    "the pass stops after a uniformly random number of steps, which stays hidden": "nobody learns when the run stopped",
    "every step draws one record, uniformly and with replacement; which ones stays secret": "the draws stay secret",
}
"""Assumptions that nobody can check afterwards -> what must stay hidden."""

ROUNDED = "released numbers are rounded to a grid that does not depend on the records"
"""What training assumes beyond its theorem, and ensures itself."""

PERMITTED = frozenset(
    {
        "every iterate may be released",
        "every iterate may be released, and so may their average",
        "iterates may all be public",
        "no convexity, no smoothness, any step size",
        "order and iterates may all be public",
    }
)
"""Assumptions that demand nothing of the user."""

NO_CLIPPING = (
    "the gradient is that of the loss (clipping each record's gradient breaks this unless the model is linear or its "
    "softmax capped, which --clip with --loss or --model says)"
)


NOT_LINEAR = Unmet(
    "speaks of gradients of convex smooth losses, and clipped gradients are such only where the model is linear",
    "give --loss with its --feature-bound, or --model linear with --smoothness, if it is",
    ("model", "smoothness"),
)


def _step_within(run: Run, classes: tuple[LossClass | None, ...] = (None, LossClass.CONVEX_SMOOTH)) -> Obstacle | None:
    eta, beta = run.step_size, run.smoothness
    if eta is None or beta is None:
        return lacking(run, "step_size", "smoothness")
    if run.clipped_gradients:
        return NOT_LINEAR
    if run.loss_class not in classes:
        return Unmet(
            f"speaks of convex smooth losses, and the loss is {run.loss_class}",
            "give --loss-class convex-smooth, if it is",
        )
    if beta > 0.0 and exceeds_two(eta, beta):
        most = shown_below(two_over(beta))
        return Unmet(
            f"step size {plain(eta)} exceeds 2/smoothness = {most}, which the theorem needs",
            f"use --step-size <= {most}",
        )
    return None


def _convexity_within(run: Run) -> Obstacle | None:
    m, beta = run.strong_convexity, run.smoothness
    if m is None or beta is None or m <= beta:
        return None
    return Unmet(
        f"strong convexity {plain(m)} exceeds smoothness {plain(beta)}", "a loss cannot curve more than its smoothness"
    )


def _strongly_convex(run: Run) -> Obstacle | None:
    if not run.strong_convexity and run.clip is not None:
        return Unmet(
            "clipped gradients are strongly convex by a regulariser alone",
            "give --regularisation, with --loss",
            ("regularisation",),
        )
    if not run.strong_convexity:
        return Unmet(
            "the losses are not known to be strongly convex",
            "give --strong-convexity if they are",
            ("strong_convexity",),
        )
    return _convexity_within(run)


def _balanced(run: Run) -> Obstacle | None:
    eta, beta, m = run.step_size, run.smoothness, run.strong_convexity or 0.0
    if eta is None or beta is None:
        return lacking(run, "step_size", "smoothness")
    if exceeds_two(eta, beta, m):
        most = shown_below(two_over(beta, m))
        return Unmet(
            f"step size {plain(eta)} exceeds 2/(smoothness + strong_convexity) = {most}, past which it says nothing",
            f"use --step-size <= {most}",
        )
    return None


def _noise_is(kind: Noise, flag: str) -> Condition:
    def check(run: Run) -> Obstacle | None:
        if run.noise in (None, kind):
            return None
        cure = f"give --noise {kind}" if run.algorithm.grows else f"give {flag}"
        return Unmet(f"is for {kind} noise, and the noise is {run.noise}", cure, ("noise",))

    return Condition(f"noise = {kind}", check)


def _lipschitz_maps(run: Run) -> Obstacle | None:
    if run.loss_class in LIPSCHITZ_MAPS:
        return None
    if run.clipped_gradients:
        return NOT_LINEAR
    return Unmet(
        f"speaks of maps that are Lipschitz, and of a loss that is only {run.loss_class} they are not",
        "give --loss-class convex-smooth or smooth, if it is, with --smoothness",
        ("loss_class", "smoothness"),
    )


def _chain_lipschitz(run: Run) -> Obstacle | None:
    if run.schedule is None or run.schedule.lipschitz:
        return None
    if run.clipped_gradients:
        return NOT_LINEAR
    return Unmet(
        f"speaks of maps that are Lipschitz, and of a loss that is only {run.loss_class} they are not",
        "give --smoothness, or a column contraction",
        ("smoothness",),
    )


INDEX_IN_RANGE = requires(
    "1 <= index <= records",
    lambda run: run.records is None or run.index is None or run.index <= run.records,
    lambda run: Unmet(
        f"index {run.index} is past the last record {run.records}", f"use --index between 1 and {run.records}"
    ),
)
STEP_WITHIN = Condition("loss_class = convex-smooth, step_size <= 2/smoothness", _step_within)
STEP_OF_SMOOTH = Condition(
    "loss_class = convex-smooth or smooth, step_size <= 2/smoothness",
    lambda run: _step_within(run, (None, *LIPSCHITZ_MAPS)),
)
CONVEXITY_WITHIN = Condition("strong_convexity <= smoothness", _convexity_within)
STRONGLY_CONVEX = Condition("0 < strong_convexity <= smoothness", _strongly_convex)
BALANCED = Condition("step_size <= 2/(smoothness + strong_convexity)", _balanced)
UNBOUNDED = requires(
    "no bounded domain",
    lambda run: run.diameter is None,
    Unmet("its losses need the whole space, and a diameter is given", "leave out --diameter", ("diameter",)),
)
BATCH_WITHIN = requires(
    "batch_size <= records",
    lambda run: run.batch_size is None or run.records is None or run.batch_size <= run.records,
    lambda run: Unmet(f"batch size {run.batch_size} exceeds the {run.records} records", "use a smaller --batch-size"),
)
BATCHES_OF_ONE = requires(
    "batch_size = 1",
    lambda run: run.batch_size == 1,
    lambda run: Unmet(f"batch size is {run.batch_size}; this theorem is for single records", "use --batch-size 1"),
)
EQUAL_MAPS = requires(
    "no batch is divided by more than its own size",
    lambda run: (
        run.last_batch != LastBatch.NOMINAL
        or run.records is None
        or run.batch_size is None
        or not run.records % run.batch_size
    ),
    Unmet(
        "takes every step to contract alike, and a batch of fewer records that is divided by the nominal size "
        "contracts less (own, drop, balanced and front are covered)",
        "use --last-batch balanced",
    ),
)
GAUSSIAN_NOISE = _noise_is(Noise.GAUSSIAN, "--noise-std in place of --laplace-scale")
LAPLACE_NOISE = _noise_is(Noise.LAPLACE, "--laplace-scale in place of --noise-std")
LIPSCHITZ = Condition("loss_class is convex-smooth or smooth", _lipschitz_maps)
LIPSCHITZ_CHAIN = Condition("every step's map is Lipschitz with a known factor", _chain_lipschitz)
ONE_DIMENSION = requires(
    "dimension = 1",
    lambda run: run.dimension in (None, 1),
    lambda run: Unmet(f"is for one dimension, and the dimension is {run.dimension}", "use --dimension 1 if it is"),
)
