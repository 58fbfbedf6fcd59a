"""The default rule: what a run has where no flag describes another one. It looks at no record.

Full batches, gradients clipped to C, T = 100 or 200 steps accounted by composition, and the mean of the second half
of the iterates, all of which may be public. What the run can tell from noise is one number, kappa = n mu/(2 sqrt d),
with mu the Gaussian privacy that the budget allows and d the number of columns with the constant one: after T steps
along gradients of length C the weights have travelled A = eta C T, and the noise on them is about A/kappa long,
whatever C, T and eta are. So A rises with kappa; C and T decide only where slopes saturate and how fine the steps
are. Steps are far longer than 2/smoothness, which composition allows. `docs/training.md` says what the constants were
chosen on.

Lengths are for rows of norm 1 and targets in [-1, 1]; other bounds B and Y rescale C by B Y and the weights by Y/B.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpcalc.engine.question import Question
from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.choices import Releases
from dpcalc.model.loss.base import flag_of
from dpcalc.model.source import Source
from dpcalc.notes import DefaultRule
from dpcalc.training.rule.defaults import CLASSIFYING
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.setup import Average, Setup, Solver
from dpcalc.training.rule.sums_of_products import suits

STEPS = 100

STEPS_NUMBERS = 200
"""Steps for a number where the signal is very strong: a descent of at most 2/smoothness a step is too short before."""

VERY_STRONG = 100.0
"""The kappa from which a descent to predict a number has those steps."""

CONSTANT = 0.2
"""What the column of an intercept holds, for rows of norm 1."""

CONSTANT_NUMBERS = 0.3
"""The same where rows are centred to predict a number and noise weighs more than bias."""

FEW = 3.0
"""The kappa below which a model is little better than chance."""

SUFFICIENT = 1000.0
"""The kappa from which least squares are solved by noisy sums of products, which then do better than a descent."""

CENTRED_FROM = {"two": 5.0, "several": 10.0, "numbers": 8.0}
"""The kappa from which rows are centred, of two classes, of several and of numbers: below it, more is lost."""

PRECISE = 30.0
"""The kappa from which the bias of a fit of numbers weighs more than its noise: centred rows are then left longer."""

FEW_COLUMNS = 5
"""The number of columns, with the constant one, up to which rows of several classes are centred in units twice as long.

Distances from the mean differ most where there are few columns, and classes may lie behind one another.
"""

_MEAN_SHARE, _LENGTH_SHARE = 0.11, 0.01
"""Noisy sums for the mean row, and for the mean distance from it, per step of the descent."""

_DESCRIBED = ("clip", "steps", "step_size", "regularisation")
"""Parameters of a descent that is described: where one is given, rows are centred only if that is asked for."""

_LARGEST = 2.0**400  # of a bound on rows whose squares are neither too large nor too small

SWITCHES = (
    "algorithm", "release", "radius", "epochs", "batch_size", "last_batch", "permutation", "noise_std",
    "noise_multiplier", "laplace_scale", "noise", "c1", "c2", "decay_exponent", "schedule_factor", "power",
)  # fmt: skip
"""Parameters that describe a run of another kind: where one of them is given, the rule fills in nothing.

