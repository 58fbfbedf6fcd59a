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

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.algorithm import Release, Source
from dpcalc.model.loss.base import flag_of
from dpcalc.model.quantities import LossName, Releases
from dpcalc.model.question import Question
from dpcalc.notes import DefaultRule
from dpcalc.training.rule import faint
from dpcalc.training.rule.calibration import Calibrating, calibrating
from dpcalc.training.rule.defaults import CLASSIFYING
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.setup import Average, Setup, Solver
from dpcalc.training.rule.sums_of_products import suits

# Each constant was compared with half and twice its value on public tables, and checked on others: `docs/training.md`
# has the gains and the costs that are cited here.

STEPS = 100
"""Steps of a descent: the travel and the noise do not depend on them, and finer steps change little."""

STEPS_NUMBERS = 200
"""Steps for a number where the signal is very strong: a descent of at most 2/smoothness a step is too short before."""

VERY_STRONG = 100.0
"""The kappa from which a descent to predict a number has those steps: R2 is 0.01 better up to kappa = 150."""

CONSTANT = 0.2
"""What the column of an intercept holds, for rows of norm 1: the features keep 98 % of their length."""

CONSTANT_NUMBERS = 0.3
"""The same where rows are centred to predict a number and noise weighs more than bias; chosen with the units there."""

SUFFICIENT = 1000.0
"""The kappa from which least squares are solved by noisy sums of products: noise hides the bias of clipping no more."""

PRECISE = 30.0
"""The kappa from which the bias of a fit of numbers weighs more than its noise: centred rows are then left longer."""

FEW_COLUMNS = 5
"""The number of columns, with the constant one, up to which rows of several classes are centred in units twice as long.

Distances from the mean differ most where there are few columns, and classes may lie behind one another: 0.006 of
accuracy at kappa = 40.
"""

CLIP = 0.1
"""C to classify: slopes that saturate early keep confident records from steering the model."""

CLIP_NUMBERS = 130.0, 0.03, 0.3
"""What kappa is divided by for C to predict a number, and the ends of C: a lower cap biases, a higher adds noise."""

TRAVEL, TRAVEL_ROOT, LONGEST_TRAVEL = 30.0, 3.7, 1e4
"""A over kappa to classify; over kappa sqrt(d) where d is large (0.085 of accuracy on mnist); and A at most.

At 10000 a row that is 0.01 or more from the border has a score of 100 or more, and no slope.
"""

TRAVEL_SEVERAL, FAINT = 4.0, 6.0
"""A over K kappa for few of several classes, told apart sooner; and the kappa below which A stays the same."""

TRAVEL_NUMBERS, STEADY = (0.25, 0.3, 2.0), 1.9
"""A over kappa squared to predict a number, within two ends; and over C T at most, where 2 is 2/smoothness a step."""

_MEAN_SHARE, _LENGTH_SHARE = 0.11, 0.01
"""Noisy sums for the mean row, and for the mean distance from it, per step of the descent: a tenth of the budget.

A mean row has about as many entries as there are weights, and a distance is one number, for which one sum is enough.
"""

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


class Kind(NamedTuple):
    """What is predicted.

    Attributes:
        centred_from: the kappa from which rows are centred: below it, the budget for the mean is lost on most tables.
        why: how far the weights travel, in words.
    """

    centred_from: float
    why: str


TWO = Kind(5.0, "30 kappa, or 3.7 sqrt(d) kappa where that is more, at most 10000")
SEVERAL = Kind(10.0, "the less of 30 and 4 K max(1, 6/kappa), times kappa, at most 10000, for K classes")
NUMBERS = Kind(8.0, "kappa/4 within 0.3 and 2, times kappa, at most 1.9 C T, so that steps stay below 2/smoothness")


def kind_of(draft: Draft) -> Kind:
    """Return what a run is to predict."""
    if draft["loss"] not in CLASSIFYING:
        return NUMBERS
    return SEVERAL if draft.get("classes", 2) > 2 else TWO


class Rule(NamedTuple):
    """What the rule came to.

    Attributes:
        kappa, mu, columns, travel: see above; travel is in units of rows of norm 1, and None where nothing descends.
        picks: name -> what was chosen; what was given is not among them.
        calibrating: how scores become log-odds.
    """

    kappa: float
    mu: float
    columns: int
    travel: float | None
    picks: dict[str, Pick]
    calibrating: Calibrating = Calibrating()

    def to_json(self) -> dict[str, Any]:
        """Return what is reported, JSON types only."""
        picked = {name: {**pick._asdict(), "source": str(pick.source)} for name, pick in self.picks.items()}
        return {"kappa": self.kappa, "mu": self.mu, "travel": self.travel, "picked": picked}

    def note(self) -> DefaultRule:
        """Return what is said of it beside the answer."""
        words = (f"{name.replace('_', ' ')} {_said(pick.value)}" for name, pick in self.picks.items())
        return DefaultRule(signal_to_noise=self.kappa, picked=", ".join(words))

    def warnings(self, draft: Draft, asked: Setup) -> tuple[str, ...]:
        """Return warnings where the noise may drown what there is to learn, of all records or of the rarest class.

        Raises:
            SpecError: the shares of the classes are malformed.
        """
        signal = faint.Signal(self.kappa, self.mu, int(draft["records"]), self.columns, draft.question)
        whole = signal.warning(classifies=draft.get("loss") in CLASSIFYING)
        shares = asked.shares(int(draft.get("classes", 2)))
        rare = None if shares is None else signal.warning_of_class(min(shares))
        return tuple(text for text in (whole, rare) if text is not None)


