"""What is asked of a run, as plain records: the question, the risks and limits in it, and a ledger of several runs."""

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
"""How many rates or probabilities are answered at once."""


class RiskQuestion(NamedTuple):
    """What is asked about attacks.

    Attributes:
        fprs: rates of false positives, each in (0, 1).
        priors: prior probabilities that the record is there, each in (0, 1).
        baselines: probabilities to guess a secret of the record right without the release, each in (0, 1).
        curve: whether to tell the rates of true positives at many rates of false ones, for a picture.
    """

    fprs: tuple[float, ...] = USUAL_FPRS
    priors: tuple[float, ...] = USUAL_PRIORS
    baselines: tuple[float, ...] = ()
    curve: bool = False

    @classmethod
    def of(
        cls, fpr: Sequence[float] = USUAL_FPRS, prior: Sequence[float] = USUAL_PRIORS, baseline: Sequence[float] = ()
    ) -> RiskQuestion:
        """Return the question about these rates and probabilities.

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
            SpecError: one is.
        """
        for name, values in (("fpr", self.fprs), ("prior", self.priors), ("baseline", self.baselines)):
            if len(values) > _MOST:
                raise SpecError(f"{len(values)} values of {name}; at most {_MOST} are answered at once")
            for value in values:
                if not 1e-300 <= value < 1.0:
                    raise SpecError(f"{name} is {value!r}; it must be a number > 0 and < 1", "0.01 is a usual choice")

    def adding(self, wanted: Iterable[tuple[str, float | None]]) -> RiskQuestion:
        """Return the question with the attacks added that assertions speak of: names, each with what it is asked at."""
        question = self
        for name, at in wanted:
            field = f"{ATTACKS[name]}s"
            if ATTACKS[name] and at not in getattr(question, field):
                more: dict[str, Any] = {field: (*getattr(question, field), at)}
                question = question._replace(**more)
        return question


NO_RISKS = RiskQuestion((), (), ())


class Target(NamedTuple):
    """What an attacker may do at most: ``name`` and ``at`` as in an assertion such as ``tpr@1%<=0.05``."""

    name: str
    at: float | None
    limit: float

    @property
    def text(self) -> str:
        """The target as an assertion."""
        return f"{self.key} <= {self.limit:g}"

    @property
    def key(self) -> str:
        """What is limited."""
        return self.name if self.at is None else f"{self.name}@{self.at:g}"

    @property
    def floor(self) -> float:
        """What an attacker reaches without any output."""
        return max(self.at, 1.0 - self.at) if self.name == "success" and self.at else self.at or 0.0


_SMALLEST = -700.0  # below this ln delta, no double holds delta


class Question(NamedTuple):
    """What is asked: of epsilon, delta and the run's noise, what is None is sought.

    Attributes:
        epsilon: the budget.
        delta, log_delta: the budget as a double, and ln delta as typed, so that 1e-5000 is a number.
        orders: restricts Renyi bounds to a list.
        solve: names another parameter to solve for instead.
        source: where epsilon and delta come from.
        risks: what is asked about attacks, beside the answer.
        curves: whether the curves behind the answer are asked for (`dpcalc.engine.attack.curves`).
        targets: what an attacker may do at most, where a parameter is solved for, in place of epsilon and delta.
        rough: whether an epsilon will do that is above the best by some 1e-5 of itself, as in a note.
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
        """ln delta a hair below what was asked, so that the rounding of a typed decimal cannot help."""
        if self.log_delta is None:
            raise SpecError("delta is needed here", "give --delta")
        return self.log_delta - 2.0 * UNIT * (1.0 + abs(self.log_delta))

    @property
    def safe_epsilon(self) -> float:
        """Epsilon a hair below what was asked."""
        if self.epsilon is None:
            raise SpecError("epsilon is needed here", "give --epsilon")
        return math.nextafter(self.epsilon, 0.0)

    @property
    def budget(self) -> dict[str, float | None]:
        """The budget as the fields of a result."""
        return {"epsilon": self.epsilon, "delta": self.delta, "log_delta": self.log_delta}

    @property
    def typed_delta(self) -> float | str | None:
        """Delta, as a power of ten where no double can hold it."""
        if self.log_delta is not None and self.log_delta < _SMALLEST:
            return f"10^{self.log_delta / math.log(10.0):.12g}"
        return self.delta

    @property
    def missing_budget(self) -> str:
        """An example of what is not given of the budget."""
        given = (("--epsilon 1", self.epsilon), ("--delta 1e-6", self.log_delta))
        return " ".join(text for text, value in given if value is None)


class Query(NamedTuple):
    """A command, what was given, and the question.

    Attributes:
        command: a key of `dpcalc.engine.commands.COMMANDS`, or ``ledger``, ``convert`` or ``risk``.
        given: parameter name -> value; of a ledger, ``ledger`` -> `Ledger`.
        question: what is sought.
        certified: whether every guarantee is proved in ball arithmetic.
        bound: the one theorem that is asked, where others may not be quoted of what was carried out; None: all.
    """

    command: str
    given: Mapping[str, Any]
    question: Question
    certified: bool = False
    bound: str | None = None


def query_of(command: str, given: Given, question: Question, *, certified: bool = False) -> Query:
    """Return the query of what was given, as it is now; None stands for what is not given."""
    return Query(command, {name: value for name, value in given.items() if value is not None}, question, certified)


class Entry(NamedTuple):
    """One line of a ledger.

    Attributes:
        name: as written.
        command: of a described run; empty for a mechanism.
        given: the parameters of the run, or those of a mechanism; delta as its logarithm, ``log_delta``. Beside mu it
            is a distance: what is released is within it, in total variation, of what is mu-GDP.
        times: how often it is done.
        part: the part of the records that it is about; empty for all of them.
        tuning: how many runs the best is chosen from; None for a run whose settings were fixed.
        adjacency: its own, where it says so.
        begun: whether it was charged, and is not known to have been released: it counts.
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
    """The entries, what neighbouring data sets differ in, and the budget of all together.

    ``kept`` is whether a record that replaces another one stays in its part.
    """

    entries: tuple[Entry, ...]
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    group_size: int = 1
    kept: bool = False
