"""The keywords of a function, read as the command line reads its flags; the clip that is known, and work that waits."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.engine.ask import FEW, ask, best_of, side_by_side
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate, parse
from dpcalc.engine.question import aimed
from dpcalc.errors import DpcalcError, SpecError, warn
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import PARAMETERS, RATES, check, conversion, meant_by, not_covered, renamed
from dpcalc.model.quantities import Given
from dpcalc.model.question import Question
from dpcalc.render.notes import in_words, report
from dpcalc.report import Case, Report, Result

if TYPE_CHECKING:
    from dpcalc.model.question import RiskQuestion


class PendingCase(Case):
    """A case whose best answer is known; the rest is computed when it is first asked for."""

    _pending: Callable[[], Case]

    @classmethod
    def of(cls, answered: Case, pending: Callable[[], Case]) -> PendingCase:
        """Return the case.

        Args:
            answered: the case with its best answer, without what is looser, and without notes.
            pending: computes the whole case.
        """
        case = tuple.__new__(cls, answered)
        case._pending = functools.cache(pending)
        return case

    def __getattribute__(self, name: str) -> Any:
        if name in _PENDING:
            return getattr(self._pending(), name)
        return super().__getattribute__(name)

    @property
    def answers(self) -> tuple[Result, ...]:
        """The results to quote."""
        results: tuple[Result, ...] = super().__getattribute__("results")
        return tuple(result for result in results if result.best)

    @property
    def best(self) -> Result | None:
        """The first of them."""
        return self.answers[0]

    @property
    def _brief(self) -> Case:
        return Case(self.algorithm, self.inputs, self.answers)

    def _replace(self, **changes: Any) -> Case:  # type: ignore[override]
        return self._pending()._replace(**changes)

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self._pending()))

    def __getitem__(self, place: Any) -> Any:
        return self._pending()[place]

    def __eq__(self, other: object) -> bool:
        return self._pending() == (other._pending() if isinstance(other, PendingCase) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._pending())

    def __reduce__(self) -> tuple[Any, ...]:
        return Case, tuple(self._pending())


_PENDING = frozenset(Case._fields) - {"algorithm", "inputs", "assertions", "query", "check"}
"""The fields that say more than the best answer."""


def ledger(
    entries: Mapping[str, Any] | Sequence[Any] = (),
    *,
    file: str | os.PathLike[str] | None = None,
    epsilon: Any = None,
    delta: Any = None,
    adjacency: Any = None,
    group_size: Any = None,
    partition: str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what several runs, releases and queries about the same records cost together.

    Args:
        entries: name -> entry, or a list of entries. An entry is a dict: a run (``algorithm`` and what describes it),
            ``mu``, ``noise_multiplier``, ``noise_std`` or ``laplace_scale`` with ``sensitivity``, or ``epsilon`` and
            ``delta``; with ``times``, ``part``, ``tuning`` and ``adjacency``, as docs/ledger.md says. A text such as
            ``"epsilon=0.1 times=100"`` is one as well.
        file: path of a ledger; the entries are added to those in it.
        epsilon: budget of all entries together; without delta, delta at it is sought. A list is a sweep.
        delta: of all entries together.
        adjacency: what neighbouring data sets differ in; by default what the file says, else what all entries say, else
            replace-one.
        group_size: so many records of one person differ.
        partition: ``"kept"``: a record that is replaced stays in its part.
        solve: noise_std, noise_multiplier or laplace_scale of the last entry is solved for; needs the budget.
        gates: assertions on the total such as "epsilon<=3".

    Returns:
        A report as in `rdp`; ``ledger`` of a case has the ``entries``, and what is ``remaining`` of the budget.

    Raises:
        SpecError: an entry or the budget is malformed, or adjacencies are mixed in a way that nothing covers.
        NotApplicable: nothing is known of an entry.
        Infeasible: no noise of the last entry meets the budget.

    >>> round(ledger([{"epsilon": 0.1, "times": 100}], delta=1e-6).value, 4)
    4.7746
    >>> round(ledger({"census": {"mu": 0.2}, "model": {"mu": 1}}, delta=1e-5).mu, 6)
    1.019804
    """
    from dpcalc.engine.ledgers.total import answer_ledger
    from dpcalc.recipes.ledgers.ledger import ledger_of, with_asked

    path = None if file is None else os.fspath(file)
    read = ledger_of(entries, path, partition)
    asked = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "group_size": group_size}
    sweeps = {name: several(name, value) for name, value in asked.items() if value is not None}
    wanted = [gate_of(text) for text in several("gates", gates)]
    cases = []
    for chosen in product(sweeps):
        written: dict[str, Any] = {
            name: value if isinstance(value, str) else repr(value) for name, value in chosen.items()
        }
        cases.append(
            answer_ledger(*with_asked(read[0], read[1], **written, solve=solve, source=Source.ARGUMENT), wanted)
        )
    return report("ledger", cases)


