"""A question and its answer: Report -> Case -> Result. Renderers read these and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self, overload

from dpcalc.checked import Assertion, Change, Check, Shard, Status, Tally
from dpcalc.errors import PRECEDENCE, NotApplicable, SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import ATTACKS, Kind, Quantity
from dpcalc.notes import Note

SCHEMA = "dpcalc.report/1"

_GUARANTEES = frozenset(kind for kind in Kind if kind.guarantee)


class Result(NamedTuple):
    """One bound's answer.

    ``quantity`` names what ``value`` is: epsilon, log_delta, mu, rdp, or the name of the parameter solved for. A
    number of kind ``upper`` or ``exact`` is a guarantee and has been rounded to the safe side.
    """

    bound: str
    title: str
    quantity: str
    value: float
    kind: Kind
    epsilon: float | None = None
    delta: float | None = None
    log_delta: float | None = None
    mu: float | None = None
    order: float | None = None
    conversion: str | None = None
    adjacency: str = "replace-one"
    assumes: tuple[str, ...] = ()
    reference: str = ""
    best: bool = False
    details: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        at = f" at delta {self.delta:.6g}" if self.delta is not None and self.quantity != Quantity.DELTA else ""
        return f"<Result {self.bound}: {self.quantity} {self.value!r} ({self.kind}){at}>"

    @property
    def written_adjacency(self) -> str:
        """The adjacency as JSON and CSV have it, with ``_`` for ``-``."""
        return self.adjacency.replace("-", "_")

    @property
    def forgetting(self) -> bool:
        """Whether it certifies that records were forgotten, and says nothing of those that were kept."""
        return self.bound.startswith("unlearning.")

    @property
    def log_value(self) -> float:
        """The logarithm of the value, which of a delta is known where the delta itself underflows."""
        if self.quantity == Quantity.DELTA and self.log_delta is not None:
            return self.log_delta
        return math.log(self.value) if self.value > 0.0 else -math.inf

    @property
    def size(self) -> float:
        """What rows are ranked by: the value, of a delta its logarithm."""
        return self.log_delta if self.quantity == Quantity.DELTA and self.log_delta is not None else self.value

    @property
    def value_fields(self) -> dict[str, Any]:
        """The fields of a note that hold the value; ``log_delta`` is None unless that is a delta."""
        log_delta = self.log_delta if self.quantity == Quantity.DELTA else None
        return {"quantity": self.quantity, "value": self.value, "log_delta": log_delta}

    @property
    def alternative_fields(self) -> dict[str, Any]:
        """The fields of a note on another run whose answer this is."""
        return {**self.value_fields, "any": (self.details or {}).get("any"), "bound": self.bound}

    @property
    def guarantee(self) -> bool:
        """Whether this number may be promised."""
        return self.kind in _GUARANTEES  # a report that was read has plain words


class Obstacle(NamedTuple):
    """Why a bound does not apply, what to do about it, and the parameters that the hint speaks of."""

    bound: str
    because: str
    hint: str
    parameters: tuple[str, ...] = ()


class Tightness(NamedTuple):
    """The gap between the best guarantee and ``value``, a lower bound on every guarantee for what is known of the run.

    ``ratio`` is best over value (of deltas for a delta), None if undefined. If ``by_difference``, the lower bound is on
    guarantees that use only the distance of two gradients, and not their sizes.
    """

    bound: str
    value: float
    ratio: float | None
    by_difference: bool = False


class Curves(NamedTuple):
    """The curves behind an answer, for plots; not part of a JSON report.

    Attributes:
        profile: (epsilon, ln delta), proved; rounded up.
        floor: (epsilon, ln delta), a lower bound on every guarantee, rounded down; empty if unknown.
        trade_off: (false-positive rate, largest true-positive rate), rounded up.
        risk: what an attacker can do at the usual rates, as in `Case`.
        tightness: the gap to a lower bound, if one is known.
    """

    profile: tuple[tuple[float, float], ...]
    floor: tuple[tuple[float, float], ...]
    trade_off: tuple[tuple[float, float], ...]
    risk: Mapping[str, Any] | None
    tightness: Tightness | None


class Guess(NamedTuple):
    """The success of the best attacker who guesses between two equally likely data sets.

    ``probability`` of a right guess and ``advantage`` 2 probability - 1, rounded up; ``bound`` proves them. They are
    ``from_point`` if they follow from one (epsilon, delta) rather than from the whole curve of the run.
    """

    probability: float
    advantage: float
    bound: str
    from_point: bool


LOG_DELTA_ALONE = -14.0
"""ln of the delta at which the entries of a ledger are compared where none is asked about."""


class Case(NamedTuple):
    """One described run and one question about it.

    ``note_data`` is what is worth knowing beside the answer, ``notes`` is the same in words: `dpcalc.render.notes`
    writes them when the cases become a report. ``training`` is what was measured where the run was carried out as well,
    ``check`` what became of a recipe's case, ``ledger`` the entries that a total is of, ``risk`` what an attacker can
    do, ``audit`` what an audit found, ``curves`` what is drawn of the answer. ``query`` is what it answers, as a
    `dpcalc.model.question.Query`: for a card, which asks again; ``runs`` are the queries about single runs of which
    the best was chosen. ``guess`` is what the answer means: how often an attacker guesses right.
    """

    algorithm: str
    inputs: Mapping[str, tuple[Any, Source]]
    results: tuple[Result, ...]
    obstacles: tuple[Obstacle, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tightness: Tightness | None = None
    training: Mapping[str, Any] | None = None
    check: Check | None = None
    note_data: tuple[Note, ...] = ()
    ledger: Mapping[str, Any] | None = None
    risk: Mapping[str, Any] | None = None
    curves: Curves | None = None
    query: Any = None
    audit: Mapping[str, Any] | None = None
    runs: tuple[Any, ...] = ()
    guess: Guess | None = None

    @property
    def best(self) -> Result | None:
        """The result to quote, if any bound gave a guarantee."""
        for result in self.results:
            if result.best:
                return result
        return None

    @property
    def answers(self) -> tuple[Result, ...]:
        """The results to quote: one, or the best of each kind or order that was asked about."""
        return tuple([result for result in self.results if result.best])

    @property
    def answer(self) -> Result:
        """The result to quote.

        Raises:
            NotApplicable: no guarantee holds: `best` is None, or no guarantee as the run is not covered.
        """
        if self.best is not None and self.best.guarantee:
            return self.best
        if self.best is not None:
            because = (self.training or {}).get("why_not_private") or f"{self.best.bound} is {self.best.kind}"
            raise NotApplicable(f"the run has no guarantee: {because}", "`best` has what would hold otherwise")
        why = self.obstacles[0] if self.obstacles else None
        raise NotApplicable(
            f"{self.algorithm} has no guarantee" + (f": {why.because}" if why else ""), why.hint if why else None
        )

    @property
    def epsilon(self) -> float:
        """The epsilon that holds, at `delta`; an upper bound, or the budget where something else was solved for.

        Raises:
            NotApplicable: there is none. So do the four below.
        """
        return self._number(self.answer.epsilon, "epsilon", "ask with delta=")

    @property
    def delta(self) -> float:
        """The delta that holds, at `epsilon`; 1e-5000 and the like are the smallest float here."""
        delta = self.answer.delta
        if delta == 0.0 and self.answer.log_delta is not None and self.answer.log_delta > -math.inf:
            return math.ulp(0.0)
        return self._number(delta, "delta", "ask with delta= or epsilon=")

    @property
    def mu(self) -> float:
        """The mu of Gaussian privacy that holds."""
        return self._number(self.answer.mu, "mu", "`answer` has what holds")

    @property
    def noise_multiplier(self) -> float:
        """The noise on a sum of gradients over their largest norm: solved for, given, or derived."""
        return self._noise("noise_multiplier")

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a mean gradient: solved for, given, or derived."""
        return self._noise("noise_std")

    def _noise(self, name: str) -> float:
        best = self.answer
        solved = best.value if best.quantity == name else (best.details or {}).get(name)
        return self._number(self.value(name) if solved is None else solved, name, "`inputs` has what is known")

    def _number(self, value: float | None, name: str, hint: str) -> float:
        """Return a number of the answer, which some answers have not."""
        if value is None:
            best = self.answer
            raise NotApplicable(f"the answer is {best.quantity}, by {best.bound}, and has no {name}", hint)
        return float(value)

    @property
    def _only(self) -> Result:
        """The one result to quote.

        Raises:
            SpecError: there are several.
        """
        if len(self.answers) > 1:
            raise SpecError(f"the case has {len(self.answers)} answers", "`answers` of the case has them")
        return self.answer

    def __float__(self) -> float:
        return float(self._only.value)

    def __repr__(self) -> str:
        return f"<Case {self.algorithm}: {self._headline}>"

    @property
    def _headline(self) -> str:
        """The answer in a line, without what else the case says, which may have to be computed."""
        lines = _renderer(".words.sentences", "headline")(self._brief, _renderer(".numbers", "Digits")())
        return str(next(iter(lines), "no guarantee"))

    @property
    def _brief(self) -> Case:
        """The case as far as its headline depends on it."""
        return self

    def value(self, name: str) -> Any:
        """Return the value of an input; None where the case has no such input."""
        return self.inputs.get(name, (None, ""))[0]

    @property
    def forgetting(self) -> bool:
        """Whether its answer certifies that records were forgotten; see `Result.forgetting`."""
        return self.best is not None and self.best.forgetting

    def risk_value(self, name: str, at: float | None) -> float | None:
        """Return what an attacker can do, by its name and what it is asked at; None where the case does not say."""
        if not self.risk:
            return None
        if not ATTACKS[name]:
            return float(self.risk[name]["value"])
        return next((float(row["value"]) for row in self.risk[name] if row[ATTACKS[name]] == at), None)

    @property
    def attack_numbers(self) -> dict[str, float]:
        """What an attacker can do, as columns ``advantage``, ``tpr@0.01``, ..."""
        if not self.risk:
            return {}
        numbers = {"advantage": float(self.risk["advantage"]["value"])}
        for name, at in ATTACKS.items():
            numbers.update({f"{name}@{row[at]!r}": float(row["value"]) for row in self.risk[name]} if at else {})
        return numbers

    @property
    def not_covered(self) -> Mapping[str, Any]:
        """Numbers computed from the records without noise, on request; no guarantee covers them."""
        return (self.training or {}).get("uncovered") or {}

    def uncovered(self) -> Case:
        """Return the case of a run that its theorems do not cover: no number of it is a guarantee any more."""
        rows = (row._replace(kind=Kind.CONDITIONAL) if row.guarantee else row for row in self.results)
        return self._replace(results=tuple(rows), guess=None)

    @property
    def failed(self) -> bool:
        """Whether a gate failed, or the case did although its gates hold."""
        judged = self.check is not None and self.check.status == Status.FAILED
        return judged or not all(gate.passed for gate in self.assertions)