def applies(draft: Draft) -> bool:
    """Return whether the rule fills in what a run lacks, whose loss is known."""
    return not switches_of(draft) and draft["loss"] in LOSSES and not draft.question.solve


def switches_of(draft: Draft) -> list[str]:
    """Return which parameters that are given describe a run of another kind."""
    return [name for name in SWITCHES if draft.given(name) and draft[name] != Releases.EPOCH]


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
    if average == Average.TAIL and draft.algorithm.release is not Release.STEP:
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


def centring(draft: Draft, steps: int, rows: int, columns: int) -> Centring:
    """Return how rows are centred ahead of so many steps of a descent.

    Args:
        draft: the loss and the budget.
        steps: of the descent.
        rows, columns: of the training records, the constant column included.

    Raises:
        MissingParameter: there is no budget.
    """
    usual, kind = Centring(*centring_steps(steps)), kind_of(draft)
    if kind is SEVERAL and columns <= FEW_COLUMNS:
        return usual._replace(units=2.0)
    if kind is NUMBERS and signal_of(rows, budget_of(draft.question), columns) < PRECISE:
        return usual._replace(units=2.0, constant=CONSTANT_NUMBERS)
    return usual


def centres(draft: Draft, asked: Setup, rows: int, columns: int, *, ruled: bool) -> bool:
    """Return whether rows are centred: as asked, or where the rule has the choice and the signal is strong enough.

    Args:
        draft, asked: as of `fill`.
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
        or asked.tune is not None or asked.solver == Solver.SUMS
        or any(draft.given(name) for name in _DESCRIBED)
    )  # fmt: skip
    if contradicted:
        return False
    kappa = signal_of(rows, budget_of(draft.question), columns)
    if kappa >= SUFFICIENT and suits(draft, asked):
        return False
    return kappa >= kind_of(draft).centred_from


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
    """Return kappa; at least 1e-9, which is as good as nothing, so that a step has a length."""
    return max(records * mu / (2.0 * math.sqrt(columns)), 1e-9)


class Choice:
    """What the rule chooses of a run.

    Attributes:
        draft: with the number of records and the bounds.
        asked: the setup as it was given.
        columns: d, the constant one included.
        mu, kappa: see above.
        picks: name -> what was chosen; what was given is not among them.
    """

    def __init__(self, draft: Draft, asked: Setup, columns: int) -> None:
        """Choose nothing yet.

        Raises:
            MissingParameter: there is no budget.
        """
        self.draft, self.asked, self.columns, self.mu = draft, asked, columns, budget_of(draft.question)
        self.kappa = signal_of(draft["records"], self.mu, columns)
        self.picks: dict[str, Pick] = {}
        self.kind, self.bound = kind_of(draft), float(draft["feature_bound"])
        self.height = self.bound * float(draft.get("label_bound", 1.0))

    def pick(self, name: str, value: Any, source: Source, why: str) -> None:
        """Fill in a parameter that is not given."""
        if name not in self.draft:
            self.draft.default(name, value, source)
            self.picks[name] = Pick(value, source, why)

    def pick_average(self) -> None:
        """Say that the tail is averaged, where that is not said."""
        if self.asked.average is None:
            why = "the last iterate alone is noisier where kappa is large; every iterate is accounted as public"
            self.picks["average"] = Pick(Average.TAIL, Source.DEFAULT, why)

    def pick_intercept(self, constant: float = CONSTANT) -> None:
        """Say that there is an intercept, where that is not said; its column holds so much, over the bound."""
        if self.asked.intercept is None:
            part = f"a constant column of {constant:g} times the feature bound"
            why = f"{part} leaves the features nearly all of their length"
            self.picks["intercept"] = Pick(True, Source.DEFAULT, why)

    def pick_clip(self, kappa: float) -> None:
        """Fill in C."""
        if self.kind is not NUMBERS:
            why = "slopes that saturate early keep confident records from steering the model"
            self.pick("clip", CLIP * self.height, Source.DEFAULT, why)
            return
        why = "kappa/130 within 0.03 and 0.3: a cap that is too low biases the fit, and one too high adds noise"
        divisor, low, high = CLIP_NUMBERS
        clip = float(f"{min(max(kappa / divisor, low), high) * self.height:.4g}")
        self.pick("clip", clip, Source.DERIVED, why)

    @property
    def clip(self) -> float:
        """C in units of rows of norm 1 and targets in [-1, 1]."""
        return float(self.draft["clip"]) / self.height

    def travel(self, kappa: float, steps: int) -> float:
        """Return A = eta C T.

        Noise on the weights that is A/kappa long moves the score of a row by about A/(kappa sqrt d), so that two
        classes travel further where d is large. Few of several classes are told apart sooner, and then noise alone is
        added. A descent to predict a number travels less than 2 C T, so that steps stay below 2/smoothness.
        """
        if self.kind is NUMBERS:
            slope, low, high = TRAVEL_NUMBERS
            return min(min(max(slope * kappa, low), high) * kappa, STEADY * self.clip * steps)
        if self.kind is TWO:
            pace = max(TRAVEL, TRAVEL_ROOT * math.sqrt(self.columns))
        else:
            pace = min(TRAVEL, TRAVEL_SEVERAL * int(self.draft["classes"]) * max(1.0, FAINT / kappa))
        return min(pace * kappa, LONGEST_TRAVEL)

    def calibrating(self) -> Calibrating:
        """Return how scores become log-odds: not those of other losses, nor of descents that are described."""
        asked, classes = self.asked, int(self.draft.get("classes", 2))
        probable = self.kind is SEVERAL or self.draft["loss"] == LossName.LOGISTIC
        described = asked.average == Average.NONE or any(self.draft.given(name) for name in _DESCRIBED)
        if not probable or described or asked.tune is not None:
            return Calibrating()
        return calibrating(self.draft["records"], self.mu, self.columns, classes, self.kappa)

    def step_size(self, travel: float, steps: int) -> float:
        """Return eta = A/(C T).

        Raises:
            SpecError: the lengths of steps are out of the range of doubles.
        """
        length = self.clip * self.bound * self.bound * steps
        if not _SHORTEST <= length <= 1.0 / _SHORTEST:
            raise SpecError("the bounds and the clip are too far from 1 for the default rule", "use other units")
        return travel / length


def fill(draft: Draft, asked: Setup, columns: int, *, centred: bool = False) -> Rule:
    """Fill in clip, steps and step size, and return what was chosen.

    Args:
        draft: with the number of records and the bounds.
        asked: the setup as it was given.
        columns: d, the constant one included.
        centred: whether rows are centred, which takes a part of the budget.

    Raises:
        MissingParameter: there is no budget.
        SpecError: the bounds are too far from 1.
    """
    choice = Choice(draft, asked, columns)
    kind, kappa = choice.kind, choice.kappa
    usual = STEPS_NUMBERS if kind is NUMBERS and kappa >= VERY_STRONG else STEPS
    steps = usual if draft.steps is None else int(draft.steps)
    choice.pick_average()
    if not centred:
        choice.pick_intercept()
    else:
        how = centring(draft, steps, draft["records"], columns)
        kappa *= math.sqrt(steps / (steps + how.sums))
        choice.pick_intercept(how.constant)
        if asked.centre is None:
            units = "twice their mean distance" if how.units == 2.0 else "their mean distance"
            why = (
                f"from kappa = {kind.centred_from:g} on: rows about their mean, in units of {units} from it, "
                "are told apart more easily, for a tenth of the budget"
            )
            choice.picks["centre"] = Pick(True, Source.DERIVED, why)
    choice.pick_clip(kappa)
    if steps == STEPS:
        choice.pick("steps", steps, Source.DEFAULT, "full batches of public iterates: finer steps change little")
    else:
        why = f"from kappa = {VERY_STRONG:g} on: steps stay below 2/smoothness, and more of them travel further"
        choice.pick("steps", steps, Source.DERIVED, why)
    travel = choice.travel(kappa, steps)
    step_size = float(f"{choice.step_size(travel, steps):.4g}")
    choice.pick("step_size", step_size, Source.DERIVED, f"A/(C T) for a travel of A = {travel:.4g}: {kind.why}")
    return Rule(choice.kappa, choice.mu, columns, travel, choice.picks, choice.calibrating())


def fill_sums(draft: Draft, asked: Setup, columns: int) -> Rule | None:
    """Return what is chosen where least squares are solved by noisy sums of products; None where they are not.

    Args:
        draft, asked, columns: as of `fill`.

    Raises:
        MissingParameter: there is no budget.
    """
    choice = Choice(draft, asked, columns)
    if asked.solver is None:
        if choice.kappa < SUFFICIENT or not suits(draft, asked):
            return None
        why = f"from kappa = {SUFFICIENT:g} on: a descent is biased by its clipping, and noisy sums are not"
        choice.picks["solver"] = Pick(Solver.SUMS, Source.DERIVED, why)
    choice.pick_intercept()
    return Rule(choice.kappa, choice.mu, columns, None, choice.picks)


def _said(value: Any) -> str:
    if value is True:
        return "yes"
    return f"{value:g}" if isinstance(value, float) else str(value)
