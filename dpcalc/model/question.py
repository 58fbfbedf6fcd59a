"""Questions about runs, as plain records: budgets, attacks, limits, and ledgers of several runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import ATTACKS, Adjacency, Given
from dpcalc.numerics.floats import UNIT

if TYPE_CHECKING:
    from dpcalc.notions.tuning import Tuning

USUAL_FPRS = (0.001, 0.01, 0.1)
USUAL_PRIORS = (0.5,)
_MOST = 200
"""The most rates or probabilities in one question."""


class RiskQuestion(NamedTuple):
    """A question about attacks.

    Attributes:
        fprs: false-positive rates, each in (0, 1).
        priors: prior probabilities that the record is in the data, each in (0, 1).
        baselines: probabilities of guessing a secret of the record without the release, each in (0, 1).
        curve: whether to compute true-positive rates at many false-positive rates, for a plot.
    """

    fprs: tuple[float, ...] = USUAL_FPRS
    priors: tuple[float, ...] = USUAL_PRIORS
    baselines: tuple[float, ...] = ()
    curve: bool = False

    @classmethod
    def of(
        cls, fpr: Sequence[float] = USUAL_FPRS, prior: Sequence[float] = USUAL_PRIORS, baseline: Sequence[float] = ()
    ) -> RiskQuestion:
        """Return the question for these rates and probabilities.

        Raises:
            SpecError: one is outside (0, 1).
        """
        fprs, priors, baselines = (tuple(dict.fromkeys(map(float, values))) for values in (fpr, prior, baseline))
        risks = cls(fprs, priors, baselines)
        risks.check()
        return risks

    def check(self) -> None:
        """Refuse a rate or probability outside (0, 1).

        Raises:
            SpecError: one is outside.
        """
        for name, values in (("fpr", self.fprs), ("prior", self.priors), ("baseline", self.baselines)):
            if len(values) > _MOST:
                raise SpecError(f"{len(values)} values of {name}; at most {_MOST} are answered at once")
            for value in values:
                if not 1e-300 <= value < 1.0:
                    raise SpecError(f"{name} is {value!r}; it must be a number > 0 and < 1", "0.01 is a usual choice")

    def adding(self, wanted: Iterable[tuple[str, float | None]]) -> RiskQuestion:
        """Return the question with the attacks of assertions added: (name, the rate or probability it is evaluated
        at)."""
        question = self
        for name, at in wanted:
            field = f"{ATTACKS[name]}s"
            if ATTACKS[name] and at not in getattr(question, field):
                more: dict[str, Any] = {field: (*getattr(question, field), at)}
                question = question._replace(**more)
        return question


NO_RISKS = RiskQuestion((), (), ())


class Target(NamedTuple):
    """A limit on an attacker: ``name`` and ``at`` as in an assertion such as ``tpr@1%<=0.05``."""

    name: str
    at: float | None
    limit: float

    @property
    def text(self) -> str:
        """The target as an assertion."""
        return f"{self.key} <= {self.limit:g}"

    @property
    def key(self) -> str:
        """The limited quantity."""
        return self.name if self.at is None else f"{self.name}@{self.at:g}"

    @property
    def floor(self) -> float:
        """What an attacker reaches without any output."""
        return max(self.at, 1.0 - self.at) if self.name == "success" and self.at else self.at or 0.0


_SMALLEST = -700.0  # below this ln delta, no double holds delta


class Question(NamedTuple):
    """A question: of epsilon, delta and the run's noise, the one that is None is solved for.

    Attributes:
        epsilon: the budget.
        delta, log_delta: the budget as a double, and ln of the typed delta, which may be as small as 1e-5000.
        orders: restricts Renyi bounds to a list of orders.
        solve: another parameter to solve for.
        source: where epsilon and delta come from.
        risks: the question about attacks.
        curves: whether to return the curves behind the answer (`dpcalc.engine.attack.curves`).
        targets: limits on attackers, in place of epsilon and delta, when a parameter is solved for.
        rough: whether an epsilon some 1e-5 (relative) above the best is good enough, as in a note.
    """

    epsilon: float | None = None
    delta: float | None = None
    log_delta: float | None = None
    orders: tuple[float, ...] = ()
    solve: str | None = None
    source: Source = Source.ARGUMENT
    risks: RiskQuestion | None = None
    curves: bool = False
    targets: tuple[Target, ...] = ()
    rough: bool = False

    @property
    def safe_log_delta(self) -> float:
        """ln delta slightly below the given one, to cover the rounding of a typed decimal."""
        if self.log_delta is None:
            raise SpecError("delta is needed here", "give --delta")
        return self.log_delta - 2.0 * UNIT * (1.0 + abs(self.log_delta))

    @property
    def safe_epsilon(self) -> float:
        """Epsilon slightly below the given one."""
        if self.epsilon is None:
            raise SpecError("epsilon is needed here", "give --epsilon")
        return math.nextafter(self.epsilon, 0.0)

    @property
    def budget(self) -> dict[str, float | None]:
        """The budget as the fields of a result."""
        return {"epsilon": self.epsilon, "delta": self.delta, "log_delta": self.log_delta}

    @property
    def typed_delta(self) -> float | str | None:
        """Delta, as a power of ten if it is below the doubles."""
        if self.log_delta is not None and self.log_delta < _SMALLEST:
            return f"10^{self.log_delta / math.log(10.0):.12g}"
        return self.delta

    @property
    def missing_budget(self) -> str:
        """An example of the missing part of the budget."""
        given = (("--epsilon 1", self.epsilon), ("--delta 1e-6", self.log_delta))
        return " ".join(text for text, value in given if value is None)


class Query(NamedTuple):
    """A command, the given values, and the question.

    Attributes:
        command: a key of `dpcalc.engine.commands.COMMANDS`, or ``ledger``, ``convert`` or ``risk``.
        given: parameter name -> value; for a ledger, ``ledger`` -> `Ledger`.
        question: the question.
        certified: whether every guarantee is proved in ball arithmetic.
        bound: the one theorem to use, if others do not hold for the executed run; None for all.
    """

    command: str
    given: Mapping[str, Any]
    question: Question
    certified: bool = False
    bound: str | None = None


def query_of(command: str, given: Given, question: Question, *, certified: bool = False) -> Query:
    """Return the query, with a copy of the given values; None means not given."""
    return Query(command, {name: value for name, value in given.items() if value is not None}, question, certified)


class Entry(NamedTuple):
    """One line of a ledger.

    Attributes:
        name: as written.
        command: the command of a described run; empty for a mechanism.
        given: the parameters of the run or the mechanism; delta as its logarithm, ``log_delta``. Beside mu, delta is
        the total-variation distance of the release from a mu-GDP one.
        times: how often it is run.
        part: the part of the records that it uses; empty for all of them.
        tuning: the law of the number of runs that the best is chosen from; None without tuning.
        adjacency: its own adjacency, if it is given.
        begun: whether it was charged but may not have been released; it counts.
    """

    name: str
    command: str
    given: Mapping[str, Any]
    times: int = 1
    part: str = ""
    tuning: Tuning | None = None
    adjacency: Adjacency | None = None
    begun: bool = False


class Ledger(NamedTuple):
    """The entries, their adjacency, and the total budget.

    ``kept`` is whether a record that replaces another one stays in its part.
    """

    entries: tuple[Entry, ...]
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    group_size: int = 1
    kept: bool = False
