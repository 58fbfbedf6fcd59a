"""The default rule for runs that no flag describes otherwise. It looks at no record.

It takes full batches, gradients clipped to C, T = 100 or 200 steps accounted by composition, and the mean of the second
half of the iterates, all of which may be public. The signal to noise of such a run is kappa = n mu/(2 sqrt d), with mu
the Gaussian privacy that the budget allows and d the number of columns with the constant one: T steps along gradients
of length C move the weights by A = eta C T, the travel, and the noise on them has a norm of about A/kappa, whatever C,
T and eta are. So A grows with kappa; C and T only decide where slopes saturate and how fine the steps are. Steps are
far longer than 2/smoothness, which composition allows. `docs/training.md` describes the data that chose the constants.

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
"""Steps of a regression with a very strong signal: 100 steps of at most 2/smoothness are too short for its travel."""

VERY_STRONG = 100.0
"""The kappa from which a regression takes `STEPS_NUMBERS`: R2 is 0.01 better up to kappa = 150."""

CONSTANT = 0.2
"""The value of the intercept's column, for rows of norm 1: the features keep 98 % of their length."""

CONSTANT_NUMBERS = 0.3
"""The same for a regression on centred rows where noise outweighs bias; chosen together with the units there."""

SUFFICIENT = 1000.0
"""The kappa from which noisy sums of products solve least squares: the bias of clipping then exceeds the noise."""

PRECISE = 30.0
"""The kappa from which the bias of a regression outweighs its noise: centred rows then stay longer."""

FEW_COLUMNS = 5
"""The number of columns, with the constant one, up to which rows of several classes are centred in units twice as long.

Distances from the mean differ most where there are few columns, and classes may lie behind one another: a gain of 0.006
in accuracy at kappa = 40.
"""

CLIP = 0.1
"""C for a classifier: slopes that saturate early keep confident records from steering the model."""

CLIP_NUMBERS = 130.0, 0.03, 0.3
"""kappa over C for a regression, and the limits of C: a lower cap adds bias, a higher one noise."""

TRAVEL, TRAVEL_ROOT, LONGEST_TRAVEL = 30.0, 3.7, 1e4
"""For a classifier: A/kappa; A/(kappa sqrt d) where d is large (a gain of 0.085 in accuracy on mnist); the largest A.

At A = 10000 a row that is 0.01 or more from the boundary has a score of 100 or more, and no slope.
"""

TRAVEL_SEVERAL, FAINT = 4.0, 6.0
"""A/(K kappa) for a few of several classes, which separate sooner; and the kappa below which A stays constant."""

TRAVEL_NUMBERS, STEADY = (0.25, 0.3, 2.0), 1.9
"""For a regression: A/kappa^2, with the limits of A/kappa; and the largest A/(C T), where 2 is 2/smoothness a step."""

_MEAN_SHARE, _LENGTH_SHARE = 0.11, 0.01
"""Noisy sums for the mean row, and for the mean distance from it, per step of the descent: a tenth of the budget.

A mean row has about as many entries as there are weights; a distance is one number, and one sum is enough for it.
"""

_DESCRIBED = ("clip", "steps", "step_size", "regularisation")
"""Parameters that describe a descent: if one is given, rows are centred only on request."""

_LARGEST = 2.0**400  # a bound on rows up to it, and from its inverse, has squares within the range of doubles

SWITCHES = (
    "algorithm", "release", "radius", "epochs", "batch_size", "last_batch", "permutation", "noise_std",
    "noise_multiplier", "laplace_scale", "noise", "c1", "c2", "decay_exponent", "schedule_factor", "power",
)  # fmt: skip
"""Parameters that describe another kind of run: if one of them is given, the rule fills in nothing.

``release`` counts only if the last iterate alone is released: the rule accounts for every iterate as public, so
``release`` of all iterates describes the same run.
"""

_SHORTEST = 1e-290  # of steps that keep all of their digits

LOSSES = ("logistic", "hinge", "softmax", "squares", "huber")
"""The losses that the rule covers. It was tuned on logistic, softmax and squares."""