PARTS = ("train", "test")  # the parts of the records that are measured separately


class Report:
    """The answer to one command: a sequence of cases; a report of one case also has its numbers.

    ``print`` shows the short answer. ``not_selected`` are the cases of a check's recipes that were not checked, with
    their files. ``changes`` are the differences from an earlier report, None without one. ``shard`` is the part of a
    check that these cases are, None if they are all.
    """

    _fields = ("command", "cases", "not_selected", "changes", "shard")

    def __init__(
        self,
        command: str,
        cases: tuple[Case, ...],
        not_selected: tuple[tuple[str, str], ...] = (),
        changes: tuple[Change, ...] | None = None,
        shard: Shard | None = None,
    ) -> None:
        self.command, self.cases, self.not_selected = command, cases, not_selected
        self.changes, self.shard = changes, shard

    def _replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**vars(self), **changes})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # as of what holds mappings

    def __len__(self) -> int:
        return len(self.cases)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    @overload
    def __getitem__(self, place: int) -> Case: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Case, ...]: ...

    def __getitem__(self, place: int | slice) -> Case | tuple[Case, ...]:
        return self.cases[place]

    @property
    def case(self) -> Case:
        """The case, where there is one.

        Raises:
            SpecError: there are several, or none.
        """
        if len(self) != 1:
            raise SpecError(f"the report has {len(self)} cases", "take one: report[0], or `for case in report`")
        return self.cases[0]

    @property
    def answer(self) -> Result:
        """The result to quote of the one case, as `Case.answer`.

        Raises:
            SpecError: there are several cases, or none.
            NotApplicable: no guarantee holds. So do the properties below.
        """
        return self.case.answer

    @property
    def value(self) -> float:
        """The number to quote: of epsilon, or of what was solved for. ``float(report)`` is the same."""
        return self.case._only.value

    def __float__(self) -> float:
        return float(self.case)

    @property
    def epsilon(self) -> float:
        """The epsilon that holds, as `Case.epsilon`."""
        return self.case.epsilon

    @property
    def delta(self) -> float:
        """The delta that holds, as `Case.delta`."""
        return self.case.delta

    @property
    def mu(self) -> float:
        """The mu of Gaussian privacy that holds."""
        return self.case.mu

    @property
    def noise_multiplier(self) -> float:
        """The noise on a sum of gradients over their largest norm: solved for, given, or derived."""
        return self.case.noise_multiplier

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a mean gradient: solved for, given, or derived."""
        return self.case.noise_std

    def __repr__(self) -> str:
        said = self.cases[0]._headline if len(self) == 1 else f"{len(self)} cases"
        return f"<Report {self.command}: {said}{f', {self.failed} failed' if self.failed else ''}>"

    def __str__(self) -> str:
        return str(_renderer("", "render")(self, "plain", verbose=0)).rstrip("\n")

    def _repr_html_(self) -> str:
        """Return what a notebook shows of the report."""
        return str(_renderer(".notebook", "render_notebook")(self))

    @property
    def tally(self) -> Tally:
        """The counts of the cases: those that were made as they passed, where they are not in memory."""
        counted: Tally | None = getattr(self.cases, "tally", None)
        return Tally(self.cases) if counted is None else counted

    @property
    def failed(self) -> int:
        """How many cases failed a gate."""
        return self.tally.failed

    @property
    def statuses(self) -> Mapping[str, int]:
        """How many cases of recipes ended in each way."""
        return self.tally.statuses

    @property
    def gates(self) -> tuple[int, int, int]:
        """How many gates there are, how many of them held, and how many cases of recipes passed without one."""
        tally = self.tally
        return tally.gates, tally.held, tally.bare

    @property
    def exit_code(self) -> int:
        """What a check of these cases exits with, by `PRECEDENCE`."""
        codes = self.tally.codes
        return next((code for code in PRECEDENCE if code in codes), 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of `rows`: the result, the run that has the cost if there are costs, inputs, what was measured."""
        return tuple(_renderer(".machine", "columns")(self))

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dict a result, all with the same keys: what a data frame or a CSV file takes.

        ``case`` counts from 1; the inputs of a case follow prefixed ``input_``, None where it has no such input.
        """
        return list(_renderer(".machine", "rows")(self, self.columns))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the ``dpcalc.report/1`` envelope: JSON types only, no NaN or infinity.

        What is not finite is null, and ``reason`` beside it says what was.
        """
        return dict(_renderer(".machine", "to_dict")(self))

    def card(self) -> dict[str, Any]:
        """Return the privacy card of the report, as `dpcalc.card` does."""
        return dict(_renderer(".api.documents", "card", "dpcalc")(self))


def _renderer(module: str, name: str, package: str = "dpcalc.render") -> Callable[..., Any]:
    """Return a function of what reads reports, which is loaded when one is shown: a report knows nothing of it."""
    import importlib

    function: Callable[..., Any] = getattr(importlib.import_module(f"{package}{module}"), name)
    return function


def uncertified(case: Case) -> list[Result]:
    """Return the best results of a case that were to be certified and could not be."""
    return [
        result for result in case.results if result.best and (result.details or {}).get("not_certified") is not None
    ]
