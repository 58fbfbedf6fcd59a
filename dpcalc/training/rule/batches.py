"""The default rule for batches of a given size: it draws them in the way that needs less noise at equal work.

It compares two ways at the same number of passes. Fresh uniform batches are accounted by composition: every iterate may
be public, and the tail is averaged. Passes in fresh orders that stay secret forever release the last iterate alone, in
steps of at most 2/smoothness; with several classes the softmax is then capped. The second way is left out if the budget
has no room for its rounding. Few passes or a small epsilon favour the first, small batches and many passes the second.
If the records fit in memory, full batches are better than either. Here kappa = C sqrt(T/d)/sigma, which for full
batches is that of `dpcalc.training.rule.full_batches`.

Correlated noise is used only on request, without a comparison; kappa is then C T over sqrt(d) times the largest noise
of a prefix sum of T mean gradients.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpcalc.model.algorithm import FRESH_BATCHES, FRESH_ORDERS, Source
from dpcalc.model.quantities import Mechanism, Model, Permutation, Releases
from dpcalc.model.strategy import Strategy
from dpcalc.numerics.floats import down
from dpcalc.training.rule.defaults import fill_split
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.full_batches import LOSSES, Choice, Pick, Rule, switches_of
from dpcalc.training.rule.guarantee import described_run, noise_scale
from dpcalc.training.rule.setup import Average, Setup

PASSES = 10
"""Passes by default: more cost time and change little."""

OF_LAST = 0.3
"""With correlated noise: the best travel for the last iterate, over that for the mean of the later iterates.

A step's fresh noise is larger than with independent noise, and averaging removes it: 0.8 % to 2 % of accuracy.
"""

_BESIDE = ("batch_size", "epochs")


class _Way(NamedTuple):
    """A way to draw batches.

    Attributes:
        words: for the report.
        changes: its parameters.
        noise: the noise that it needs.
        longest: its longest step.
    """

    words: str
    changes: dict[str, Any]
    noise: float
    longest: float = math.inf


def applies(draft: Draft) -> bool:
    """Return whether a batch size is given, and no other flag about the drawing of batches but correlated noise."""
    beside = (*_BESIDE, "algorithm", "noise_multiplier") if _correlates(draft) else _BESIDE
    alone = not set(switches_of(draft)) - set(beside) and draft.given("batch_size") and draft.steps is None
    return alone and draft["loss"] in LOSSES and not draft.question.solve


def fill(draft: Draft, asked: Setup, columns: int) -> tuple[Rule, Average]:
    """Fill in clip, passes, algorithm and step size; return the choices and the average.

    Raises:
        MissingParameter: there is no budget.
        SpecError, NotApplicable, Infeasible: see `dpcalc.training.rule.guarantee.account`.
    """
    choice = Choice(draft, asked, columns)
    picks = choice.picks
    choice.pick_intercept()
    choice.pick_clip(choice.kappa)
    choice.pick("epochs", PASSES, Source.DEFAULT, "more cost time and change little")
    steps = int(draft["epochs"]) * -(-int(draft["records"]) // int(draft["batch_size"]))
    choice.step_size(1.0, steps)  # refuses lengths outside the range of doubles
    draft.fill_model()
    if _correlates(draft):
        return _fill_correlated(choice, steps)
    sampled, hidden = _sampled(draft), _hidden(draft, asked, columns)
    hides = hidden is not None and hidden.noise < sampled.noise and (draft.step_size or 0.0) <= hidden.longest
    ways = [sampled] if hidden is None else [sampled, hidden]
    way = ways[-1] if hides else sampled
    for name, value in way.changes.items():
        if not draft.given(name):
            draft.choose(name, value)
    noise = ", ".join(f"{one.noise:.4g} for {one.words}" for one in ways)
    picks["algorithm"] = Pick(draft["algorithm"], Source.DERIVED, f"noise at {draft['epochs']} passes: {noise}")
    least = min(one.noise for one in ways)
    kappa = float(draft["clip"]) * math.sqrt(steps) / (least * math.sqrt(columns))
    travel = choice.travel(kappa, steps)
    size = float(f"{choice.step_size(travel, steps):.4g}")
    why = f"as far as A = {travel:.4g}, at most 2/smoothness" if hides else f"A/(C T) for a travel of A = {travel:.4g}"
    choice.pick("step_size", min(size, down(way.longest)), Source.DERIVED, why)
    average = asked.average or (Average.NONE if hides else Average.TAIL)
    if asked.average is None:
        why = "one iterate alone may be seen" if hides else "every iterate is accounted as public"
        picks["average"] = Pick(average, Source.DERIVED, why)
    return Rule(kappa, choice.mu, columns, travel, picks), Average(average)


def _correlates(draft: Draft) -> bool:
    """Return whether a matrix correlates the noise of the steps."""
    return draft.algorithm.correlated


def _fill_correlated(choice: Choice, steps: int) -> tuple[Rule, Average]:
    """Fill in the matrix and the step size for correlated noise; every iterate may be public."""
    draft = choice.draft
    choice.pick("mechanism", Mechanism.BEST, Source.DEFAULT, "the least noise in prefix sums at this guarantee")
    trial = draft.replacing(step_size=1.0)
    run = described_run(trial)
    noise = noise_scale(trial) * Strategy.of(run.value).noise().largest * math.sqrt(choice.columns)
    kappa = steps * float(draft["clip"]) / noise
    travel = choice.travel(kappa, steps) * (OF_LAST if choice.asked.average == Average.NONE else 1.0)
    size = float(f"{choice.step_size(travel, steps):.4g}")
    choice.pick("step_size", size, Source.DERIVED, f"A/(C T) for a travel of A = {travel:.4g}")
    choice.pick_average()
    return Rule(kappa, choice.mu, choice.columns, travel, choice.picks), Average(choice.asked.average or Average.TAIL)


def _sampled(draft: Draft) -> _Way:
    changes = {"algorithm": FRESH_BATCHES, "release": Releases.EPOCH}
    noise = noise_scale(_trial(draft, step_size=1.0, **changes))
    return _Way("fresh uniform batches, composed", changes, noise)


def _hidden(draft: Draft, asked: Setup, columns: int) -> _Way | None:
    """Return passes in secret orders that release the last iterate alone; None where they do not apply."""
    from dpcalc.training.rule.guarantee import leaves_room  # which imports numpy

    changes: dict[str, Any] = {"algorithm": FRESH_ORDERS, "permutation": Permutation.SECRET}
    if draft.get("model") is not None and not draft.given("model"):
        changes["model"] = Model.CAPPED
    smoothness = None if {**draft, **changes}.get("model") == Model.ANY else draft.loss.smoothness
    if not smoothness or asked.average == Average.TAIL or draft.given("release"):
        return None
    longest = 2.0 / smoothness
    trial = _trial(draft, step_size=min(down(longest), float(draft.get("step_size", math.inf))), **changes)
    noise = noise_scale(trial)
    if not leaves_room(trial.replacing(noise_std=noise), columns):
        return None
    return _Way("passes in secret orders", changes, noise, longest)


def _trial(draft: Draft, **changes: object) -> Draft:
    trial = draft.replacing(**changes)
    fill_split(trial)
    return trial