class Pick(NamedTuple):
    """A value that the rule chose: ``source`` is ``default`` for a constant, ``derived`` if it depends on kappa."""

    value: Any
    source: Source
    why: str


class Centring(NamedTuple):
    """How rows are centred.

    Attributes:
        mean, distance: the numbers of noisy sums for the mean row, and for the mean distance from it.
        units: how many mean distances become one unit of length, at most the feature bound.
        constant: the value of the constant column, over the feature bound.
    """

    mean: int
    distance: int
    units: float = 1.0
    constant: float = CONSTANT

    @property
    def sums(self) -> int:
        """The number of noisy sums."""
        return self.mean + self.distance


class Kind(NamedTuple):
    """A kind of prediction.

    Attributes:
        centred_from: the kappa from which rows are centred: below it, the budget for the mean is wasted on most tables.
        why: the travel of the weights, in words.
    """

    centred_from: float
    why: str


TWO = Kind(5.0, "30 kappa, or 3.7 sqrt(d) kappa where that is more, at most 10000")
SEVERAL = Kind(10.0, "the less of 30 and 4 K max(1, 6/kappa), times kappa, at most 10000, for K classes")
NUMBERS = Kind(8.0, "kappa/4 within 0.3 and 2, times kappa, at most 1.9 C T, so that steps stay below 2/smoothness")


def kind_of(draft: Draft) -> Kind:
    """Return the kind of prediction of a run."""
    if draft["loss"] not in CLASSIFYING:
        return NUMBERS
    return SEVERAL if draft.get("classes", 2) > 2 else TWO


class Rule(NamedTuple):
    """The choices of the rule.

    Attributes:
        kappa, mu, columns, travel: see above; travel is in units of rows of norm 1, and None without a descent.
        picks: name -> choice, without the parameters that were given.
        calibrating: how scores become log-odds.
    """

    kappa: float
    mu: float
    columns: int
    travel: float | None
    picks: dict[str, Pick]
    calibrating: Calibrating = Calibrating()

    def to_json(self) -> dict[str, Any]:
        """Return the report, JSON types only."""
        picked = {name: {**pick._asdict(), "source": str(pick.source)} for name, pick in self.picks.items()}
        return {"kappa": self.kappa, "mu": self.mu, "travel": self.travel, "picked": picked}

    def note(self) -> DefaultRule:
        """Return the note on the choices."""
        words = (f"{name.replace('_', ' ')} {_said(pick.value)}" for name, pick in self.picks.items())
        return DefaultRule(signal_to_noise=self.kappa, picked=", ".join(words))

    def warnings(self, draft: Draft, asked: Setup) -> tuple[str, ...]:
        """Return warnings where noise may drown the signal of all records or of the rarest class.

        Raises:
            SpecError: the shares of the classes are malformed.
        """
        signal = faint.Signal(self.kappa, self.mu, int(draft["records"]), self.columns, draft.question)
        whole = signal.warning(classifies=draft.get("loss") in CLASSIFYING)
        shares = asked.shares(int(draft.get("classes", 2)))
        rare = None if shares is None else signal.warning_of_class(min(shares))
        return tuple(text for text in (whole, rare) if text is not None)


def applies(draft: Draft) -> bool:
    """Return whether the rule fills in the missing parameters of a run whose loss is known."""
    return not switches_of(draft) and draft["loss"] in LOSSES and not draft.question.solve


def switches_of(draft: Draft) -> list[str]:
    """Return the given parameters that describe another kind of run."""
    return [name for name in SWITCHES if draft.given(name) and draft[name] != Releases.EPOCH]


def without(error: MissingParameter, draft: Draft) -> MissingParameter:
    """Return the error about a missing parameter; it names the flag that turned the rule off, if one did."""
    switches = switches_of(draft)
    if not switches or draft["loss"] not in LOSSES:
        return error
    flag = flag_of(switches[0])
    return MissingParameter(
        f"{error.message}; {flag} describes a run of its own, which the default rule does not fill in",
        f"{error.hint}; or leave out {flag}", parameters=error.parameters,
    )  # fmt: skip