def convert(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    order: Any = (),
    to: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return a guarantee in the words of another notion of privacy, rounded up.

    One of ``mu``, ``rho``, ``pure`` and ``rdp`` is known; without them, ``epsilon`` and ``delta`` are. What does not
    follow is refused: (epsilon, delta) implies no mu. With ``to="mu"`` it is answered by the most mu that implies it,
    ``sufficient_mu``, rounded down.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: delta at it is sought; or known.
        delta: epsilon at it is sought; or known.
        order: order or orders at which the Renyi divergence is sought.
        to: what is sought: epsilon, delta, mu, rho, rdp or pure; by default what epsilon, delta or order ask for.
        gates: assertions such as "epsilon<=1".

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: what is sought does not follow.
        Infeasible: nothing is enough for the budget.

    >>> round(convert(mu=1, delta=1e-5).value, 6)
    4.377178
    >>> best = convert(epsilon=1, delta=1e-5, to="mu").cases[0].best
    >>> best.quantity, round(best.value, 6)
    ('sufficient_mu', 0.268051)
    """
    from dpcalc.engine.convert import convert as converted
    from dpcalc.engine.convert import convert_among_others

    known = known_of(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta, to=to)
    orders = tuple(float(check("order", one)) for one in several("order", order))
    asked = Asked(known, orders, None, [gate_of(text) for text in several("gates", gates)])
    return answered("convert", asked, converted, convert_among_others)


def risk(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    fpr: Any = None,
    prior: Any = None,
    baseline: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what an attacker can do against a guarantee, rounded up; of a run, ask any query with ``risk=True``.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: with delta, one point that is known; without, pure privacy.
        delta: with epsilon, one point that is known.
        fpr: rates of false positives, in (0, 1), at which the rates of true ones are told.
        prior: prior probabilities, in (0, 1), for how often a guess whether the record was there is right.
        baseline: probabilities, in (0, 1), to guess a secret of the record right without the release.
        gates: assertions such as "advantage<=0.1" or "tpr@1%<=0.05".

    Returns:
        A report; each case has ``risk``, a mapping of ``advantage``, ``tpr``, ``success``, ``reconstruction``, ``mu``.

    Raises:
        SpecError: what is known or asked is malformed.

    >>> told = risk(mu=1, fpr=0.01).cases[0].risk
    >>> round(told["advantage"]["value"], 6), round(told["tpr"][0]["value"], 6)
    (0.382925, 0.092362)
    """
    from dpcalc.engine.attack.stated import risk_of_guarantee

    known = known_of(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta)
    rates = {"fpr": fpr, "prior": prior, "baseline": baseline}
    risks = risks_of(True, {name: several(name, value) for name, value in rates.items() if value is not None})
    asked = Asked(known, (), None, [gate_of(text) for text in several("gates", gates)], False, risks)
    return answered("risk", asked, risk_of_guarantee, risk_of_guarantee)


QUESTION = {
    "epsilon": "the budget",
    "delta": 'the budget; a string such as "1e-5000" where no float can hold it',
    "order": "order or orders of Renyi divergence; without a budget the divergence itself is reported",
    "solve": "name of a parameter to solve for instead, given both epsilon and delta",
    "gates": 'assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one',
    "certify": 'prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why '
    "not",
    "risk": "what an attacker can do, beside the answer: case.risk",
    "fpr": "false-positive rates at which risk gives true-positive rates",
    "prior": "prior probabilities that the record is there, for how often a guess is right",
    "baseline": "probabilities to guess a secret of the record right without the release",
    "advantage": "solve for what keeps true-positive less false-positive rate of any attack at most this",
    "tpr": "solve for what keeps the true-positive rate at fpr at most this",
    "success": "solve for what keeps how often a guess is right, at prior, at most this",
    "reconstruction": "solve for what keeps how often a secret is guessed, baseline without, at most this",
}


class Asked(NamedTuple):
    """Every combination of the values given, and what is asked of each."""

    runs: list[dict[str, Any]]
    orders: tuple[float, ...]
    solve: str | None
    gates: list[Gate]
    certify: bool = False
    risks: RiskQuestion | None = None
    listed: Mapping[str, Sequence[float]] = {}

    def question(self, run: dict[str, Any]) -> Question:
        """Return what is asked of a run; what says so is taken out of its values."""
        question = question_of(run.pop("epsilon", None), run.pop("delta", None), self.orders, self.solve)
        return aimed(question._replace(risks=self.risks), run, self.listed)

    def answer(self, command: str, run: Given, by: Callable[..., Case], *, notes: bool, brief: bool) -> Case:
        """Return the case of a run: its best answer at once, and the rest when somebody looks at it.

        Args:
            command: a key of `COMMANDS`.
            run: keyword -> value.
            by: what answers, as `dpcalc.engine.ask.ask` does.
            notes, brief: as for `ask`.
        """
        given = dict(run)
        question = self.question(given)
        options: dict[str, Any] = {"certified": True} if self.certify else {}

        def whole() -> Case:
            case = by(command, given, question, gates=self.gates, notes=notes, brief=brief, **options)
            return in_words(command, case)

        reads = given.get("schedule") is not None  # a file, which may be gone or another one later
        in_full = self.certify or self.gates or reads or by not in (ask, side_by_side)
        best = None if in_full else best_of(command, given, question)
        case = whole() if best is None else best
        for text in case.warnings:
            warn(as_keywords(text))
        return case if best is None else PendingCase.of(best, whole)


def read(command: str, /, **given: Any) -> Asked:
    """Return what the keywords ask.

    Raises:
        SpecError: a gate does not parse, a list is empty, certify is no bool, or a keyword is unknown, be it None.
    """
    record = COMMANDS[command]
    given = renamed(given)
    for name in given:
        if name not in (*record.parameters, "schedule", *QUESTION):
            raise _unknown(command, name)
    values = {name: value for name, value in given.items() if value is not None}
    orders = tuple(float(check("order", order)) for order in several("order", values.pop("order", ())))
    gates = [gate_of(text) for text in several("gates", values.pop("gates", ()))]
    solve = values.pop("solve", None)
    certify = False if record.trains else values.pop("certify", False)
    listed = {name: several(name, values.pop(name)) for name in RATES if name in values}
    risks = risks_of(values.pop("risk", False), listed)
    if not isinstance(certify, bool):
        raise SpecError(f"certify is {certify!r}; it must be True or False")
    if record.compares and values.get("algorithm") == "all":
        values["algorithm"] = record.algorithms
    if (path := values.get("schedule")) is not None:
        values["schedule"] = os.fspath(path)
    runs = product({name: several(name, value) for name, value in values.items()})
    return Asked(runs, orders, solve, gates, certify, risks, listed)


def _unknown(command: str, name: str) -> SpecError:
    """Return the error about a keyword that a function does not take."""
    from dpcalc.files.place import near

    taken = (*COMMANDS[command].parameters, *QUESTION)
    meant = meant_by(name, taken)
    hint = f"did you mean {meant}?{conversion(meant)}" if meant else near(name, taken)
    return SpecError(f"{command} does not take {name}", not_covered(name) or hint)


_FLAG = re.compile(r"--([a-z][a-z0-9-]*)(?: ([a-z][a-z-]*|[0-9](?:[0-9.e-]*[0-9])?))?")
"""A flag in a message, and the word or number behind it, which may be its value."""


def as_keywords(text: str) -> str:
    """Return a message with keywords where it names flags: ``adjacency="add-remove"``."""

    def keyword(flag: re.Match[str]) -> str:
        name, value = flag[1].replace("-", "_"), flag[2]
        if value is None or name not in PARAMETERS:
            return " ".join(filter(None, (name, value)))
        with contextlib.suppress(SpecError):
            check(name, value if PARAMETERS[name].choices else float(value) if value[0].isdigit() else math.nan)
            return f'{name}="{value}"' if PARAMETERS[name].choices else f"{name}={value}"
        return f"{name} {value}"

    return _FLAG.sub(keyword, text)


@contextlib.contextmanager
def in_keywords() -> Iterator[None]:
    """Let the errors of a function name its keywords where those of the command name flags."""
    try:
        yield
    except DpcalcError as error:
        error.message, error.hint = as_keywords(error.message), as_keywords(error.hint) if error.hint else None
        raise


def risks_of(asked: Any, listed: Mapping[str, Sequence[float]]) -> RiskQuestion | None:
    """Return what is asked about attacks; None where nothing is.

    Raises:
        SpecError: risk is no bool, or a rate or probability is outside (0, 1).
    """
    if not isinstance(asked, bool):
        raise SpecError(f"risk is {asked!r}; it must be True or False")
    if not asked and not listed:
        return None
    from dpcalc.model.question import RiskQuestion

    return RiskQuestion.of(**listed)


def known_of(rdp: Any, **sweeps: Any) -> list[dict[str, Any]]:
    """Return every combination of what is known of a mechanism and asked about it.

    Raises:
        SpecError: a list is empty, or the bounds on the Renyi divergence are malformed.
    """
    from dpcalc.engine.premises import points_of

    given = {name: several(name, value) for name, value in sweeps.items() if value is not None}
    return product({**given, **({"rdp": [points_of(rdp)]} if rdp is not None else {})})


def product(sweeps: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return every combination of values.

    Raises:
        SpecError: a list is empty.
    """
    empty = [name for name, several in sweeps.items() if not several]
    if empty:
        raise SpecError(f"{empty[0]} has no value", "give one, or leave it out")
    return [dict(zip(sweeps, chosen, strict=True)) for chosen in itertools.product(*sweeps.values())]


def gate_of(text: Any) -> Gate:
    """Return the gate that a text states.

    Raises:
        SpecError: it is no text, or states none.
    """
    if not isinstance(text, str):
        raise SpecError(f"{text!r} is not an assertion", "write it as text, for example 'epsilon<=1'")
    return parse(text)


def answered(command: str, asked: Asked, alone: Callable[..., Case], among_others: Callable[..., Case]) -> Report:
    """Return the report on every combination; ``alone`` raises where nothing holds, ``among_others`` says why."""
    single = len(asked.runs) == 1
    options = {"notes": len(asked.runs) <= FEW, "brief": not single}
    with in_keywords():
        cases = [asked.answer(command, run, alone if single else among_others, **options) for run in asked.runs]
        if not any(case.best for case in cases):
            asked.answer(command, asked.runs[0], alone, **options)  # nothing holds anywhere: say why of the first
    return Report(command, tuple(cases))


def several(name: str, value: Any) -> list[Any]:
    """Return the values of a parameter, one or several, as Python's own numbers (those of numpy become so)."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        raise SpecError(f"{name} is {value!r}; it must be a value or a list of values")
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]


def question_of(
    epsilon: float | None, delta: float | str | None, orders: tuple[float, ...] = (), solve: str | None = None
) -> Question:
    """Return the question with a checked budget.

    Raises:
        SpecError: epsilon or delta is outside its domain.
    """
    value, log_delta = delta_of(delta)
    epsilon = None if epsilon is None else float(check("epsilon", epsilon))
    return Question(epsilon, value, log_delta, orders, solve)


def delta_of(delta: float | str | None) -> tuple[float | None, float | None]:
    """Return delta as a double and its exact logarithm; a text may be far below the smallest double."""
    if delta is None:
        return None, None
    if isinstance(delta, str):
        from dpcalc.model.numbers import parse_delta

        return parse_delta(delta)
    value = float(check("delta", delta))
    return value, math.log(value)


def paths_of(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return one path or several as a list of texts."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fsdecode(path) for path in several]