``release`` does so where the last iterate alone is to be seen: the rule accounts for every iterate as public, so that
whoever asks for all of them asks for no other run.
"""

_SHORTEST = 1e-290  # of steps, with all of their digits

LOSSES = ("logistic", "hinge", "softmax", "squares", "huber")
"""The losses that the rule speaks of. It was tuned on logistic, softmax and squares."""


class Pick(NamedTuple):
    """A value that the rule chose: ``source`` is ``default`` for a constant, ``derived`` for what depends on kappa."""

    value: Any
    source: Source
    why: str


class Centring(NamedTuple):
    """How rows are centred.

    Attributes:
        mean, distance: how many noisy sums there are for the mean row, and for the mean distance from it.
        units: how many mean distances become one unit of length, at most the feature bound.
        constant: what the constant column then holds, over the feature bound.
    """

    mean: int
    distance: int
    units: float = 1.0
    constant: float = CONSTANT

    @property
    def sums(self) -> int:
        """How many noisy sums there are."""
        return self.mean + self.distance


class Rule(NamedTuple):
    """What the rule came to.

    Attributes:
        kappa, mu, travel: see above; travel is in units of rows of norm 1, and None where nothing descends.
        picks: name -> what was chosen; what was given is not among them.
    """

    kappa: float
    mu: float
    travel: float | None
    picks: dict[str, Pick]

    def to_json(self) -> dict[str, Any]:
        """Return what is reported, JSON types only."""
        picked = {name: {**pick._asdict(), "source": str(pick.source)} for name, pick in self.picks.items()}
        return {"kappa": self.kappa, "mu": self.mu, "travel": self.travel, "picked": picked}

    def note(self) -> DefaultRule:
        """Return what is said of it beside the answer."""
        words = (f"{name.replace('_', ' ')} {_said(pick.value)}" for name, pick in self.picks.items())
        return DefaultRule(signal_to_noise=self.kappa, picked=", ".join(words))

    def warnings(self) -> tuple[str, ...]:
        """Return a warning where the noise is likely to drown what there is to learn."""
        if self.kappa >= FEW:
            return ()
        return (
            f"kappa, the signal to noise, is {self.kappa:.2g}, below {FEW:g}: expect a model little better than "
            "chance; use more records, fewer columns or a larger epsilon",
        )


def applies(draft: Draft, question: Question) -> bool:
    """Return whether the rule fills in what a run lacks.

    Args:
        draft: as given, with its loss; ``algorithm`` has a source where it was given.
        question: the budget.
    """
    return not switches_of(draft) and draft["loss"] in LOSSES and not question.solve


def switches_of(draft: Draft) -> list[str]:
    """Return which parameters that are given describe a run of another kind."""
    return [
        name for name in SWITCHES if draft.given(name) and (name != "release" or draft["release"] != Releases.EPOCH)
    ]


def without(error: MissingParameter, draft: Draft) -> MissingParameter:
    """Return what a run lacks, with what keeps the rule from filling it in, if a flag does."""
    switches = switches_of(draft)
    if not switches or draft["loss"] not in LOSSES:
        return error
    flag = flag_of(switches[0])
    return MissingParameter(
        f"{error.message}; {flag} describes a run of its own, which the default rule does not fill in",
        f"{error.hint}; or leave out {flag}", parameters=error.parameters,
    )  # fmt: skip


def settle(setup: Setup, draft: Draft, *, ruled: bool, batched: bool = False) -> Setup:
    """Return the setup with an intercept and the average chosen, and fill in what is then released.

    Without the rule a run has neither where they are not asked for. Of batches the average is chosen later.

    Raises:
        SpecError: a mean is wanted of iterates that are said to stay hidden.
    """
    average = setup.average or (Average.TAIL if ruled and not batched else Average.NONE)
    if average == Average.TAIL:
        draft.default("release", Releases.EPOCH, Source.DERIVED)
        if draft["release"] != Releases.EPOCH:
            raise SpecError("a mean of iterates is covered only where each of them is", "give --release epoch")
    intercept = ruled if setup.intercept is None else setup.intercept
    return setup._replace(average=average, intercept=intercept)


def centring_steps(steps: int) -> tuple[int, int]:
    """Return how many noisy sums of rows and of distances there are ahead of so many steps of a descent.

    >>> centring_steps(100)
    (11, 1)
    """
    return max(1, round(_MEAN_SHARE * steps)), max(1, round(_LENGTH_SHARE * steps))


def centring(draft: Draft, question: Question, steps: int, rows: int, columns: int) -> Centring:
    """Return how rows are centred ahead of so many steps of a descent.

    Args:
        draft: the loss.
        question: the budget.
        rows, columns: of the training records, the constant column included.

    Raises:
        MissingParameter: there is no budget.
    """
    found, kind = Centring(*centring_steps(steps)), _kind(draft)
    if kind == "several" and columns <= FEW_COLUMNS:
        return found._replace(units=2.0)
    if kind == "numbers" and signal_of(rows, budget_of(question), columns) < PRECISE:
        return found._replace(units=2.0, constant=CONSTANT_NUMBERS)
    return found


def centres(draft: Draft, question: Question, asked: Setup, rows: int, columns: int, *, ruled: bool) -> bool:
    """Return whether rows are centred: as asked, or where the rule has the choice and the signal is strong enough.

    Args:
        draft, question, asked: as of `fill`.
        rows, columns: of the training records, the constant column included.
        ruled: whether the rule speaks of full batches of this run.

    Raises:
        SpecError: it is asked for, of a run that the rule does not speak of.
        MissingParameter: there is no budget.
    """
    possible = ruled and 1.0 / _LARGEST <= float(draft["feature_bound"]) <= _LARGEST
    if asked.centre and not possible:
        raise SpecError(
            "rows are centred for a run of the default rule in full batches",
            "leave out --centre, or what describes another run",
        )
    if asked.centre is not None or not possible:
        return bool(asked.centre)
    contradicted = (
        asked.intercept is False or asked.average == Average.NONE or asked.synthetic is not None
        or asked.replicas > 1 or asked.tune is not None or asked.solver == Solver.SUMS
        or any(draft.given(name) for name in _DESCRIBED)
    )  # fmt: skip
    if contradicted:
        return False
    kappa = signal_of(rows, budget_of(question), columns)
    if draft["loss"] == "squares" and kappa >= SUFFICIENT and suits(draft, asked):
        return False
    return kappa >= CENTRED_FROM[_kind(draft)]


def _steps_of(draft: Draft, kappa: float) -> int:
    return STEPS_NUMBERS if _kind(draft) == "numbers" and kappa >= VERY_STRONG else STEPS


def _kind(draft: Draft) -> str:
    if draft["loss"] not in CLASSIFYING:
        return "numbers"
    return "several" if draft.get("classes", 2) > 2 else "two"


def fill(draft: Draft, question: Question, asked: Setup, columns: int, *, centred: bool = False) -> Rule:
    """Fill in clip, steps and step size, and return what was chosen.

    Args:
        draft: with the number of records and the bounds.
        question: the budget.
        asked: the setup as it was given.
        columns: d, the constant one included.
        centred: whether rows are centred, which takes a part of the budget.

    Raises:
        MissingParameter: there is no budget.
        SpecError: the bounds are too far from 1.
    """
    mu = budget_of(question)
    whole = signal_of(draft["records"], mu, columns)
    steps = int(draft.get("steps", _steps_of(draft, whole)))
    how = centring(draft, question, steps, draft["records"], columns) if centred else None
    kappa = whole * math.sqrt(steps / (steps + how.sums)) if how else whole
    bound, height = float(draft["feature_bound"]), float(draft.get("label_bound", 1.0))
    picks = picks_of_setup(asked, how.constant if how else CONSTANT)
    if how and asked.centre is None:
        units = "twice their mean distance" if how.units == 2.0 else "their mean distance"
        why = (
            f"from kappa = {CENTRED_FROM[_kind(draft)]:g} on: rows about their mean, in units of {units} from it, "
            "are told apart more easily, for a tenth of the budget"
        )
        picks["centre"] = Pick(True, Source.DERIVED, why)

    def pick(name: str, value: Any, source: Source, why: str) -> None:
        if name not in draft:
            draft.default(name, value, source)
            picks[name] = Pick(value, source, why)

    pick("clip", *clip_of(draft, kappa, bound * height))
    if steps == STEPS:
        pick("steps", steps, Source.DEFAULT, "full batches of public iterates: finer steps change little")
    else:
        why = f"from kappa = {VERY_STRONG:g} on: steps stay below 2/smoothness, and more of them travel further"
        pick("steps", steps, Source.DERIVED, why)
    unit = float(draft["clip"]) / (bound * height)
    travel = travel_of(draft, kappa, unit, int(draft["steps"]), columns)
    step_size = step_size_of(travel, unit, bound, int(draft["steps"]))
    why = f"A/(C T) for a travel of A = {travel:.4g}: {_why(draft)}"
    pick("step_size", float(f"{step_size:.4g}"), Source.DERIVED, why)
    return Rule(whole, mu, travel, picks)


def fill_sums(draft: Draft, question: Question, asked: Setup, columns: int) -> Rule | None:
    """Return what is chosen where least squares are solved by noisy sums of products; None where they are not.

    Args:
        draft, question, asked, columns: as of `fill`.

    Raises:
        MissingParameter: there is no budget.
    """
    mu = budget_of(question)
    kappa = signal_of(draft["records"], mu, columns)
    picks = picks_of_setup(asked)
    picks.pop("average", None)
    if asked.solver is None:
        if kappa < SUFFICIENT or not suits(draft, asked):
            return None
        why = f"from kappa = {SUFFICIENT:g} on: a descent is biased by its clipping, and noisy sums are not"
        picks = {"solver": Pick(Solver.SUMS, Source.DERIVED, why), **picks}
    return Rule(kappa, mu, None, picks)


def budget_of(question: Question) -> float:
    """Return mu, the Gaussian privacy that the budget allows.

    Raises:
        MissingParameter: there is no budget.
    """
    if question.epsilon is None or question.log_delta is None:
        raise MissingParameter(
            "how much noise and how long a run suit is not known",
            "give --epsilon and --delta; for example --epsilon 1 --delta 1e-6",
        )
    from dpcalc.notions.gaussian import largest_mu

    return largest_mu(epsilon=question.epsilon, log_delta_target=question.log_delta)


def signal_of(records: int, mu: float, columns: int) -> float:
    """Return kappa; never 0, so that a step has a length."""
    return max(records * mu / (2.0 * math.sqrt(columns)), 1e-9)


def picks_of_setup(asked: Setup, constant: float = CONSTANT) -> dict[str, Pick]:
    """Return what is chosen of the setup where it is not said: the average and the intercept, of such a column."""
    picks: dict[str, Pick] = {}
    if asked.average is None:
        why = "the last iterate alone is noisier where kappa is large; every iterate is accounted as public"
        picks["average"] = Pick(Average.TAIL, Source.DEFAULT, why)
    if asked.intercept is None:
        why = (
            f"a constant column of {constant:g} times the feature bound leaves the features nearly all of their length"
        )
        picks["intercept"] = Pick(True, Source.DEFAULT, why)
    return picks


def clip_of(draft: Draft, kappa: float, unit: float) -> tuple[float, Source, str]:
    """Return C, where it comes from and why, for bounds whose product is ``unit``."""
    if draft["loss"] in CLASSIFYING:
        return 0.1 * unit, Source.DEFAULT, "slopes that saturate early keep confident records from steering the model"
    why = "kappa/130 within 0.03 and 0.3: a cap that is too low biases the fit, and one too high adds noise"
    return float(f"{min(max(kappa / 130.0, 0.03), 0.3) * unit:.4g}"), Source.DERIVED, why


_WHY_CLASSES = "30 kappa, or 3.7 sqrt(d) kappa where that is more, at most 10000"
_WHY_SEVERAL = "the less of 30 and 4 K max(1, 6/kappa), times kappa, at most 10000, for K classes"
_WHY_NUMBERS = "kappa/4 within 0.3 and 2, times kappa, at most 1.9 C T, so that steps stay below 2/smoothness"


def _why(draft: Draft) -> str:
    if draft["loss"] not in CLASSIFYING:
        return _WHY_NUMBERS
    return _WHY_SEVERAL if draft.get("classes", 2) > 2 else _WHY_CLASSES


def travel_of(draft: Draft, kappa: float, clip: float, steps: int, columns: int) -> float:
    """Return A = eta C T, for a clip in units of rows of norm 1 and targets in [-1, 1]."""
    if draft["loss"] in CLASSIFYING:
        return min(_pace(draft, kappa, columns) * kappa, 1e4)
    return min(min(max(kappa / 4.0, 0.3), 2.0) * kappa, 1.9 * clip * steps)


def step_size_of(travel: float, unit: float, bound: float, steps: int) -> float:
    """Return eta = A/(C T), for a clip in units of B Y.

    Raises:
        SpecError: the lengths of steps are out of the range of doubles.
    """
    length = unit * bound * bound * steps
    if not _SHORTEST <= length <= 1.0 / _SHORTEST:
        raise SpecError("the bounds and the clip are too far from 1 for the default rule", "use other units")
    return travel / length


def _pace(draft: Draft, kappa: float, columns: int) -> float:
    """Return how far classes travel, over kappa.

    Noise on the weights that is A/kappa long moves the score of a row by about A/(kappa sqrt d), so that two classes
    travel further where d is large. Few of several classes are told apart sooner, and then noise alone is added.
    """
    classes = int(draft.get("classes", 2))
    return max(30.0, 3.7 * math.sqrt(columns)) if classes == 2 else min(30.0, 4.0 * classes * max(1.0, 6.0 / kappa))


def _said(value: Any) -> str:
    if value is True:
        return "yes"
    return f"{value:g}" if isinstance(value, float) else str(value)
