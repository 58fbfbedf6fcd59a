"""The default rule for batches of a size that is given: which way to draw them needs less noise at equal work.

Two ways are compared at the same number of passes: fresh uniform batches, accounted by composition, so that every
iterate may be public and their tail is averaged; and passes in fresh orders that stay secret for ever, of which the
last iterate alone is released, and whose steps are at most 2/smoothness long; of several classes the softmax is then
capped. The second is left out where the budget cannot pay for its rounding. Few passes or a small epsilon speak for
the first, small batches and many passes for the second. Where records fit in memory, full batches are better than
either. Here kappa = C sqrt(T/d)/sigma, which for full batches is that of `dpcalc.training.rule.full_batches`.
"""

from __future__ import annotations

import math

from dpcalc.engine.question import Question
from dpcalc.model.algorithm import FRESH_BATCHES, FRESH_ORDERS
from dpcalc.model.choices import Model, Permutation, Releases
from dpcalc.model.source import Source
from dpcalc.numerics.floats import down
from dpcalc.training.rule.accounting import noise_scale
from dpcalc.training.rule.defaults import fill_split
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.full_batches import (
    LOSSES,
    Pick,
    Rule,
    budget_of,
    clip_of,
    picks_of_setup,
    signal_of,
    step_size_of,
    switches_of,
    travel_of,
)
from dpcalc.training.rule.setup import Average, Setup

PASSES = 10
"""Passes where none are given: more cost time and change little."""

_BESIDE = ("batch_size", "epochs")


def applies(draft: Draft, question: Question) -> bool:
    """Return whether a batch size is given, and nothing that says how batches are drawn."""
    alone = not set(switches_of(draft)) - set(_BESIDE) and draft.given("batch_size") and "steps" not in draft
    return alone and draft["loss"] in LOSSES and not question.solve


def fill(draft: Draft, question: Question, asked: Setup, columns: int) -> tuple[Rule, Average]:
    """Fill in clip, passes, algorithm and step size; return what was chosen, and what is made of the iterates.

    Raises:
        MissingParameter: there is no budget.
        SpecError, NotApplicable, Infeasible: see `dpcalc.training.rule.accounting.account`.
    """
    mu = budget_of(question)
    ideal = signal_of(draft["records"], mu, columns)
    picks = picks_of_setup(asked)
    picks.pop("average", None)
    scale = float(draft["feature_bound"]) * float(draft.get("label_bound", 1.0))
    if "clip" not in draft:
        picks["clip"] = Pick(*clip_of(draft, ideal, scale))
        draft.default("clip", picks["clip"].value, picks["clip"].source)
    if "epochs" not in draft:
        picks["epochs"] = Pick(PASSES, Source.DEFAULT, "more cost time and change little")
        draft.default("epochs", PASSES)
    steps = int(draft["epochs"]) * -(-int(draft["records"]) // int(draft["batch_size"]))
    step_size_of(1.0, float(draft["clip"]) / scale, float(draft["feature_bound"]), steps)
    draft.fill_model()
    sampled = {"algorithm": FRESH_BATCHES, "release": Releases.EPOCH}
    noise = {"sampled": _noise(draft, question, step_size=1.0, **sampled)}
    hidden = {"algorithm": FRESH_ORDERS, "permutation": Permutation.SECRET}
    if "model" in draft and not draft.given("model"):
        hidden["model"] = Model.CAPPED
    smoothness = None if {**draft, **hidden}.get("model") == Model.ANY else draft.loss.smoothness
    if smoothness and asked.average != Average.TAIL and not draft.given("release"):
        longest = min(down(2.0 / smoothness), float(draft.get("step_size", math.inf)))
        from dpcalc.training.rule.guarantee import leaves_room  # which imports numpy

        needed = _noise(draft, question, step_size=longest, **hidden)
        if leaves_room(_trial(draft, step_size=longest, noise_std=needed, **hidden), question, columns):
            noise["hidden"] = needed
    hides = noise.get("hidden", math.inf) < noise["sampled"] and draft.get("step_size", 0.0) <= 2.0 / (
        smoothness or 1.0
    )
    for name, value in (hidden if hides else sampled).items():
        if not draft.given(name):
            draft.choose(name, value)
    said = ", ".join(f"{value:.4g} for {_SAID[way]}" for way, value in noise.items())
    picks["algorithm"] = Pick(draft["algorithm"], Source.DERIVED, f"noise at {draft['epochs']} passes: {said}")
    clip = float(draft["clip"])
    kappa = clip * math.sqrt(steps) / (min(noise.values()) * math.sqrt(columns))
    travel = travel_of(draft, kappa, clip / scale, steps, columns)
    if "step_size" not in draft:
        size = step_size_of(travel, clip / scale, float(draft["feature_bound"]), steps)
        why = (
            f"A/(C T) for a travel of A = {travel:.4g}"
            if not hides
            else f"as far as A = {travel:.4g}, at most 2/smoothness"
        )
        size = float(f"{size:.4g}")
        size = min(size, down(2.0 / smoothness)) if hides and smoothness else size
        picks["step_size"] = Pick(size, Source.DERIVED, why)
        draft.default("step_size", size, Source.DERIVED)
    average = asked.average or (Average.NONE if hides else Average.TAIL)
    if asked.average is None:
        why = "one iterate alone may be seen" if hides else "every iterate is accounted as public"
        picks["average"] = Pick(average, Source.DERIVED, why)
    return Rule(kappa, mu, travel, picks), Average(average)


_SAID = {"sampled": "fresh uniform batches, composed", "hidden": "passes in secret orders"}


def _noise(draft: Draft, question: Question, **changes: object) -> float:
    """Return the noise that a way to draw the batches needs."""
    return noise_scale(_trial(draft, **changes), question)


def _trial(draft: Draft, **changes: object) -> Draft:
    trial = draft.replacing(**changes)
    fill_split(trial)
    return trial