def settle(setup: Setup, draft: Draft, *, ruled: bool, batched: bool = False) -> Setup:
    """Return the setup with the intercept and the average chosen, and fill in ``release`` to match.

    Without the rule a run has neither by default. For batches the average is chosen later.

    Raises:
        SpecError: the mean of hidden iterates is asked for.
    """
    average = setup.average or (Average.TAIL if ruled and not batched else Average.NONE)
    if average == Average.TAIL and draft.algorithm.release is not Release.STEP:
        draft.default("release", Releases.EPOCH, Source.DERIVED)
        if draft["release"] != Releases.EPOCH:
            raise SpecError("a mean of iterates is covered only where each of them is", "give --release epoch")
    intercept = ruled if setup.intercept is None else setup.intercept
    return setup._replace(average=average, intercept=intercept)


def centring_steps(steps: int) -> tuple[int, int]:
    """Return the numbers of noisy sums of rows and of distances before this many steps of a descent.

    >>> centring_steps(100)
    (11, 1)
    """
    return max(1, round(_MEAN_SHARE * steps)), max(1, round(_LENGTH_SHARE * steps))


def centring(draft: Draft, steps: int, rows: int, columns: int) -> Centring:
    """Return how rows are centred before a descent.

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
    """Return whether rows are centred: on request, or if the rule may choose and the signal is strong enough.

    Args:
        draft, asked: as of `fill`.
        rows, columns: of the training records, the constant column included.
        ruled: whether the rule covers this run, with full batches.

    Raises:
        SpecError: centring is asked for in a run that the rule does not cover.
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
    """Return kappa, at least 1e-9, so that a step has a positive length."""
    return max(records * mu / (2.0 * math.sqrt(columns)), 1e-9)


class Choice:
    """The choices of the rule for a run, while they are made.

    Attributes:
        draft: with the number of records and the bounds.
        asked: the setup as it was given.
        columns: d, the constant one included.
        mu, kappa: see above.
        picks: name -> choice, without the parameters that were given.
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
        """Record the average of the tail, if no average is given."""
        if self.asked.average is None:
            why = "the last iterate alone is noisier where kappa is large; every iterate is accounted as public"
            self.picks["average"] = Pick(Average.TAIL, Source.DEFAULT, why)

    def pick_intercept(self, constant: float = CONSTANT) -> None:
        """Record an intercept, if none is given or refused; ``constant`` is its column's value over the bound."""
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

        Noise of norm A/kappa on the weights moves the score of a row by about A/(kappa sqrt d), so two classes allow a
        longer travel where d is large. A few of several classes separate sooner; more travel would only add noise. A
        regression travels less than 2 C T, so that steps stay below 2/smoothness.
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
        """Return how scores become log-odds; other losses and descents that flags describe are not calibrated."""
        asked, classes = self.asked, int(self.draft.get("classes", 2))
        probable = self.kind is SEVERAL or self.draft["loss"] == LossName.LOGISTIC
        described = asked.average == Average.NONE or any(self.draft.given(name) for name in _DESCRIBED)
        if not probable or described or asked.tune is not None:
            return Calibrating()
        biased = self.kind is SEVERAL and asked.intercept is not False  # a bias is an intercept
        return calibrating(self.draft["records"], self.mu, self.columns, classes, self.kappa, biased)

    def step_size(self, travel: float, steps: int) -> float:
        """Return eta = A/(C T).

        Raises:
            SpecError: step lengths are outside the range of doubles.
        """
        length = self.clip * self.bound * self.bound * steps
        if not _SHORTEST <= length <= 1.0 / _SHORTEST:
            raise SpecError("the bounds and the clip are too far from 1 for the default rule", "use other units")
        return travel / length


def fill(draft: Draft, asked: Setup, columns: int, *, centred: bool = False) -> Rule:
    """Fill in clip, steps and step size, and return the choices.

    Args:
        draft: with the number of records and the bounds.
        asked: the setup as it was given.
        columns: d, the constant one included.
        centred: whether rows are centred, which uses part of the budget.

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
    """Return the choices for least squares by noisy sums of products; None where a descent solves them.

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
